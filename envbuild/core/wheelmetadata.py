"""Read the core metadata of a wheel: what it is, and what it requires."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.metadata import parse_email

from envbuild.errors import WorldError


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelMetadata:
    """The fields of METADATA that a lock needs; requirements as PEP 508 text, in file order."""

    name: str
    version: str
    requires_dist: tuple[str, ...] = ()
    requires_python: str | None = None


def parse_metadata(data: str | bytes, *, origin: str = "the wheel") -> WheelMetadata:
    """Read METADATA; raise WorldError where it is none.

    ``origin`` names the file in the message.
    """
    try:
        raw, _ = parse_email(data)
    except (ValueError, LookupError) as error:
        raise WorldError(f"the METADATA of {origin} cannot be read: {error}") from None
    name, version = raw.get("name"), raw.get("version")
    if not name or not version:
        raise WorldError(f"the METADATA of {origin} has no Name or no Version, wanted both")
    python = raw.get("requires_python")
    return WheelMetadata(
        name=name.strip(),
        version=version.strip(),
        requires_dist=tuple(" ".join(entry.split()) for entry in raw.get("requires_dist", ())),
        requires_python=python.strip() if python and python.strip() else None,
    )
