"""The dynamic symbols of an ELF file: which it wants, and exactly which it defines.

Whole tables are read only where every name is asked for. ``undefined`` makes a name for each
symbol that is wanted, ``names`` splits the string table in one step, and ``defines`` answers
for one name through the hash table, as the loader does.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from envbuild.core.elfbytes import ElfError
from envbuild.core.elfdynamic import MAX_NAME, SYMTAB, VERSYM
from envbuild.core.elfhash import MAX_SYMBOLS, SYMBOL_SIZE, hash_table, hashed_count
from envbuild.core.elfheader import read_sections
from envbuild.core.elfversions import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.core.elfbytes import Window
    from envbuild.core.elfdynamic import Dynamic
    from envbuild.core.elfhash import HashTable
    from envbuild.core.elfheader import Header

_SYMBOL = struct.Struct("<IBBHQQ")
_HALF = struct.Struct("<H")
_DYNSYM = 11
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10
_SECTION, _FILE, _THREAD_LOCAL = 3, 4, 6
_INTERNAL, _HIDDEN = 1, 2
_ABSOLUTE = 0xFFF1
_FIRST_VERSION = 2
_MAX_STRINGS = 2_000_000


class Wanted(NamedTuple):
    """An undefined symbol; ``version`` is the number of its version, 0 or 1 for none."""

    name: bytes
    weak: bool
    version: int


class Symbols:
    """The dynamic symbols of one file; every method raises ElfError where a table is broken."""

    __slots__ = ("_count", "_dynamic", "_hash", "_hash_known", "_header", "_start", "_window")

    def __init__(self, window: Window, header: Header, dynamic: Dynamic) -> None:
        self._window, self._header, self._dynamic = window, header, dynamic
        self._hash: HashTable | None = None
        self._hash_known = False
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
        if count > MAX_SYMBOLS or self._start + count * SYMBOL_SIZE > self._window.size:
            raise ElfError(f"the symbol table holds {count} symbols, more than can be read")
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
        words = memoryview(self._window.table(self._start, size, what="symbol table")).cast("I")
        # A symbol is six words: its name, then type, visibility and section in one.
        kinds = words[1::6].tolist()
        numbers = [at for at, kind in enumerate(kinds) if kind < 0x10000 and kind & 0xF0]  # noqa: PLR2004
        if not numbers:
            return ()
        versions = self._versions()
        strings, starts = self._strings(), words[0::6]
        end = strings.index
        try:
            return tuple(
                Wanted(
                    strings[starts[at] : end(0, starts[at])],
                    (kinds[at] >> 4) & 15 == _WEAK,
                    versions[at] & ~HIDDEN if versions else 0,
                )
                for at in numbers
                if starts[at]
            )
        except ValueError:
            raise ElfError("the name of a symbol lies outside of the string table") from None

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

        It is a quick guess at what is defined. A linker may store ``ncclSend`` as the tail of
        ``pncclSend``: what is not among the names must be asked of ``defines``.
        """
        strings = self._strings()
        if strings.count(b"\0") > _MAX_STRINGS:
            raise ElfError(f"the string table holds more than {_MAX_STRINGS} names")
        found = set(strings.split(b"\0"))
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
        at = self._start + number * SYMBOL_SIZE
        text, info, other, section, value, _ = self._window.unpack(_SYMBOL, at, what="symbol table")
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
        table = self._header.offset_of(self._dynamic.tags[VERSYM], what="versions of symbols")
        (value,) = self._window.unpack(_HALF, table + number * 2, what="versions of symbols")
        index, hidden = value & ~HIDDEN, bool(value & HIDDEN)
        if version is None:
            return index <= _FIRST_VERSION or not hidden
        found = definitions.get(index)
        return found == version if found is not None else not hidden
