"""The directory of a zip archive, against archives that the standard library writes."""

from __future__ import annotations

import io
import struct
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.zipdirectory import Member, find_directory, member_data, parse_directory
from envbuild.errors import WorldError

METADATA = b"Name: torch\n" * 40


def archive(
    files: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED, comment: bytes = b""
) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as opened:
        opened.comment = comment
        for name, data in files.items():
            opened.writestr(name, data)
    return buffer.getvalue()


def members(data: bytes) -> dict[str, Member]:
    found = find_directory(data[-400:], size=len(data))
    directory = data[found.offset : found.offset + found.length]
    return {m.name: m for m in parse_directory(directory, entries=found.entries)}


FILES = {"torch/lib/a.so": bytes(5000), "torch-1.dist-info/METADATA": METADATA, "ü": b""}


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("comment", [b"", b"PK a comment"])
def test_every_member_is_read(method: int, comment: bytes) -> None:
    data = archive(FILES, method=method, comment=comment)
    found = members(data)
    assert {
        name: member_data(data[m.offset : m.offset + m.span], m) for name, m in found.items()
    } == FILES


def wide_entry(data: bytes) -> bytes:
    """Rewrite the first directory entry so that its offset stands in a zip64 field."""
    found = find_directory(data, size=len(data))
    entry = bytearray(data[found.offset : found.offset + found.length])
    offset = struct.unpack_from("<I", entry, 42)[0]
    name_length = struct.unpack_from("<H", entry, 28)[0]
    struct.pack_into("<H", entry, 30, 12)
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    return bytes(entry[: 46 + name_length]) + struct.pack("<HHQ", 1, 8, offset)


def test_zip64_entry() -> None:
    data = archive({"a/METADATA": METADATA})
    (member,) = parse_directory(wide_entry(data), entries=1)
    assert member_data(data, member) == METADATA


def test_zip64_end() -> None:
    data = archive(FILES)
    plain = find_directory(data, size=len(data))
    end = plain.offset + plain.length
    body = data[:end]
    wide = struct.pack(
        "<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 3, 3, plain.length, plain.offset
    )
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
    short = struct.pack(
        "<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0
    )
    data = body + wide + locator + short
    assert find_directory(data[-200:], size=len(data)) == plain
    assert set(members(data)) == set(FILES)
    with pytest.raises(WorldError, match="zip64 end"):
        find_directory(data[-60:], size=len(data))
    with pytest.raises(WorldError, match="without its locator"):
        find_directory(short, size=len(short))


@pytest.mark.parametrize("data", [b"", b"PK", b"<html>" * 90, archive(FILES)[:-30]])
def test_no_directory(data: bytes) -> None:
    with pytest.raises(WorldError, match="no zip directory"):
        find_directory(data, size=len(data))


def test_directory_that_is_cut_off() -> None:
    data = archive(FILES)
    found = find_directory(data, size=len(data))
    with pytest.raises(WorldError, match=r"cut off|ends after 2 of 3"):
        parse_directory(data[found.offset : found.offset + found.length - 5], entries=3)
    with pytest.raises(WorldError, match="outside of its file"):
        find_directory(data[-200:], size=found.offset)


def test_member_that_is_not_what_the_directory_says() -> None:
    data = archive({"a": METADATA})
    member = members(data)["a"]
    with pytest.raises(WorldError, match="is not where"):
        member_data(data[1:], member)
    with pytest.raises(WorldError, match="is cut off"):
        member_data(data[:40], member)
    stored = archive({"a": METADATA}, method=zipfile.ZIP_STORED)
    flipped = stored.replace(b"Name", b"Game", 1)
    with pytest.raises(WorldError, match="checksum"):
        member_data(flipped, members(stored)["a"])


def test_a_bomb_is_not_unpacked() -> None:
    data = archive({"a": bytes(10_000_000)})
    honest = members(data)["a"]
    lying = Member(
        name="a", offset=0, compressed=honest.compressed, size=10, method=8, crc=honest.crc
    )
    with pytest.raises(WorldError, match="checksum"):
        member_data(data, lying)


def test_other_packing() -> None:
    data = archive({"a": METADATA}, method=zipfile.ZIP_LZMA)
    with pytest.raises(WorldError, match="method 14, wanted deflate"):
        member_data(data, members(data)["a"])


def read_all(data: bytes) -> None:
    found = find_directory(data, size=len(data))
    directory = data[found.offset : found.offset + found.length]
    for member in parse_directory(directory, entries=found.entries):
        member_data(data[member.offset :], member)


@given(st.binary(), st.integers(0, 9))
def test_any_bytes(data: bytes, entries: int) -> None:
    with suppress(WorldError):
        read_all(data)
    with suppress(WorldError):
        parse_directory(data, entries=entries)


@given(st.data(), st.integers(1, 255))
def test_any_flipped_byte(data: st.DataObject, flip: int) -> None:
    broken = bytearray(archive(FILES))
    broken[data.draw(st.integers(0, len(broken) - 1))] ^= flip
    with suppress(WorldError):
        read_all(bytes(broken))
