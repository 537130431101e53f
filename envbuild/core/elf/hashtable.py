"""The hash tables of an ELF file: how many symbols there are, and which may bear a name."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

from envbuild.core.elf.dynamic import GNU_HASH, HASH
from envbuild.core.elf.pieces import ElfError, UnreadElfError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.elf.dynamic import Dynamic
    from envbuild.core.elf.header import Header
    from envbuild.core.elf.pieces import Window

SYMBOL_SIZE = 24
MAX_SYMBOLS = 1_000_000
_MASK32 = 0xFFFFFFFF
_GNU_HEAD = struct.Struct("<IIII")
_SYSV_HEAD = struct.Struct("<II")
_WORD = struct.Struct("<I")
_GNU, _SYSV = "GNU hash table", "hash table"


class HashTable(Protocol):
    """Numbers of the symbols that may bear a name; the caller compares the names."""

    def candidates(self, name: bytes) -> Iterator[int]:
        """Give the numbers in the order of the table; raise ElfError on a cycle."""
        ...


def gnu_hash(name: bytes) -> int:
    """Return the hash that ``DT_GNU_HASH`` uses."""
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & _MASK32
    return value


def sysv_hash(name: bytes) -> int:
    """Return the hash that ``DT_HASH`` and the version tables use."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ ((value >> 24) & 0xF0)) & 0x0FFFFFFF
    return value


class GnuTable:
    """``DT_GNU_HASH``: a bloom filter, buckets, and chains that end with an odd number."""

    __slots__ = ("_bloom", "_buckets", "_chain", "_first", "_shift")

    def __init__(self, window: Window, at: int, *, symbols: int) -> None:
        buckets, self._first, words, self._shift = _gnu_head(window, at)
        bloom_at = at + _GNU_HEAD.size
        buckets_at = bloom_at + words * 8
        chain_at = buckets_at + buckets * 4
        chain = max(symbols - self._first, 0) * 4
        self._bloom = memoryview(window.table(bloom_at, words * 8, what=_GNU)).cast("Q")
        self._buckets = memoryview(window.table(buckets_at, buckets * 4, what=_GNU)).cast("I")
        self._chain = memoryview(window.table(chain_at, chain, what=_GNU)).cast("I")

    def candidates(self, name: bytes) -> Iterator[int]:
        """Give the numbers of the symbols whose hash is that of the name."""
        value = gnu_hash(name)
        word = self._bloom[(value >> 6) & (len(self._bloom) - 1)]
        if not (word >> (value & 63)) & (word >> ((value >> (self._shift & 63)) & 63)) & 1:
            return
        number = self._buckets[value % len(self._buckets)] - self._first
        if number < 0:
            return
        while number < len(self._chain):
            found = self._chain[number]
            if found | 1 == value | 1:
                yield number + self._first
            if found & 1:
                return
            number += 1
        raise ElfError("a chain of the GNU hash table has no end")


class SysvTable:
    """``DT_HASH``: buckets and linked chains."""

    __slots__ = ("_buckets", "_chain")

    def __init__(self, window: Window, at: int) -> None:
        buckets, chain = window.unpack(_SYSV_HEAD, at, what=_SYSV)
        if not buckets:
            raise ElfError("the hash table has no buckets")
        table = window.table(at + _SYSV_HEAD.size, (buckets + chain) * 4, what=_SYSV)
        words = memoryview(table).cast("I")
        self._buckets, self._chain = words[:buckets], words[buckets:]

    def candidates(self, name: bytes) -> Iterator[int]:
        """Give the numbers of the symbols in the bucket of the name."""
        number = self._buckets[sysv_hash(name) % len(self._buckets)]
        for _ in range(len(self._chain) + 1):
            if number == 0:
                return
            if number >= len(self._chain):
                raise ElfError("a chain of the hash table leaves it")
            yield number
            number = self._chain[number]
        raise ElfError("a chain of the hash table is a cycle")


def hash_table(
    window: Window, header: Header, dynamic: Dynamic, *, symbols: int
) -> HashTable | None:
    """Return the table a loader would use, or None where there is none."""
    tags = dynamic.tags
    if GNU_HASH in tags:
        return GnuTable(window, header.offset_of(tags[GNU_HASH], what=_GNU), symbols=symbols)
    if HASH in tags:
        return SysvTable(window, header.offset_of(tags[HASH], what=_SYSV))
    return None


def hashed_count(window: Window, header: Header, dynamic: Dynamic) -> int | None:
    """Return how many symbols the hash tables speak of; None where they do not tell.

    The GNU table of a file that exports nothing does not tell: its first number is arbitrary.
    """
    tags = dynamic.tags
    if HASH in tags:
        at = header.offset_of(tags[HASH], what=_SYSV)
        _, count = window.unpack(_SYSV_HEAD, at, what=_SYSV)
        return int(count)
    if GNU_HASH in tags:
        return _gnu_count(window, header.offset_of(tags[GNU_HASH], what=_GNU))
    return None


def _gnu_head(window: Window, at: int) -> tuple[int, int, int, int]:
    buckets, first, words, shift = window.unpack(_GNU_HEAD, at, what=_GNU)
    if not buckets or not words or words & (words - 1):
        raise ElfError(f"the GNU hash table has {buckets} buckets and {words} words of its filter")
    return buckets, first, words, shift


def _gnu_count(window: Window, at: int) -> int | None:
    buckets, first, words, _ = _gnu_head(window, at)
    buckets_at = at + _GNU_HEAD.size + words * 8
    last = max(memoryview(window.table(buckets_at, buckets * 4, what=_GNU)).cast("I"))
    if last < first or last == 0:
        return None
    chain_at = buckets_at + buckets * 4
    while True:
        (word,) = window.unpack(_WORD, chain_at + (last - first) * 4, what=_GNU)
        last += 1
        if word & 1:
            return int(last)
        if last > MAX_SYMBOLS:
            raise UnreadElfError(f"the GNU hash table holds more than {MAX_SYMBOLS} symbols")
