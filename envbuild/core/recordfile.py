"""Read RECORD: the files of a distribution, with their hashes and sizes."""

from __future__ import annotations

import posixpath
from binascii import Error as BinasciiError
from binascii import a2b_base64
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from envbuild.errors import WorldError
from envbuild.model.installed import RecordEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_LINES = 1_000_000
_LONGEST_PATH = 4096
_SHA256 = "sha256="
_SHA256_BYTES = 32
_SHA256_LENGTH = len(_SHA256) + 43
_URLSAFE = bytes.maketrans(b"-_", b"+/")
_COLUMNS = 3
_DIGITS = 20
_MOST_REFUSED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What a RECORD says; ``refused`` says which of its lines were not taken, and why."""

    entries: tuple[RecordEntry, ...] = ()
    refused: tuple[str, ...] = ()


class _RefusedLineError(ValueError):
    """A line that names no file of the environment."""


def parse_record(
    lines: Iterable[bytes], *, site: str, prefix: str, most: int = MOST_LINES
) -> Record:
    """Read the lines of a RECORD; raise WorldError where there are more than ``most``.

    ``site`` is the folder that paths are relative to; ``prefix`` is the folder no path may
    leave. Both are absolute.
    """
    entries: list[RecordEntry] = []
    refused: list[str] = []
    for line in _joined(lines, most=most):
        plain = _plain_entry(line)
        if plain is not None:
            entries.append(plain)
            continue
        path, digest, size = _row(line)
        try:
            goal = _path(path, site=site, prefix=prefix)
        except (_RefusedLineError, UnicodeEncodeError) as error:
            if len(refused) < _MOST_REFUSED:
                refused.append(f"{_shown(path)}: {_reason(error)}")
            continue
        if goal:
            sha256 = _hexadecimal(digest)
            entries.append(RecordEntry(path=goal, sha256=sha256, size=_number(size)))
    return Record(entries=tuple(entries), refused=tuple(refused))


def _plain_entry(line: str) -> RecordEntry | None:
    """Take a line as it stands, where it can be; there are 10^5 of them, and nearly all can."""
    if "./" in line or "//" in line or '"' in line or "\0" in line or not line.isascii():
        return None
    parts = line.split(",")
    if len(parts) != _COLUMNS:
        return None
    path, digest, size = parts
    if len(path) > _LONGEST_PATH or not path.strip("/") or path[0] == "/" or path[-1] in "/.":
        return None
    size = size.strip()
    number = int(size) if size.isdigit() and len(size) < _DIGITS else None
    return RecordEntry(path, _hexadecimal(digest) if digest else None, number)


def _joined(lines: Iterable[bytes], *, most: int) -> Iterator[str]:
    """Decode the lines, and join those of a path that holds a line break in quotes."""
    held: list[str] = []
    quotes = length = 0
    source = iter(lines)
    for raw in islice(source, most):
        line = raw.decode("utf-8", "surrogateescape")
        if not held and '"' not in line:
            yield line
            continue
        held.append(line)
        quotes += line.count('"')
        length += len(line)
        if quotes % 2 == 0 or length > _LONGEST_PATH:
            yield "".join(held)
            held, quotes, length = [], 0, 0
    if next(source, None) is not None:
        raise WorldError(f"RECORD has more than {most:,} lines, wanted fewer")
    if held:
        yield "".join(held)


def _row(line: str) -> tuple[str, str, str]:
    """Split a line at its last two commas, or as CSV where it holds a quote."""
    line = line.rstrip("\r\n")
    if '"' not in line:
        parts = line.rsplit(",", 2)
        path, digest, size = parts if len(parts) == _COLUMNS else (parts[0], "", "")
        return path, digest, size
    import csv  # noqa: PLC0415 - a comma in a path is rare

    try:
        row = next(csv.reader([line], strict=True), [])
    except csv.Error:
        row = [line]
    path, digest, size = (*row, "", "", "")[:_COLUMNS]
    return path, digest, size


def _path(path: str, *, site: str, prefix: str) -> str:
    """Return the path of an entry, empty where it names a folder or nothing."""
    path.encode("utf-8")
    if "\0" in path or len(path) > _LONGEST_PATH:
        raise _RefusedLineError("no file can have this name")
    if ".." in path or "./" in path or "//" in path or path[:1] == "/" or path == ".":
        path = _normalised(path, site=site, prefix=prefix)
    return "" if path[-1:] == "/" else path


def _normalised(path: str, *, site: str, prefix: str) -> str:
    """Return a path without ``..``: relative to the site, else absolute within the prefix."""
    whole = posixpath.normpath(posixpath.join(site, path))
    if whole == site:
        return ""
    inside = f"{site.rstrip('/')}/"
    if whole.startswith(inside):
        return whole[len(inside) :]
    if whole.startswith("//") or not whole.startswith(f"{prefix.rstrip('/')}/"):
        raise _RefusedLineError(f"leaves `{prefix}`")
    return whole


def _hexadecimal(digest: str) -> str | None:
    if len(digest) != _SHA256_LENGTH or not digest.startswith(_SHA256) or not digest.isascii():
        return None
    try:
        data = a2b_base64(digest[len(_SHA256) :].encode().translate(_URLSAFE) + b"=")
    except BinasciiError:
        return None
    return data.hex() if len(data) == _SHA256_BYTES else None


def _number(size: str) -> int | None:
    size = size.strip()
    return int(size) if size.isascii() and size.isdigit() and len(size) < _DIGITS else None


def _shown(path: str) -> str:
    text = path[:200].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return f"`{text}`" if text.isprintable() else f"`{text.encode('unicode_escape').decode()}`"


def _reason(error: ValueError) -> str:
    return "is no UTF-8 text" if isinstance(error, UnicodeEncodeError) else str(error)
