"""Which minor releases of torch export every symbol that an object imports.

The table knows the symbols that PyPI's x86_64 wheels of torch export, without those of torch's
internals; `scripts/build_torch_abi.py` says how it is laid out and where it comes from. It is
read when the first symbol is judged.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from envbuild.core.elf.libnames import is_torch_symbol
from envbuild.core.packagefile import package_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD = b"torch-abi 1"
# The table's 2.6 is PyPI's wheel, of the old C++11 ABI; the wheels of CUDA 12.6 have the new one.
_OF_BOTH_ABIS = "2.6"
_NEW_STRING = "7__cxx11"


def torch_minors() -> tuple[str, ...]:
    """Return the minors that the table knows, oldest first."""
    return _table()[0]


def torch_range(symbols: Iterable[str]) -> tuple[str, ...] | None:
    """Return the minors of torch that export all of these symbols, oldest first.

    Names that are not of torch or that the table does not know are not judged; None is returned
    where no name is judged. An empty answer means that no release known exports them together.
    It is necessary that the installed minor is among them, not sufficient.
    """
    names = [name for name in symbols if is_torch_symbol(name.encode())]
    if not names:
        return None
    minors, table = _table()
    every = (1 << len(minors)) - 1
    both = 1 << minors.index(_OF_BOTH_ABIS) if _OF_BOTH_ABIS in minors else 0
    masks = [
        mask | both if _NEW_STRING in name else mask
        for name in names
        if (mask := table.get(_hash(name))) is not None
    ]
    if not masks:
        return None
    for mask in masks:
        every &= mask
    return tuple(minor for at, minor in enumerate(minors) if every >> at & 1)


def _hash(name: str) -> int:
    import hashlib  # noqa: PLC0415 - brings OpenSSL in

    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=5).digest(), "big")


@cache
def _table() -> tuple[tuple[str, ...], dict[int, int]]:
    """Read the table with no loop of Python's over its names."""
    import lzma  # noqa: PLC0415 - only for torch extensions

    packed = package_bytes("envbuild.core", "torch_abi.bin")
    head, minors, masks, count, planes = lzma.decompress(packed).split(b"\n", 4)
    if head != HEAD:
        raise ValueError(f"the table of torch's symbols is {head!r}, wanted {HEAD!r}")
    names = int(count)
    steps = bytearray(4 * names)
    for at in range(4):
        steps[at::4] = planes[at * names : (at + 1) * names]
    hashes = accumulate(struct.unpack(f"<{names}I", steps))
    known = [int(mask, 16) for mask in masks.split(b",")]
    groups = map(known.__getitem__, planes[4 * names : 5 * names])
    return tuple(minors.decode().split(",")), dict(zip(hashes, groups, strict=True))
