"""The names that a shared object exports, from its first bytes where its linker left them there.

GNU's linker writes `.dynsym` and right behind it `.dynstr` near the front of a file, while the
dynamic section that says so lies behind the code. So the tables are found by their form: an empty
symbol, sound symbols, and behind them a string table in which every name stands. `patchelf` moves
the strings to the end of the file; then the whole of it must be read.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from envbuild.core.elf.dynamic import SYMTAB, parse_dynamic
from envbuild.core.elf.header import parse_header
from envbuild.core.elf.pieces import ElfError, Window
from envbuild.core.elf.symbols import Symbols

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.elf.pieces import Bytes

_SYMBOL = struct.Struct("<IBBHQQ")
_BINDINGS, _KINDS, _UNEXPORTED_KINDS = {0, 1, 2, 10}, set(range(11)), {3, 4}
_LOCAL, _VISIBLE = 0, {0, 3}
_FEWEST = 4
_HEADER = 64
_LARGEST_HASH = 1 << 20
_FILLED, _HEAD = b"X" * 32, 8192  # what patchelf leaves where something was
_MAX_HEAD = 8 << 20
_NAME = re.compile(rb"[\w.$@]+")
_OF_THE_LINKER = re.compile(r"_Z.*|_init|_fini|__bss_start|_edata|_end|.*[.$@].*")


class MoreWantedError(Exception):
    """The tables go on behind the bytes that are there."""


class MovedError(Exception):
    """The tables do not lie at the front of the file."""


def exported_by_head(head: bytes) -> frozenset[str]:
    """Return what is exported, from the first bytes of a file.

    Raises MoreWantedError where more of them are needed, MovedError where that will not help.
    """
    if head[:6] != b"\x7fELF\x02\x01" or len(head) < _HEADER:
        raise MovedError
    (segments_at,) = struct.unpack_from("<Q", head, 32)
    (segments,) = struct.unpack_from("<H", head, 56)
    start = segments_at + 56 * segments
    at = (start + 7 if start < _LARGEST_HASH else 64) & ~7
    if _FILLED in head[:_HEAD]:
        raise MovedError
    while True:
        at = _next_empty(head, at)
        # The symbol behind the empty one has a name, which a run of zeros has not.
        (named,) = struct.unpack_from("<I", head, at + _SYMBOL.size)
        rows = list(_rows(head, at)) if named else []
        end = at + _SYMBOL.size * len(rows)
        if len(rows) >= _FEWEST:
            if end + _SYMBOL.size > len(head):
                raise MoreWantedError
            found = _names(rows, head[end:])
            if found is not None:
                return found
        at += 8


def _next_empty(head: bytes, at: int) -> int:
    """Return where the next empty symbol may stand."""
    found = head.find(bytes(_SYMBOL.size), at)
    found = (found + 7) & ~7 if found >= 0 else len(head)
    if found + 2 * _SYMBOL.size <= len(head) and found < _LARGEST_HASH:
        return found
    raise MovedError if len(head) >= _LARGEST_HASH else MoreWantedError


def _rows(head: bytes, at: int) -> Iterator[tuple[int, ...]]:
    """Give symbols until one is unsound."""
    for place in range(at, len(head) - _SYMBOL.size + 1, _SYMBOL.size):
        row = _SYMBOL.unpack_from(head, place)
        name, info, other, *_ = row
        sound = info >> 4 in _BINDINGS and info & 15 in _KINDS and other < _FEWEST
        if not sound or name >= _MAX_HEAD:
            return
        yield row


def _names(rows: list[tuple[int, ...]], strings: bytes) -> frozenset[str] | None:
    """Return the exported names, None where these are not the strings of the symbols."""
    last = max(row[0] for row in rows)
    if strings[:1] != b"\0":
        return None
    if strings.find(b"\0", last + 1) < 0:
        if len(strings) > _MAX_HEAD:
            return None
        raise MoreWantedError
    named = [row for row in rows[1:] if row[0]]
    # A linker may store a name as the tail of another: half of those of NCCL are.
    alone = sum(strings[row[0] - 1] == 0 for row in named)
    texts = {row[0]: strings[row[0] : strings.find(b"\0", row[0])] for row in named}
    if not named or alone * 10 < len(named) * 4:
        return None
    if not all(_NAME.fullmatch(text) for text in texts.values()):
        return None
    return _exported(named, texts)


def _exported(rows: list[tuple[int, ...]], texts: dict[int, bytes]) -> frozenset[str]:
    names = {texts[row[0]].decode("ascii") for row in rows if row[3] and _is_exported(row)}
    return frozenset(name for name in names if not _OF_THE_LINKER.fullmatch(name))


def _is_exported(row: tuple[int, ...]) -> bool:
    _, info, other, *_ = row
    return info >> 4 != _LOCAL and info & 15 not in _UNEXPORTED_KINDS and other & 3 in _VISIBLE


def exported_by_file(data: Bytes) -> frozenset[str]:
    """Return what is exported, from a whole file; raise ElfError where it is broken."""
    window = Window(data)
    header = parse_header(data, window)
    dynamic = parse_dynamic(window, header)
    if SYMTAB not in dynamic.tags:
        raise ElfError("the file has no dynamic symbols")
    size = Symbols(window, header, dynamic).count * _SYMBOL.size
    start = header.offset_of(dynamic.tags[SYMTAB], what="symbol table")
    table = window.table(start, size, what="symbol table")
    strings = window.table(*dynamic.strings, what="string table")
    rows = [row for row in _SYMBOL.iter_unpack(table) if row[0]]
    texts = {row[0]: strings[row[0] : strings.find(b"\0", row[0])] for row in rows}
    return _exported(rows, texts)
