"""The dynamic symbols of an ELF file: which it wants, and exactly which it defines.

Whole tables are read only where every name is asked for. ``undefined`` makes a name for each
symbol that is wanted, ``names`` splits the string table in one step, and ``defines`` answers
for one name through the hash table, as the loader does.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from envbuild.core.elf.dynamic import MAX_NAME, SYMTAB, VERSYM
from envbuild.core.elf.hashtable import MAX_SYMBOLS, SYMBOL_SIZE, hash_table, hashed_count
from envbuild.core.elf.header import read_sections
from envbuild.core.elf.pieces import ElfError, UnreadElfError
from envbuild.core.elf.versions import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envbuild.core.elf.dynamic import Dynamic
    from envbuild.core.elf.hashtable import HashTable
    from envbuild.core.elf.header import Header
    from envbuild.core.elf.pieces import Window

_SYMBOL = struct.Struct("<IBBHQQ")
_DYNSYM = 11
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10
_SECTION, _FILE, _THREAD_LOCAL = 3, 4, 6
_INTERNAL, _HIDDEN = 1, 2
_ABSOLUTE = 0xFFF1
_FIRST_VERSION = 2
_MAX_STRINGS = 2_000_000
LARGE = 32 << 20  # libtensorflow_cc.so.2 has 87 MB of names, torch's libraries up to 21
_MOST_OF_NAME = 512


class Wanted(NamedTuple):
    """An undefined symbol; ``version`` is the number of its version, 0 or 1 for none."""

    name: bytes
    weak: bool
    version: int


# Tens of thousands are made: without this, half of the time goes into calling the constructor.
_wanted = partial(tuple.__new__, Wanted)


class Symbols:
    """The dynamic symbols of one file; every method raises ElfError where a table is broken."""

    __slots__ = (
        "_count",
        "_dynamic",
        "_hash",
        "_hash_known",
        "_header",
        "_numbers",
        "_rows",
        "_start",
        "_window",
    )

    def __init__(self, window: Window, header: Header, dynamic: Dynamic) -> None:
        self._window, self._header, self._dynamic = window, header, dynamic
        self._hash: HashTable | None = None
        self._hash_known = False
        self._rows: bytes | None = None
        self._numbers: memoryview | None = None
        self._start, self._count = 0, 0
        if SYMTAB in dynamic.tags:
            self._start = header.offset_of(dynamic.tags[SYMTAB], what="symbol table")
            self._count = self._counted()

    @property
    def count(self) -> int:
        """How many symbols there are, the empty first one included."""
        return self._count

    def _counted(self) -> int:
        count = hashed_count(self._window, self._header, self._dynamic)
        if count is None:
            count = self._count_by_layout()
        self._window.check(self._start, count * SYMBOL_SIZE, what="symbol table")
        if count > MAX_SYMBOLS:
            raise UnreadElfError(
                f"the symbol table holds {count} symbols, at most {MAX_SYMBOLS} are read"
            )
        return count

    def _count_by_layout(self) -> int:
        for section in read_sections(self._window, self._header):
            if section.kind == _DYNSYM and section.offset == self._start:
                return section.size // SYMBOL_SIZE
        # Linkers put the names right behind the symbols.
        return max(self._dynamic.strings[0] - self._start, 0) // SYMBOL_SIZE

    def undefined(self) -> tuple[Wanted, ...]:
        """Return the global symbols that others must define."""
        size = self._count * SYMBOL_SIZE
        if not size:
            return ()
        rows = self._window.table(self._start, size, what="symbol table")
        # A symbol is 24 bytes: 4 of its name, type, visibility, 2 of its section, and others.
        kinds, starts = rows[4::SYMBOL_SIZE], memoryview(rows).cast("I")[::6]
        unplaced = _zeros(rows[6::SYMBOL_SIZE], rows[7::SYMBOL_SIZE])
        numbers = [at for at in unplaced if kinds[at] & 0xF0 and starts[at]]
        if not numbers:
            return ()
        versions = self._versions()
        try:
            names = self._named([starts[at] for at in numbers])
            weak = [kinds[at] >> 4 == _WEAK for at in numbers]
            marks = [versions[at] & ~HIDDEN if versions else 0 for at in numbers]
            return tuple(map(_wanted, zip(names, weak, marks, strict=True)))
        except ValueError:
            raise ElfError("the name of a symbol lies outside of the string table") from None

    def _named(self, places: list[int]) -> list[bytes]:
        """Return the names at some places of the string table; raise ValueError outside of it."""
        if self._dynamic.strings[1] > LARGE:
            return list(map(self._name_at, places))
        strings = self._strings()
        end = strings.index
        return [strings[at : end(0, at)] for at in places]

    def _name_at(self, place: int) -> bytes:
        start, size = self._dynamic.strings
        for most in (_MOST_OF_NAME, MAX_NAME * 16):
            row = self._window.table(start + place, min(most, size - place), what="name")
            text, end, _ = row.partition(b"\0")
            if end:
                return text
        raise ValueError

    def _versions(self) -> memoryview | None:
        if VERSYM not in self._dynamic.tags:
            return None
        at = self._header.offset_of(self._dynamic.tags[VERSYM], what="versions of symbols")
        table = self._window.table(at, self._count * 2, what="versions of symbols")
        return memoryview(table).cast("H")

    def _strings(self) -> bytes:
        start, size = self._dynamic.strings
        return self._window.table(start, size, what="string table")

    def names(self, without: tuple[Wanted, ...] = ()) -> set[bytes]:
        """Return the names that stand alone in the string table, less those ``without``.

        It is a quick guess at what is defined; of a large table there is none. A linker may
        store ``ncclSend`` as the tail of ``pncclSend``: what is not among the names must be asked
        of ``defines``.
        """
        if self._dynamic.strings[1] > LARGE:
            return set()
        strings = self._strings()
        parts = strings.split(b"\0", _MAX_STRINGS + 1)
        if len(parts) > _MAX_STRINGS + 1:
            raise UnreadElfError(f"the string table holds more than {_MAX_STRINGS} names")
        found = set(parts)
        found.difference_update([symbol.name for symbol in without])
        return found

    def defines(self, name: bytes, version: str | None, definitions: Mapping[int, str]) -> bool:
        """Return whether a symbol of that name, and version, is defined; weak ones count.

        ``definitions`` are the versions of the file. The rules are those of glibc's
        ``dl-lookup.c``: a reference without version takes the base or the default version,
        a versioned one takes its version or an unversioned symbol.
        """
        table = self._table()
        if table is None:
            return False
        return any(
            self._is(number, name) and self._fits(number, version, definitions)
            for number in table.candidates(name)
        )

    def _table(self) -> HashTable | None:
        if not self._hash_known:
            self._hash = hash_table(self._window, self._header, self._dynamic, symbols=self._count)
            self._hash_known = True
        return self._hash

    def _is(self, number: int, name: bytes) -> bool:
        if number >= self._count:
            raise ElfError("the hash table names a symbol that is not in the symbol table")
        if self._rows is None:
            size = self._count * SYMBOL_SIZE
            self._rows = self._window.table(self._start, size, what="symbol table")
        row = _SYMBOL.unpack_from(self._rows, number * SYMBOL_SIZE)
        text, info, other, section, value, _ = row
        kind, binding, visibility = info & 15, info >> 4, other & 3
        if not section or binding not in {_GLOBAL, _WEAK, _UNIQUE}:
            return False
        if kind in {_SECTION, _FILE} or visibility in {_INTERNAL, _HIDDEN}:
            return False
        if not value and section != _ABSOLUTE and kind != _THREAD_LOCAL:
            return False
        start, size = self._dynamic.strings
        length = len(name) + 1
        if len(name) > MAX_NAME * 16 or text + length > size:
            return False
        return self._window.table(start + text, length, what="name") == name + b"\0"

    def _fits(self, number: int, version: str | None, definitions: Mapping[int, str]) -> bool:
        if VERSYM not in self._dynamic.tags:
            return True
        if self._numbers is None:
            self._numbers = self._versions()
        value = self._numbers[number] if self._numbers is not None else 0
        index, hidden = value & ~HIDDEN, bool(value & HIDDEN)
        if version is None:
            return index <= _FIRST_VERSION or not hidden
        found = definitions.get(index)
        return found == version if found is not None else not hidden


def _zeros(low: bytes, high: bytes) -> Iterator[int]:
    """Give the places where both bytes are 0; most are not, and are passed over in one step."""
    at = low.find(0)
    while at >= 0:
        if not high[at]:
            yield at
        at = low.find(0, at + 1)
