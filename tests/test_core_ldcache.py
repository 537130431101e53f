"""The cache of the dynamic loader."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from fuzzing import FUZZ, mutated
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.link.ldcache import MAGIC, LdCacheError, parse_ld_cache

X86_64, AARCH64 = 0x0303, 0x0A03


def cache(*entries: tuple[str, str, int, int], before: bytes = b"", flags: int = 2) -> bytes:
    """Write a cache of entries (name, path, flags, hwcap)."""
    at = 48 + 24 * len(entries)
    table, strings = b"", b""
    for name, path, kind, hwcap in entries:
        key, value = at + len(strings), at + len(strings) + len(name) + 1
        strings += name.encode() + b"\0" + path.encode() + b"\0"
        table += struct.pack("<iIIIQ", kind, key, value, 0, hwcap)
    head = struct.pack("<20sIIB3sI12x", MAGIC, len(entries), len(strings), flags, b"", 0)
    return before + head + table + strings


def test_paths_of_one_machine() -> None:
    data = cache(
        ("libc.so.6", "/lib/aarch64/libc.so.6", AARCH64, 0),
        ("libc.so.6", "/lib/x86/libc.so.6", X86_64, 0),
        ("libc.so.6", "/lib32/libc.so.6", 0x0003, 0),
    )
    assert parse_ld_cache(data, machine="x86_64") == {"libc.so.6": ("/lib/x86/libc.so.6",)}
    assert parse_ld_cache(data, machine="aarch64") == {"libc.so.6": ("/lib/aarch64/libc.so.6",)}
    assert parse_ld_cache(data, machine="riscv64") == {}


def test_paths_for_any_processor_come_first() -> None:
    data = cache(
        ("libm.so.6", "/lib/v3/libm.so.6", X86_64, 1 << 62),
        ("libm.so.6", "/lib/libm.so.6", X86_64, 0),
    )
    assert parse_ld_cache(data, machine="x86_64") == {
        "libm.so.6": ("/lib/libm.so.6", "/lib/v3/libm.so.6")
    }


def test_an_older_table_may_stand_before_it() -> None:
    data = cache(("a.so", "/a.so", X86_64, 0), before=b"ld.so-1.7.0\0" + bytes(36))
    assert parse_ld_cache(data, machine="x86_64") == {"a.so": ("/a.so",)}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no table of glibc"),
        (b"ld.so-1.7.0\0" + bytes(40), "no table of glibc"),
        (cache(("a.so", "/a.so", X86_64, 0))[:60], "cut short"),
        (cache(("a.so", "/a.so", X86_64, 0))[:-1], "has no end"),
        (cache(flags=3), "big-endian"),
    ],
)
def test_what_is_no_cache(data: bytes, said: str) -> None:
    with pytest.raises(LdCacheError, match=said):
        parse_ld_cache(data, machine="x86_64")


VALID = cache(("libc.so.6", "/lib/libc.so.6", X86_64, 0), ("libm.so.6", "/lib/m", X86_64, 1))


@FUZZ
@given(
    data=st.one_of(
        st.binary(max_size=200), st.binary(max_size=200).map(MAGIC.__add__), mutated(VALID)
    )
)
def test_broken_caches_only_raise_the_declared_error(data: bytes) -> None:
    with suppress(LdCacheError):
        found = parse_ld_cache(data, machine="x86_64")
        assert all(isinstance(path, str) for paths in found.values() for path in paths)
