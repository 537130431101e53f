"""Read RECORD: the files of a distribution, with their hashes and sizes."""

from __future__ import annotations

import csv
import posixpath
from binascii import Error as BinasciiError
from binascii import a2b_base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.errors import WorldError
from envbuild.model.installed import RecordEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_LINES = 1_000_000
_LONGEST_PATH = 4096
_SHA256 = b"sha256="
_SHA256_BYTES = 32
_SHA256_LENGTH = len(_SHA256) + 43
_URLSAFE = bytes.maketrans(b"-_", b"+/")
_COLUMNS = 3
_NO_FIRST = b"/,"
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
        if _is_plain(line):  # nearly every line of every RECORD, and there are 10^5 of them
            path, digest, size = line.rsplit(b",", 2)
            sha256 = _hexadecimal(digest)
            entries.append(RecordEntry(path=path.decode(), sha256=sha256, size=_number(size)))
            continue
        row = _row(line)
        try:
            entry = _entry(row, site=site, prefix=prefix)
        except (_RefusedLineError, UnicodeDecodeError) as error:
            if len(refused) < _MOST_REFUSED:
                refused.append(f"{_shown(row[0])}: {_reason(error)}")
        else:
            if entry is not None:
                entries.append(entry)
    return Record(entries=tuple(entries), refused=tuple(refused))


def _is_plain(line: bytes) -> bool:
    """Return whether a line can be taken as it stands."""
    return (
        line.isascii()
        and b".." not in line
        and b"./" not in line
        and b'"' not in line
        and b"//" not in line
        and b"\0" not in line
        and b"/," not in line
        and line[0] not in _NO_FIRST
        and line.count(b",") == _COLUMNS - 1
        and len(line) < _LONGEST_PATH
    )


def _joined(lines: Iterable[bytes], *, most: int) -> Iterator[bytes]:
    """Join the lines of a path that holds a line break in quotes."""
    held = b""
    for number, line in enumerate(lines):
        if number >= most:
            raise WorldError(f"RECORD has more than {most:,} lines, wanted fewer")
        if not held and b'"' not in line:
            yield line
            continue
        held += line
        if held.count(b'"') % 2 == 0 or len(held) > _LONGEST_PATH:
            yield held
            held = b""
    if held:
        yield held


def _row(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a line at its last two commas, or as CSV where it holds a quote."""
    if b'"' in line:
        return _quoted(line)
    path, *rest = line.rstrip(b"\r\n").rsplit(b",", 2)
    digest, size = rest if len(rest) == _COLUMNS - 1 else (b"", b"")
    return path, digest, size


def _quoted(line: bytes) -> tuple[bytes, bytes, bytes]:
    text = line.decode("utf-8", errors="surrogateescape")
    try:
        row = next(csv.reader([text.rstrip("\r\n")], strict=True), [])
    except csv.Error:
        row = [text]
    path, digest, size = (*row, "", "", "")[:_COLUMNS]
    return (
        path.encode("utf-8", errors="surrogateescape"),
        digest.encode("utf-8", errors="surrogateescape"),
        size.encode("utf-8", errors="surrogateescape"),
    )


def _entry(row: tuple[bytes, bytes, bytes], *, site: str, prefix: str) -> RecordEntry | None:
    raw, digest, size = row
    path = raw.decode("utf-8")
    if b".." in raw or b"./" in raw or b"//" in raw or raw[:1] == b"/":
        path = _normalised(path, site=site, prefix=prefix)
    if not path or path[-1] == "/":
        return None
    if "\0" in path or len(path) > _LONGEST_PATH:
        raise _RefusedLineError("no file can have this name")
    return RecordEntry(path=path, sha256=_hexadecimal(digest), size=_number(size))


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


def _hexadecimal(digest: bytes) -> str | None:
    if len(digest) != _SHA256_LENGTH or not digest.startswith(_SHA256):
        return None
    try:
        data = a2b_base64(digest[len(_SHA256) :].translate(_URLSAFE) + b"=")
    except BinasciiError:
        return None
    return data.hex() if len(data) == _SHA256_BYTES else None


def _number(size: bytes) -> int | None:
    size = size.strip()
    return int(size) if size.isdigit() and len(size) < 20 else None  # noqa: PLR2004


def _shown(raw: bytes) -> str:
    text = raw[:200].decode("utf-8", errors="backslashreplace")
    return f"`{text.encode('unicode_escape').decode()}`" if not text.isprintable() else f"`{text}`"


def _reason(error: ValueError) -> str:
    return "is no UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
