"""The dynamic section of an ELF file: what it needs, what it is called, where it searches."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envbuild.core.elf.pieces import ElfError, UnreadElfError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.core.elf.header import Header
    from envbuild.core.elf.pieces import Window

NEEDED, HASH, STRTAB, SYMTAB, STRSZ, SYMENT = 1, 4, 5, 6, 10, 11
SONAME, RPATH, RUNPATH = 14, 15, 29
GNU_HASH, VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
VERDEF, VERDEFNUM, VERNEED, VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
MAX_NAME = 4096
_MAX_PATHS = 1 << 20  # Bazel writes a RUNPATH of hundreds of folders
_ENTRY = struct.Struct("<QQ")
_SYMBOL_SIZE = 24
_MAX_ENTRIES = 65536


@dataclass(frozen=True, kw_only=True, slots=True)
class Dynamic:
    """The entries that matter to a loader; names are text, empty tables are ``None``.

    ``strings`` is where the string table lies in the file, and its length.
    """

    needed: tuple[str, ...] = ()
    soname: str | None = None
    rpath: str | None = None
    runpath: str | None = None
    strings: tuple[int, int] = (0, 0)
    tags: Mapping[int, int] = field(default_factory=dict)


def text_of(name: bytes, *, what: str) -> str:
    """Return a name as text; raise ElfError where it is not UTF-8."""
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise ElfError(f"the {what} is not UTF-8: {name[:80]!r}") from None


def string_at(
    window: Window, strings: tuple[int, int], index: int, *, what: str, most: int = MAX_NAME
) -> str:
    """Return one string of the string table; what is longer than most are costs a second read."""
    start, size = strings
    if index >= size:
        raise ElfError(f"the {what} lies outside of the string table")
    piece, end = b"", -1
    for length in (MAX_NAME, most):
        if end < 0:
            piece = window.table(start + index, min(length, size - index), what=what)
            end = piece.find(b"\0")
    if end < 0 and len(piece) < size - index:
        raise UnreadElfError(f"the {what} is longer than the {len(piece)} bytes that are read")
    if end < 0:
        raise ElfError(f"the {what} has no end within {len(piece)} bytes")
    return text_of(piece[:end], what=what)


def parse_dynamic(window: Window, header: Header) -> Dynamic:
    """Read the dynamic section; a file without one gives an empty answer."""
    if header.dynamic is None:
        return Dynamic()
    offset, length = header.dynamic
    window.check(offset, length, what="dynamic section")
    if length > _MAX_ENTRIES * _ENTRY.size:
        raise UnreadElfError(f"the dynamic section has more than {_MAX_ENTRIES} entries")
    table = window.table(offset, length & ~15, what="dynamic section")
    tags: dict[int, int] = {}
    needed: list[int] = []
    for tag, value in _ENTRY.iter_unpack(table):
        if tag == 0:
            break
        if tag == NEEDED:
            needed.append(value)
        else:
            tags[tag] = value
    if tags.get(SYMENT, _SYMBOL_SIZE) != _SYMBOL_SIZE:
        raise ElfError(f"a symbol takes {tags[SYMENT]} bytes, wanted {_SYMBOL_SIZE}")
    strings = _strings(window, header, tags)

    def name(tag: int, what: str) -> str | None:
        index = tags.get(tag)
        most = MAX_NAME if tag == SONAME else _MAX_PATHS
        return None if index is None else string_at(window, strings, index, what=what, most=most)

    return Dynamic(
        needed=tuple(string_at(window, strings, at, what="needed name") for at in needed),
        soname=name(SONAME, "SONAME"),
        rpath=name(RPATH, "RPATH"),
        runpath=name(RUNPATH, "RUNPATH"),
        strings=strings,
        tags=tags,
    )


def _strings(window: Window, header: Header, tags: Mapping[int, int]) -> tuple[int, int]:
    if STRTAB not in tags:
        return 0, 0
    start = header.offset_of(tags[STRTAB], what="string table")
    size = tags.get(STRSZ, 0)
    if start + size > window.size:
        raise ElfError("the string table lies outside of the file")
    return start, size
