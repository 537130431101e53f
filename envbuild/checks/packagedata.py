"""The tables of ``data`` about packages as values: same imports, compiled parts, numpy's ABI."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from envbuild.checks.tables import table
from envbuild.model.finding import Severity


@dataclass(frozen=True, kw_only=True, slots=True)
class SameImport:
    """Distributions that bring one import; ``keep`` is the one usually meant, or empty.

    ``instead`` is the release of the other one that leaves the import to that, or empty.
    ``mended`` says which release does not bring them together any more, or is empty.
    """

    top: str
    names: tuple[str, ...]
    severity: Severity
    effect: str
    source: str
    keep: str = ""
    instead: str = ""
    mended: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompiledPart:
    """A package that is nothing without one of its compiled ``parts`` (patterns of paths).

    ``cuda`` is True where that is so beside a torch with CUDA alone; ``since`` is the first
    release that has them, empty for all.
    """

    name: str
    parts: tuple[str, ...]
    error: str
    how: str
    source: str
    severity: Severity = Severity.ERROR
    cuda: bool = False
    since: str = ""


@cache
def same_imports() -> tuple[SameImport, ...]:
    """Return the groups of distributions that bring one import."""
    return tuple(_same_import(row) for row in table("packages")["same_import"])


def _same_import(row: dict[str, Any]) -> SameImport:
    return SameImport(
        top=row["import"],
        names=tuple(row["names"]),
        severity=Severity(row["severity"]),
        effect=row["effect"],
        source=row["source"],
        keep=row.get("keep", ""),
        instead=row.get("instead", ""),
        mended=row.get("mended", ""),
    )


def same_import(a: str, b: str) -> SameImport | None:
    """Return the group that two distributions are of, if there is one."""
    return next((one for one in same_imports() if {a, b} <= set(one.names)), None)


@cache
def compiled_parts() -> tuple[CompiledPart, ...]:
    """Return the packages that must have a compiled part."""
    return tuple(_compiled(row) for row in table("packages")["compiled"])


def _compiled(row: dict[str, Any]) -> CompiledPart:
    return CompiledPart(
        name=row["name"],
        parts=tuple(row["parts"]),
        error=row["error"],
        how=row["how"],
        source=row["source"],
        severity=Severity(row.get("severity", "error")),
        cuda=row.get("cuda", False),
        since=row.get("since", ""),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The last release of a package that is compiled against torch; ``instead`` is a sentence."""

    last: str
    torch: str
    instead: str
    source: str


@cache
def ended() -> dict[str, Ended]:
    """Return the packages of which no release for a newer torch will come, by name."""
    rows = (dict(row) for row in table("packages")["ended"])
    return {row.pop("name"): Ended(**row) for row in rows}


@cache
def numpy2_releases() -> tuple[tuple[str, str, str], ...]:
    """Return packages with the first release compiled against numpy 2, and what says so."""
    rows = table("numpy2")["releases"]
    return tuple((name, row["first"], _numpy_source(name, row)) for name, row in rows.items())


def _numpy_source(name: str, row: dict[str, str]) -> str:
    return f"`{row['file']}` of {name} {row['last']} is compiled with the headers of numpy 1"


def known_pair(name: str, minor: str) -> tuple[str, str] | None:
    """Return the torch minor that a minor release was made for, and who says so."""
    for row in table("packages")["pairs"]:
        if row["name"] == name and minor in row["versions"]:
            return row["versions"][minor], row["source"]
    return None


def old_companion(name: str, torch: str) -> str | None:
    """Return the torchvision or torchaudio of a torch that is older than the catalog."""
    releases = table("packages")["companions"].get(torch, {})
    version: str | None = releases.get(name)
    return version
