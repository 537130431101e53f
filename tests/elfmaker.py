"""Write small ELF64 shared objects byte by byte, so that no test needs a compiler.

Symbols are written as text. Defined: ``name``, ``name@@V`` (of version V, the default one),
``name@V`` (of V, hidden), ``?name`` (weak). Wanted: ``name``, ``name@V=libx.so.1`` (of version V,
which libx.so.1 is asked for), ``?name`` (weak).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

X86_64, AARCH64 = 62, 183
PTX, SASS = 1, 2
ONLY_THIS, FAMILY, ZSTD = 0x100000, 0x200000, 0x8000
_BASE = 0x10000  # so that addresses differ from offsets
_PAGE = 0x1000


def gnu_hash(name: str) -> int:
    """Return the hash of GNU's table, written apart from the product's."""
    value = 5381
    for byte in name.encode():
        value = (value << 5) + value + byte & 0xFFFFFFFF
    return value


def sysv_hash(name: str) -> int:
    """Return the hash of the ELF specification."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte & 0xFFFFFFFF
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


@dataclass
class Strings:
    """A string table; ``merge`` lets a name be the tail of an older one, as linkers do."""

    merge: bool = False
    data: bytearray = field(default_factory=lambda: bytearray(1))

    def add(self, text: str) -> int:
        """Return where a string lies."""
        wanted = text.encode("utf-8", "surrogateescape") + b"\0"
        found = self.data.find(wanted if self.merge else b"\0" + wanted)
        if found >= 0:
            return found if self.merge else found + 1
        self.data += wanted
        return len(self.data) - len(wanted)


@dataclass(frozen=True)
class Symbol:
    """A symbol as the text says."""

    name: str
    weak: bool
    version: str | None
    hidden: bool
    library: str | None

    @classmethod
    def parse(cls, text: str) -> Symbol:
        """Read the notation of this module."""
        weak, text = text.startswith("?"), text.removeprefix("?")
        name, at, rest = text.partition("@")
        version, _, library = rest.removeprefix("@").partition("=")
        return cls(name, weak, version if at else None, not rest.startswith("@"), library or None)


def fat_binary(
    *entries: tuple[int, int, int], payload: bytes = b"\0" * 24, isa: tuple[int, int] = (9, 0)
) -> bytes:
    """Return a fat binary of entries (kind, capability, flags); ``isa`` is the version of PTX."""
    body = b""
    for kind, arch, flags in entries:
        body += struct.pack("<HHIQ", kind, 0x101, 64, len(payload))
        body += struct.pack("<IIHHIIIQQQ", 0, 0, isa[1], isa[0], arch, 0, 0, flags, 0, 0) + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def make_elf(  # noqa: PLR0913 - each is one thing that a file can have
    *,
    soname: str | None = None,
    needed: tuple[str, ...] = (),
    rpath: str | None = None,
    runpath: str | None = None,
    defines: tuple[str, ...] = (),
    wants: tuple[str, ...] = (),
    versions: tuple[str, ...] = (),
    hashes: str = "gnu",
    machine: int = X86_64,
    merge: bool = False,
    padding: int = 0,
    patched: bool = False,
    sections: dict[str, bytes] | None = None,
) -> bytes:
    """Return a shared object.

    ``hashes`` is ``gnu``, ``sysv``, ``both`` or empty. ``padding`` NULs follow the strings, as a
    removed RPATH leaves them. ``patched`` puts the dynamic tables at the end of the file into a
    segment of their own, as patchelf does.
    """
    strings = Strings(merge=merge)
    wanted = [Symbol.parse(text) for text in wants]
    defined = _in_bucket_order([Symbol.parse(text) for text in defines])
    symbols = [*wanted, *defined]
    numbers = _version_numbers(wanted, defined, versions)
    names = [strings.add(symbol.name) for symbol in symbols]
    parts: dict[str, bytes] = {"dynsym": _symbol_table(symbols, names, first=len(wanted))}
    if "gnu" in hashes or hashes == "both":
        parts["gnu_hash"] = _gnu_table(defined, first=len(wanted) + 1)
    if "sysv" in hashes or hashes == "both":
        parts["hash"] = _sysv_table(symbols)
    if numbers:
        parts["versym"] = _versym(symbols, numbers, defined=len(defined))
        parts["verneed"] = _verneed(wanted, numbers, strings)
        parts["verdef"] = _verdef(numbers, defined, versions, strings, soname)
    tags = [(1, strings.add(name)) for name in needed]
    for tag, text in ((14, soname), (15, rpath), (29, runpath)):
        if text is not None:
            tags.append((tag, strings.add(text)))
    strings.data += bytes(padding)
    parts["dynstr"] = bytes(strings.data)
    counts = {"verneed": len({one.library for one in wanted if one.library})}
    counts["verdef"] = len(_own_versions(defined, versions)) + 1
    return _lay_out(parts, tags, counts, machine=machine, patched=patched, sections=sections or {})


def _in_bucket_order(symbols: list[Symbol]) -> list[Symbol]:
    buckets = _bucket_count(symbols)
    return sorted(symbols, key=lambda symbol: gnu_hash(symbol.name) % buckets)


def _bucket_count(symbols: list[Symbol]) -> int:
    return max(1, len(symbols) // 3)


def _own_versions(defined: list[Symbol], versions: tuple[str, ...]) -> list[str]:
    own = dict.fromkeys((*versions, *(one.version for one in defined if one.version)))
    return list(own)


def _version_numbers(
    wanted: list[Symbol], defined: list[Symbol], versions: tuple[str, ...]
) -> dict[tuple[str | None, str], int]:
    pairs: dict[tuple[str | None, str], None] = {}
    pairs.update(dict.fromkeys((None, name) for name in _own_versions(defined, versions)))
    pairs.update(dict.fromkeys((one.library, one.version) for one in wanted if one.version))
    return {pair: number for number, pair in enumerate(pairs, start=2)}


def _symbol_table(symbols: list[Symbol], names: list[int], *, first: int) -> bytes:
    table = bytes(24)
    for number, (symbol, name) in enumerate(zip(symbols, names, strict=True)):
        section, value = (0, 0) if number < first else (5, 0x1234)
        info = (2 if symbol.weak else 1) << 4 | 2
        table += struct.pack("<IBBHQQ", name, info, 0, section, value, 8)
    return table


def _gnu_table(defined: list[Symbol], *, first: int) -> bytes:
    buckets = [0] * _bucket_count(defined)
    chain, bloom = [], 0
    for number, symbol in enumerate(defined):
        value = gnu_hash(symbol.name)
        bloom |= 1 << (value & 63) | 1 << (value >> 6 & 63)
        bucket = value % len(buckets)
        buckets[bucket] = buckets[bucket] or first + number
        following = defined[number + 1 : number + 2]
        last = not following or gnu_hash(following[0].name) % len(buckets) != bucket
        chain.append(value & ~1 | last)
    head = struct.pack("<IIIIQ", len(buckets), first if defined else 1, 1, 6, bloom)
    return head + struct.pack(f"<{len(buckets) + len(chain)}I", *buckets, *chain)


def _sysv_table(symbols: list[Symbol]) -> bytes:
    buckets = [0] * max(1, len(symbols) // 3)
    chain = [0] * (len(symbols) + 1)
    for number, symbol in enumerate(symbols, start=1):
        bucket = sysv_hash(symbol.name) % len(buckets)
        chain[number], buckets[bucket] = buckets[bucket], number
    words = (len(buckets), len(chain), *buckets, *chain)
    return struct.pack(f"<{len(words)}I", *words)


def _versym(
    symbols: list[Symbol], numbers: dict[tuple[str | None, str], int], *, defined: int
) -> bytes:
    out = [0]
    for at, symbol in enumerate(symbols):
        own = at >= len(symbols) - defined
        number = 1 if own else 0
        if symbol.version is not None:
            number = numbers[(None if own else symbol.library, symbol.version)]
        out.append(number | (0x8000 if own and symbol.version and symbol.hidden else 0))
    return struct.pack(f"<{len(out)}H", *out)


def _verneed(
    wanted: list[Symbol], numbers: dict[tuple[str | None, str], int], strings: Strings
) -> bytes:
    libraries: dict[str, list[str]] = {}
    for one in wanted:
        if one.library and one.version:
            known = libraries.setdefault(one.library, [])
            known += [one.version] if one.version not in known else []
    out = b""
    for at, (library, names) in enumerate(libraries.items(), start=1):
        after = 0 if at == len(libraries) else 16 + 16 * len(names)
        out += struct.pack("<HHIII", 1, len(names), strings.add(library), 16, after)
        for place, name in enumerate(names, start=1):
            row = (sysv_hash(name), 0, numbers[(library, name)], strings.add(name))
            out += struct.pack("<IHHII", *row, 0 if place == len(names) else 16)
    return out


def _verdef(
    numbers: dict[tuple[str | None, str], int],
    defined: list[Symbol],
    versions: tuple[str, ...],
    strings: Strings,
    soname: str | None,
) -> bytes:
    own = _own_versions(defined, versions)
    if not own:
        return b""
    rows = [(1, 1, soname or "x.so"), *((0, numbers[(None, name)], name) for name in own)]
    out = b""
    for at, (flags, number, name) in enumerate(rows, start=1):
        after = 0 if at == len(rows) else 28
        out += struct.pack("<HHHHIII", 1, flags, number, 1, sysv_hash(name), 20, after)
        out += struct.pack("<II", strings.add(name), 0)
    return out


_TAGS = {
    "dynsym": 6,
    "dynstr": 5,
    "gnu_hash": 0x6FFFFEF5,
    "hash": 4,
    "versym": 0x6FFFFFF0,
    "verneed": 0x6FFFFFFE,
    "verdef": 0x6FFFFFFC,
}


def _lay_out(
    parts: dict[str, bytes],
    tags: list[tuple[int, int]],
    counts: dict[str, int],
    *,
    machine: int,
    patched: bool,
    sections: dict[str, bytes],
) -> bytes:
    out = bytearray(64 + 4 * 56)
    place: dict[str, tuple[int, int]] = {}
    for name, data in sections.items() if patched else ():
        place[name] = _append(out, data)
    border = len(out)
    if patched:
        out += bytes(-len(out) % _PAGE)
        border = len(out)
    shift = _PAGE if patched else 0
    for name, data in parts.items():
        if data:
            place[name] = _append(out, data)
            tags.append((_TAGS[name], place[name][0] + _BASE + shift))
    tags += [(10, len(parts["dynstr"])), (11, 24)]
    for name, tag in (("verneed", 0x6FFFFFFF), ("verdef", 0x6FFFFFFD)):
        if parts.get(name):
            tags.append((tag, counts[name]))
    dynamic = _append(out, b"".join(struct.pack("<QQ", *tag) for tag in (*tags, (0, 0))))
    end = len(out)
    for name, data in sections.items() if not patched else ():
        place[name] = _append(out, data)
    at, count = _section_headers(out, {name: place[name] for name in sections}, place["dynsym"])
    segments = [(1, 0, _BASE, border if patched else end)]
    segments += [(1, border, border + _BASE + shift, end - border)] if patched else []
    segments += [(2, dynamic[0], dynamic[0] + _BASE + shift, dynamic[1])]
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = struct.pack(
        "<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, at, 0, 64, 56, len(segments), 64, count, 1
    )
    out[:64] = ident + head
    for number, (kind, offset, address, size) in enumerate(segments):
        row = struct.pack("<IIQQQQQQ", kind, 6, offset, address, address, size, size, _PAGE)
        out[64 + 56 * number : 64 + 56 * (number + 1)] = row
    return bytes(out)


def _append(out: bytearray, data: bytes) -> tuple[int, int]:
    out += bytes(-len(out) % 8)
    out += data
    return len(out) - len(data), len(data)


def _section_headers(
    out: bytearray, sections: dict[str, tuple[int, int]], dynsym: tuple[int, int]
) -> tuple[int, int]:
    names = Strings()
    rows = [(names.add(name), 1, *place) for name, place in sections.items()]
    rows.append((names.add(".dynsym"), 11, *dynsym))
    own = names.add(".shstrtab")
    place = _append(out, bytes(names.data))
    rows = [(0, 0, 0, 0), (own, 3, *place), *rows]
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, 0, 0, 8, 0)
        for name, kind, offset, size in rows
    )
    return _append(out, table)[0], len(rows)


@dataclass(frozen=True)
class Held:
    """Bytes in memory, read as the readers ask for."""

    data: bytes

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.data)

    def read(self, offset: int, length: int) -> bytes:
        """Return a piece."""
        return self.data[offset : offset + length]
