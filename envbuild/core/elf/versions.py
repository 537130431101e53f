"""The version tables of an ELF file: which versions it asks of others, and which it defines."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.elf.dynamic import VERDEF, VERDEFNUM, VERNEED, VERNEEDNUM, string_at
from envbuild.core.elf.pieces import UnreadElfError

if TYPE_CHECKING:
    from collections.abc import Callable

    from envbuild.core.elf.dynamic import Dynamic
    from envbuild.core.elf.header import Header
    from envbuild.core.elf.pieces import Window

HIDDEN = 0x8000
_NEED = struct.Struct("<HHIII")
_NEED_AUX = struct.Struct("<IHHII")
_DEF = struct.Struct("<HHHHIII")
_WORD = struct.Struct("<I")
_BASE, _WEAK = 1, 2
_MAX_RECORDS = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionNeed:
    """A version that a file asks of a library; ``index`` is the number its symbols carry."""

    library: str
    version: str
    index: int
    weak: bool = False


def parse_needs(window: Window, header: Header, dynamic: Dynamic) -> tuple[VersionNeed, ...]:
    """Read ``.gnu.version_r``; raise ElfError where it is broken."""
    if VERNEED not in dynamic.tags:
        return ()
    at = header.offset_of(dynamic.tags[VERNEED], what="table of needed versions")
    name = _namer(window, dynamic)
    found: list[VersionNeed] = []
    for _ in range(_counted(dynamic.tags.get(VERNEEDNUM, 0))):
        row = window.unpack(_NEED, at, what="table of needed versions")
        _, count, file, aux_at, following = row
        _needs_of(window, at + aux_at, count=count, library=name(file), name=name, found=found)
        if not following:
            break
        at += following
    return tuple(found)


def _needs_of(
    window: Window,
    at: int,
    *,
    count: int,
    library: str,
    name: Callable[[int], str],
    found: list[VersionNeed],
) -> None:
    for _ in range(count):
        if len(found) >= _MAX_RECORDS:
            raise UnreadElfError(f"there are more than {_MAX_RECORDS} needed versions")
        row = window.unpack(_NEED_AUX, at, what="table of needed versions")
        _, flags, index, text, following = row
        need = VersionNeed(
            library=library,
            version=name(text),
            index=index & ~HIDDEN,
            weak=bool(flags & _WEAK),
        )
        found.append(need)
        if not following:
            return
        at += following


def parse_definitions(window: Window, header: Header, dynamic: Dynamic) -> dict[int, str]:
    """Read ``.gnu.version_d``: the version of each number, without the file's own name."""
    if VERDEF not in dynamic.tags:
        return {}
    at = header.offset_of(dynamic.tags[VERDEF], what="table of versions")
    name = _namer(window, dynamic)
    found: dict[int, str] = {}
    for _ in range(_counted(dynamic.tags.get(VERDEFNUM, 0))):
        row = window.unpack(_DEF, at, what="table of versions")
        _, flags, index, _, _, aux_at, following = row
        if not flags & _BASE:
            (text,) = window.unpack(_WORD, at + aux_at, what="table of versions")
            found[index & ~HIDDEN] = name(text)
        if not following:
            break
        at += following
    return found


def _counted(count: int) -> int:
    if count > _MAX_RECORDS:
        raise UnreadElfError(f"there are {count} versions, at most {_MAX_RECORDS} are read")
    return count


def _namer(window: Window, dynamic: Dynamic) -> Callable[[int], str]:
    known: dict[int, str] = {}

    def name(index: int) -> str:
        if index not in known:
            known[index] = string_at(window, dynamic.strings, index, what="name of a version")
        return known[index]

    return name
