"""Read the core metadata of a wheel: what it is, and what it requires."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WANTED = frozenset({"name", "version", "requires-dist", "requires-python"})


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelMetadata:
    """The fields of METADATA that a lock needs; requirements as PEP 508 text, in file order."""

    name: str
    version: str
    requires_dist: tuple[str, ...] = ()
    requires_python: str | None = None


def parse_metadata(data: str | bytes, *, origin: str = "the wheel") -> WheelMetadata:
    """Read METADATA; raise WorldError where it is none.

    ``origin`` names the file in the message. What stands twice and may stand once, and what is
    no UTF-8, counts as absent, as `packaging` has it.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
    fields: dict[str, list[str]] = {name: [] for name in _WANTED}
    for name, value in _headers(text):
        if name in _WANTED:
            fields[name].append(value)
    name, version = _only(fields["name"]), _only(fields["version"])
    if not name or not version:
        raise WorldError(f"the METADATA of {origin} has no Name or no Version, wanted both")
    requires = fields["requires-dist"] if all(map(_is_text, fields["requires-dist"])) else []
    return WheelMetadata(
        name=name.strip(),
        version=version.strip(),
        requires_dist=tuple(" ".join(entry.split()) for entry in requires),
        requires_python=_only(fields["requires-python"]).strip() or None,
    )


def _headers(text: str) -> Iterator[tuple[str, str]]:
    """Give the names, in small letters, and values of the headers that a text begins with.

    It reads as the standard library's `email` does, whose import takes longer than the headers
    of all distributions.
    """
    name, value = "", ""
    for line in io.StringIO(text, newline=""):  # which splits at \n, \r and \r\n alone
        if line[0] in " \t":
            value += line
            continue
        if name:
            yield name, value.lstrip(" \t").rstrip("\r\n")
        name, colon, value = line.partition(":")
        if line.startswith("From "):
            name = ""
        elif not colon or not name.isascii() or not name.isprintable() or " " in name:
            return
        name = name.lower()
    if name:
        yield name, value.lstrip(" \t").rstrip("\r\n")


def _only(values: list[str]) -> str:
    return values[0] if len(values) == 1 and _is_text(values[0]) else ""


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
