"""Where a finding is shown: a file, relative to the project or to the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.model.diagnosis import Subject
    from envbuild.model.finding import Finding

PROJECT = "%SRCROOT%"
ENVIRONMENT = "ENVIRONMENT"


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A relative path, and the folder it is relative to."""

    base: str
    path: str


def location_of(finding: Finding, subject: Subject) -> Location:
    """Return the file that a finding is about, by its tokens.

    A lock of the project comes first, then a file of the environment; else it is the project's
    pyproject.toml, or where there is no project the environment's own configuration.
    """
    tokens = (*finding.brings, *finding.because)
    for path in _named("lock:", tokens):
        if not path.startswith("/"):
            return Location(base=PROJECT, path=path)
        if (inside := _inside(path, subject.project)) is not None:
            return Location(base=PROJECT, path=inside)
    for path in _named("file:", tokens):
        for base, folder in ((PROJECT, subject.project), (ENVIRONMENT, subject.prefix)):
            if (inside := _inside(path, folder)) is not None:
                return Location(base=base, path=inside)
    if subject.project:
        return Location(base=PROJECT, path="pyproject.toml")
    return Location(base=ENVIRONMENT, path="pyvenv.cfg")


def _named(kind: str, tokens: Iterable[str]) -> Iterable[str]:
    return (token.removeprefix(kind) for token in tokens if token.startswith(kind))


def _inside(path: str, folder: str) -> str | None:
    start = f"{folder.rstrip('/')}/"
    return path.removeprefix(start) if folder and path.startswith(start) else None
