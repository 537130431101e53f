"""The GPU code of a shared object: for which capabilities it has machine code, and PTX.

``nvcc`` puts fat binaries one after another into the section ``.nv_fatbin``. Each begins with a
header of 16 bytes (magic, version, length of the header, length of all entries) and holds
entries, each with a header of at least 64 bytes: what it is (1 PTX, 2 machine code), the length
of its header and of its payload, its capability and flags, and for PTX the version of PTX that
it is written in. Payloads, compressed or not, are jumped over. Objects for a later device link
lie in ``__nv_relfatbin``; they run nowhere.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from envbuild.core.elf.header import named_sections, parse_header
from envbuild.core.elf.pieces import ElfError, UnreadElfError, Window
from envbuild.model.cuda import ComputeCapability
from envbuild.model.facts import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.elf.pieces import Bytes

LINKED = ".nv_fatbin"
RELOCATABLE = "__nv_relfatbin"
MAGIC = 0xBA55ED50
_MAGIC_BYTES = MAGIC.to_bytes(4, "little")
_HEAD = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_PTX, _SASS = 1, 2
_ONLY_THIS, _FAMILY = 0x100000, 0x200000
_MAX_ENTRIES = 2_000_000
_MAX_ENTRY_HEAD = 65536
_STEP = 4096
_MAX_GAP = 16 << 20
_LOWEST, _HIGHEST = 10, 999


class GpuCodeError(ElfError):
    """The GPU code is broken, in a file that is in order otherwise."""


class _Head:
    """Reads the small headers, a few hundred bytes at a time: payloads lie between them."""

    __slots__ = ("_at", "_data", "_piece")

    def __init__(self, data: Bytes) -> None:
        self._data, self._at, self._piece = data, 0, b""

    def unpack(self, form: struct.Struct, offset: int) -> tuple[int, ...]:
        start = offset - self._at
        if start < 0 or start + form.size > len(self._piece):
            self._at, start = offset, 0
            self._piece = self._data.read(offset, 256)
            if len(self._piece) < form.size:
                raise GpuCodeError("the GPU code is cut short")
        return form.unpack_from(self._piece, start)


def device_code(data: Bytes, *, section: str = LINKED) -> DeviceCode | None:
    """Return the GPU code of a shared object; None for a file without such a section.

    Raises GpuCodeError where the section is broken, another ElfError where the file is.
    """
    window = Window(data)
    header = parse_header(data, window)
    seen: set[tuple[int, int, int, tuple[int, int]]] = set()
    name = section.encode()
    sections = named_sections(window, header, frozenset({name}))
    for _, found in sections:
        if found.offset + found.size > data.size:
            raise GpuCodeError(f"the section `{section}` lies outside of the file")
        seen.update(_entries(data, found.offset, found.offset + found.size))
    sass = {_capability(arch, flags) for kind, arch, flags, _ in seen if kind == _SASS}
    ptx = sorted((_capability(arch, flags), isa) for kind, arch, flags, isa in seen if kind == _PTX)
    if not sass and not ptx:
        return None
    newest = dict(ptx)  # of the versions for one capability the last is kept
    isa = tuple((one, version) for one, version in newest.items() if version[0])
    return DeviceCode(sass=tuple(sorted(sass)), ptx=tuple(newest), isa=isa, source=section)


def _capability(arch: int, flags: int) -> ComputeCapability:
    if not _LOWEST <= arch <= _HIGHEST:
        raise GpuCodeError(f"the GPU code is for `sm_{arch}`, wanted one like `sm_90`")
    suffix = "a" if flags & _ONLY_THIS else "f" if flags & _FAMILY else ""
    return ComputeCapability(major=arch // 10, minor=arch % 10, suffix=suffix)


def _entries(data: Bytes, start: int, end: int) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
    """Give kind, capability, flags and version of each entry of a section."""
    head = _Head(data)
    left = _MAX_ENTRIES
    while start + _HEAD.size <= end:
        magic, _, length, size = head.unpack(_HEAD, start)
        if magic != MAGIC:
            start = _next_magic(data, start, end)
            continue
        at, stop = start + length, start + length + size
        if length < _HEAD.size or stop > end:
            raise GpuCodeError("a fat binary is larger than its section")
        while at + _ENTRY.size <= stop:
            row = head.unpack(_ENTRY, at)
            left -= 1
            if left < 0:
                raise UnreadElfError(f"there are more than {_MAX_ENTRIES} pieces of GPU code")
            if row[2] < _HEAD.size or row[2] > _MAX_ENTRY_HEAD:
                raise GpuCodeError("the entries of a fat binary are broken")
            yield row[0], row[8], row[11] & (_ONLY_THIS | _FAMILY), (row[7], row[6])
            at += row[2] + row[3]
        start = (stop + 7) & ~7


def _next_magic(data: Bytes, start: int, end: int) -> int:
    """Return where the next fat binary begins after padding; ``end`` where there is none."""
    limit = min(end, start + _MAX_GAP)
    while start < limit:
        # Three bytes more, so that a magic across the border is seen.
        found = data.read(start, min(_STEP + 3, end - start)).find(_MAGIC_BYTES)
        if found >= 0:
            return start + found
        start += _STEP
    return end
