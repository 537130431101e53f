"""Build `envbuild/core/data/torch_abi.bin`, the table of the symbols that torch exports.

    python scripts/build_torch_abi.py FACTS_DIR [--out FILE]

The facts are `torch_symbols.txt.xz` (each c10, at and torch name that a shared object of the
PyPI x86_64 wheels of torch 2.4.0 to 2.15.0 exports, with a hexadecimal mask of those releases)
and `torch_abi_small.bin` (which of these names are worth keeping: none of torch's internals;
40-bit hashes). Collected on 2026-11-29 from the wheels on PyPI.

What is written is an xz stream of four lines: `torch-abi 1`; the minors joined by commas, oldest
first; the sets of minors that occur, as hexadecimal masks joined by commas (bit 0 is the oldest
minor); the number of names. Then five planes of one byte a name follow, the names in the order of
their hashes: four planes of the difference from the hash before (a little-endian u32, its lowest
bytes first), and one of the number of the name's set. A hash is the first five bytes of BLAKE2b
of the mangled name with a digest of five bytes, read as a big-endian number.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import struct
import sys
from pathlib import Path

from envbuild.core.torchabi import HEAD

OUT = Path(__file__).parents[1] / "envbuild" / "core" / "data" / "torch_abi.bin"
_OLD_HEAD = b"TABI1\n"
_MORE = 0x80


def hash_of(name: str) -> int:
    """Return the 40-bit hash of a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=5).digest(), "big")


def kept_hashes(path: Path) -> tuple[tuple[str, ...], set[int]]:
    """Return the releases of the facts, and the hashes of the names to keep.

    After two lines, each set of names is a u32 mask, a u32 count, and rising hashes as
    differences in groups of seven bits, lowest first (LEB128).
    """
    data = lzma.decompress(path.read_bytes())
    end = data.index(b"\n", len(_OLD_HEAD))
    kept: set[int] = set()
    at = end + 1
    while at < len(data):
        (count,) = struct.unpack_from("<I", data, at + 4)
        at += 8
        value = 0
        for _ in range(count):
            step, at = leb128(data, at)
            value += step
            kept.add(value)
    return tuple(data[len(_OLD_HEAD) : end].decode().split(",")), kept


def leb128(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset, and where it ends."""
    value = shift = 0
    while data[at] & _MORE:
        value |= (data[at] & ~_MORE) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


def masks_of(path: Path, releases: tuple[str, ...], kept: set[int]) -> dict[int, int]:
    """Return the mask over minors of each hash to keep."""
    minors = minors_of(releases)
    masks: dict[int, int] = {}
    for line in lzma.decompress(path.read_bytes()).decode().splitlines():
        name, _, text = line.rpartition(" ")
        found = hash_of(name)
        if found in kept:
            given = int(text, 16)
            bits = {
                release.rpartition(".")[0] for at, release in enumerate(releases) if given >> at & 1
            }
            masks[found] = sum(1 << at for at, minor in enumerate(minors) if minor in bits)
    if len(masks) != len(kept):
        sys.exit(f"found the names of {len(masks)} of {len(kept)} hashes")
    return masks


def minors_of(releases: tuple[str, ...]) -> tuple[str, ...]:
    """Return the minors of the releases, in their order."""
    return tuple(dict.fromkeys(release.rpartition(".")[0] for release in releases))


def table(minors: tuple[str, ...], masks: dict[int, int]) -> bytes:
    """Return the table, not compressed."""
    sets = sorted(set(masks.values()))
    hashes = sorted(masks)
    steps = struct.pack(
        f"<{len(hashes)}I", *(b - a for a, b in zip([0, *hashes], hashes, strict=False))
    )
    lines = (
        HEAD,
        ",".join(minors).encode(),
        ",".join(f"{mask:x}" for mask in sets).encode(),
        str(len(hashes)).encode(),
    )
    planes = (steps[at::4] for at in range(4))
    numbers = bytes(sets.index(masks[found]) for found in hashes)
    return b"\n".join(lines) + b"\n" + b"".join(planes) + numbers


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description="Build the table of torch's exported symbols.")
    parser.add_argument("facts", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    releases, kept = kept_hashes(options.facts / "torch_abi_small.bin")
    masks = masks_of(options.facts / "torch_symbols.txt.xz", releases, kept)
    data = lzma.compress(table(minors_of(releases), masks), preset=9, check=lzma.CHECK_CRC32)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(data)
    print(f"{options.out}: {len(masks)} names, {len(data)} bytes")


if __name__ == "__main__":
    main()
