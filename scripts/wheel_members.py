"""Read the head of a file inside a wheel on its host, or all of it, piece by piece."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from envbuild.core.zipdirectory import LOCAL_HEADER
from envbuild.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.zipdirectory import Member
    from envbuild.world.remotezip import RemoteZip

FIRST_PIECE = 32 << 10
_LARGEST_PIECE = 8 << 20
_DEFLATED = 8


def pieces(archive: RemoteZip, member: Member) -> Iterator[bytes]:
    """Give a member unpacked from its start; each range that is read is twice the one before.

    Nothing is read before it is asked for. The checksum is not compared: few read to the end.
    """
    unpack = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == _DEFLATED else None
    head = _part(archive, member.offset, LOCAL_HEADER)
    at = member.offset + LOCAL_HEADER + sum(struct.unpack_from("<HH", head, 26))
    end = at + member.compressed
    length = FIRST_PIECE
    while at < end:
        data = _part(archive, at, min(length, end - at))
        at += len(data)
        length = min(length * 2, _LARGEST_PIECE)
        yield unpack.decompress(data) if unpack is not None else data


def _part(archive: RemoteZip, start: int, length: int) -> bytes:
    part = archive.client.part(archive.url, start=start, length=length)
    if part is None or part.total != archive.tail.total:
        raise WorldError(f"`{archive.url}` changed while it was read", hint="try again")
    return part.data
