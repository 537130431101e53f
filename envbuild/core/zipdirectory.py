"""Read the directory of a zip archive from pieces of its bytes, so that a wheel stays remote.

The layout is that of PKWARE's APPNOTE, sections 4.3.7 (local header), 4.3.12 (directory),
4.3.14 to 4.3.16 (its end, and its zip64 forms).
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from envbuild.errors import WorldError

LOCAL_HEADER = 30
_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_ENTRY = struct.Struct("<4s6H3I5H2I")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 0x1


@dataclass(frozen=True, kw_only=True, slots=True)
class Directory:
    """Where the central directory of an archive lies, in bytes from its start."""

    offset: int
    length: int
    entries: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One file of an archive: where its local header lies and how it is packed.

    ``compressed`` and ``size`` are its bytes in the archive and unpacked.
    """

    name: str
    offset: int
    compressed: int
    size: int
    method: int
    crc: int
    encrypted: bool = False

    @property
    def span(self) -> int:
        """How many bytes from ``offset`` surely hold it: local extra fields may be longer."""
        return LOCAL_HEADER + len(self.name.encode()) + 1024 + self.compressed


def find_directory(tail: bytes, *, size: int) -> Directory:
    """Find the central directory from the last bytes of an archive of ``size`` bytes.

    Raises WorldError where they hold no end of an archive.
    """
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < 22:  # noqa: PLR2004 - the fixed length of the record
        raise WorldError("the file has no zip directory at its end, wanted a whole wheel")
    entries, length, offset = struct.unpack_from("<HII", tail, at + 10)
    if entries == _FULL16 or _FULL32 in {length, offset}:
        entries, length, offset = _zip64(tail, at=at, start=size - len(tail))
    if offset + length > size:
        raise WorldError("the zip directory lies outside of its file, wanted a whole wheel")
    return Directory(offset=offset, length=length, entries=entries)


def _zip64(tail: bytes, *, at: int, start: int) -> tuple[int, int, int]:
    locator = at - 20
    if locator < 0 or tail[locator : locator + 4] != _LOCATOR64:
        raise WorldError("the zip directory is in zip64 form without its locator")
    (offset,) = struct.unpack_from("<Q", tail, locator + 8)
    record = offset - start
    if record < 0 or tail[record : record + 4] != _END64 or record + 56 > len(tail):
        raise WorldError("the zip64 end of the directory is not where its locator says")
    entries, length, directory = struct.unpack_from("<QQQ", tail, record + 32)
    return entries, length, directory


def parse_directory(data: bytes, *, entries: int) -> tuple[Member, ...]:
    """Read the central directory; raise WorldError where it is broken."""
    members: list[Member] = []
    at = 0
    for _ in range(entries):
        if at + _ENTRY.size > len(data) or data[at : at + 4] != b"PK\x01\x02":
            raise WorldError(f"the zip directory ends after {len(members)} of {entries} files")
        member, at = _entry(data, at)
        members.append(member)
    return tuple(members)


def _entry(data: bytes, at: int) -> tuple[Member, int]:
    fields = _ENTRY.unpack_from(data, at)
    flags, method, crc, compressed, size = fields[3], fields[4], *fields[7:10]
    name_length, extra_length, comment_length, offset = *fields[10:13], fields[16]
    name_at = at + _ENTRY.size
    extra_at = name_at + name_length
    end = extra_at + extra_length + comment_length
    if end > len(data):
        raise WorldError("the zip directory is cut off within an entry")
    size, compressed, offset = _wide(
        data[extra_at : extra_at + extra_length], size, compressed, offset
    )
    name = data[name_at:extra_at].decode("utf-8", errors="replace")
    member = Member(
        name=name,
        offset=offset,
        compressed=compressed,
        size=size,
        method=method,
        crc=crc,
        encrypted=bool(flags & _ENCRYPTED),
    )
    return member, end


def _wide(extra: bytes, *values: int) -> tuple[int, int, int]:
    """Replace each value that is full by its 64-bit form from the zip64 extra field."""
    field = _extra_field(extra, 1)
    wide = []
    for value in values:
        if value != _FULL32:
            wide.append(value)
            continue
        if len(field) < 8:  # noqa: PLR2004 - one 64-bit number
            raise WorldError("a zip64 entry lacks its 64-bit sizes")
        wide.append(int.from_bytes(field[:8], "little"))
        field = field[8:]
    size, compressed, offset = wide
    return size, compressed, offset


def _extra_field(extra: bytes, wanted: int) -> bytes:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == wanted:
            return extra[at + 4 : at + 4 + length]
        at += 4 + length
    return b""


def member_data(data: bytes, member: Member) -> bytes:
    """Unpack a member from the bytes that begin at its local header, and check its CRC."""
    if len(data) < LOCAL_HEADER or data[:4] != b"PK\x03\x04":
        raise WorldError(f"`{member.name}` is not where the zip directory says")
    name_length, extra_length = struct.unpack_from("<HH", data, 26)
    start = LOCAL_HEADER + name_length + extra_length
    packed = data[start : start + member.compressed]
    if len(packed) < member.compressed:
        raise WorldError(f"`{member.name}` is cut off in its archive")
    unpacked = _unpack(packed, member)
    if len(unpacked) != member.size or zlib.crc32(unpacked) != member.crc:
        raise WorldError(f"`{member.name}` does not have the checksum that its archive states")
    return unpacked


def _unpack(packed: bytes, member: Member) -> bytes:
    if member.encrypted or member.method not in {_STORED, _DEFLATED}:
        raise WorldError(f"`{member.name}` is packed by method {member.method}, wanted deflate")
    if member.method == _STORED:
        return packed
    try:
        # One byte more than stated is enough to see that the statement is wrong.
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)
    except zlib.error as error:
        raise WorldError(f"`{member.name}` cannot be unpacked: {error}") from None
