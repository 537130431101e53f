"""What `envbuild lock` has to say when it is done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from envbuild.model.project import Layer

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.lock import TargetLock
    from envbuild.model.stack import Rejection, Stack


class Outcome(str, Enum):
    """How a lock ended."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    WOULD_WRITE = "would-write"
    FRESH = "fresh"
    STALE = "stale"


MISSING = "is missing"
"""What is said of a file of the lock that is not there."""

UNBOUND = "[tool.uv] does not bind the packages to the locked builds"
"""What is said of a pyproject.toml that has no pins of the lock yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One difference between what lies on disk and what the inputs give, in plain words.

    ``target`` is empty for what concerns the project as a whole.
    """

    file: str
    text: str
    target: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetReport:
    """The answer for one target: what was chosen, what was not, and what was proven.

    ``extras`` and ``groups`` are those of the project that `uv sync` installs only when asked.
    """

    target: str
    stack: Stack
    lock: TargetLock
    rejections: tuple[Rejection, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LockReport:
    """The answer of `envbuild lock`.

    ``source`` is the line that says where index pages came from. ``files`` are the paths,
    relative to the project, that were written or would be. ``layer`` and ``default_target`` are
    the project's: they decide how the lock is installed.
    """

    outcome: Outcome
    source: str
    targets: tuple[TargetReport, ...]
    changes: tuple[Change, ...] = ()
    files: tuple[str, ...] = ()
    layer: Layer = Layer.PROJECT
    default_target: str = ""

    @property
    def incomplete(self) -> bool:
        """Whether anything locked still lacks a hash."""
        return any(report.lock.incomplete for report in self.targets)
