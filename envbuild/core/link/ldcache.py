"""Read ``/etc/ld.so.cache``: which file the loader takes for a library of the system.

The layout is ``struct cache_file_new`` of glibc's ``dl-cache.h``: a magic, the number of entries,
the length of the strings, then entries of 24 bytes (flags, key, value, OS version, hwcap) whose
key and value are offsets from the magic. An older table may stand before it.
"""

from __future__ import annotations

import struct

MAGIC = b"glibc-ld.so.cache1.1"
LIMIT = 16 << 20
_HEAD = struct.Struct("<20sIIB3sI12x")
_ENTRY = struct.Struct("<iIIIQ")
_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03}
_MAX_NAME = 4096
_BIG_ENDIAN = 3


class LdCacheError(ValueError):
    """The bytes are no cache of the loader, and why."""


def parse_ld_cache(data: bytes, *, machine: str) -> dict[str, tuple[str, ...]]:
    """Return the paths of each library for a machine, those for any processor first."""
    start = data.find(MAGIC)
    if start < 0 or start + _HEAD.size > len(data):
        raise LdCacheError("the loader's cache has no table of glibc 2.2 or newer")
    _, count, _, flags, _, _ = _HEAD.unpack_from(data, start)
    if flags & 3 == _BIG_ENDIAN:
        raise LdCacheError("the loader's cache is of a big-endian machine")
    if start + _HEAD.size + count * _ENTRY.size > len(data):
        raise LdCacheError(f"the loader's cache is cut short, wanted {count} entries")
    wanted = _FLAGS.get(machine)
    plain: dict[str, list[str]] = {}
    tuned: dict[str, list[str]] = {}
    for number in range(count):
        row = _ENTRY.unpack_from(data, start + _HEAD.size + number * _ENTRY.size)
        if row[0] == wanted:
            goal = tuned if row[4] else plain
            key, value = (_text(data, start + offset) for offset in (row[1], row[2]))
            goal.setdefault(key, []).append(value)
    names = dict.fromkeys((*plain, *tuned))
    return {name: (*plain.get(name, ()), *tuned.get(name, ())) for name in names}


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + _MAX_NAME)
    if end < 0:
        raise LdCacheError("a name in the loader's cache has no end")
    try:
        return data[at:end].decode("utf-8")
    except UnicodeDecodeError:
        raise LdCacheError("a name in the loader's cache is not UTF-8") from None
