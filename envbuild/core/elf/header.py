"""The head of an ELF file: what machine it is for, and where its segments and sections lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.elf.pieces import BlankElfError, ElfError, ForeignElfError, UnreadElfError

if TYPE_CHECKING:
    from envbuild.core.elf.pieces import Bytes, Window

MACHINES = {3: "i386", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm"} | {
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
CUT_SHORT = "the file ends at"
"""How the reason begins where a file is shorter than its head says."""

READABLE = ("x86_64", "aarch64")
_BITS, _ORDERS = {1: 32, 2: 64}, {1: "little", 2: "big"}
_HEAD = struct.Struct("<HHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_IDENT = 16
_MAX_SECTIONS = 100_000
_EXTENDED = 0xFFFF
_LOAD, _DYNAMIC = 1, 2
_NOBITS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """What the first 20 bytes say; ``machine`` is a name, or ``machine 42``."""

    bits: int
    order: str
    machine: str

    def __str__(self) -> str:
        return f"{self.bits}-bit {self.order}-endian {self.machine}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Bytes of the file that are mapped at an address."""

    address: int
    offset: int
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A section header; ``name`` is its place among the names of sections."""

    name: int
    kind: int
    offset: int
    size: int

    @property
    def in_file(self) -> bool:
        """Whether it has bytes in the file."""
        return self.kind != _NOBITS


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The head of a file that can be read on."""

    kind: Kind
    loads: tuple[Segment, ...]
    dynamic: tuple[int, int] | None
    sections_at: int
    section_size: int
    section_count: int
    section_names: int

    def offset_of(self, address: int, *, what: str) -> int:
        """Return where in the file an address lies; raise ElfError where nowhere."""
        for load in self.loads:
            if load.address <= address < load.address + load.size:
                return address - load.address + load.offset
        raise ElfError(f"the {what} is at an address that no segment maps")


def parse_kind(data: Bytes) -> Kind:
    """Read what an ELF file is for, of any class; raise ElfError where it is none."""
    ident = data.read(0, _IDENT + 4)
    if not ident:
        raise ElfError("the file is empty, wanted an ELF file")
    if not any(ident):
        raise BlankElfError("the file begins with zeros, wanted an ELF file")
    if ident[:4] != b"\x7fELF":
        raise ElfError("the file has no ELF header")
    if len(ident) < _IDENT + 4 or ident[4] not in _BITS or ident[5] not in _ORDERS:
        raise ElfError("the ELF header is cut short or of an unknown class")
    order = _ORDERS[ident[5]]
    (number,) = struct.unpack("<H" if order == "little" else ">H", ident[18:20])
    machine = MACHINES.get(number, f"machine {number}")
    return Kind(bits=_BITS[ident[4]], order=order, machine=machine)


def parse_header(data: Bytes, window: Window) -> Header:
    """Read the head of a 64-bit x86_64 or aarch64 file; raise ForeignElfError for any other."""
    kind = parse_kind(data)
    if kind.bits != 64 or kind.order != "little" or kind.machine not in READABLE:  # noqa: PLR2004
        raise ForeignElfError(f"the file is {kind}, wanted 64-bit little-endian x86_64 or aarch64")
    head = window.unpack(_HEAD, _IDENT, what="ELF header")
    _, _, _, _, segments_at, sections_at, _, _, segment_size, segments, size, count, names = head
    end = max(segments_at + segments * segment_size, sections_at + count * size)
    loads, dynamic = _segments(window, segments_at, count=segments, size=segment_size, end=end)
    return Header(
        kind=kind,
        loads=loads,
        dynamic=dynamic,
        sections_at=sections_at,
        section_size=size,
        section_count=count,
        section_names=names,
    )


def _segments(
    window: Window, start: int, *, count: int, size: int, end: int
) -> tuple[tuple[Segment, ...], tuple[int, int] | None]:
    """Read the program headers; ``end`` is where the tables that the head names come to theirs."""
    if count and size < _SEGMENT.size:
        raise ElfError(f"a program header takes {size} bytes, wanted {_SEGMENT.size}")
    if start + count * size > window.size:
        raise _cut_short(window, end)
    loads: list[Segment] = []
    dynamic = None
    for number in range(count):  # at most 65535: the field has 16 bits
        row = window.unpack(_SEGMENT, start + number * size, what="program headers")
        kind, _, offset, address, _, length, _, _ = row
        if kind == _LOAD:
            end = max(end, offset + length)
            loads.append(Segment(address=address, offset=offset, size=length))
        elif kind == _DYNAMIC:
            dynamic = (offset, length)
    if any(load.offset + load.size > window.size for load in loads):
        raise _cut_short(window, end)
    return tuple(loads), dynamic


def _cut_short(window: Window, end: int) -> ElfError:
    """Say how long the file should be: the section headers, which no loader needs, stand last."""
    return ElfError(f"{CUT_SHORT} {window.size} of {end} bytes")


def read_sections(window: Window, header: Header) -> tuple[Section, ...]:
    """Return the section headers; empty for a file stripped of them, or with a broken table.

    Raises UnreadElfError where there are too many of them.
    """
    start, size, count = header.sections_at, header.section_size, header.section_count
    if not start or size < _SECTION.size or start + size > window.size:
        return ()
    if count == 0:  # more than 65279 sections: the count stands in the first header
        count = window.unpack(_SECTION, start, what="section headers")[5]
    if start + count * size > window.size:
        return ()
    if count > _MAX_SECTIONS:
        raise UnreadElfError(f"there are {count} sections, at most {_MAX_SECTIONS} are read")
    table = window.table(start, count * size, what="section headers")
    rows = (_SECTION.unpack_from(table, number * size) for number in range(count))
    return tuple(Section(name=row[0], kind=row[1], offset=row[4], size=row[5]) for row in rows)


def named_sections(
    window: Window, header: Header, names: frozenset[bytes]
) -> tuple[tuple[bytes, Section], ...]:
    """Return the sections of these names that have bytes in the file, in file order."""
    sections = read_sections(window, header)
    at = header.section_names
    if at == _EXTENDED and sections:
        at = window.unpack(_SECTION, header.sections_at, what="section headers")[6]
    if at >= len(sections):
        return ()
    strings = window.table(sections[at].offset, sections[at].size, what="names of sections")
    found = []
    for section in sections:
        end = strings.find(b"\0", section.name)
        name = strings[section.name : end] if end >= 0 else b""
        if name in names and section.in_file:
            found.append((name, section))
    return tuple(found)
