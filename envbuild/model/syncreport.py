"""What `envbuild sync` did, or would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.plan import InstallPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildOutcome:
    """What became of one package that is compiled: kept, cached, built, or left out."""

    project: str
    outcome: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncReport:
    """What happened to one environment.

    ``made`` is True where it was made anew, ``mended`` names packages whose files were gone,
    ``changes`` are those of the lock as uv writes them. ``dry_run``: nothing was done.
    ``undone_by`` is the target of uv.lock where the next `uv run` brings the environment back to
    it; ``beside`` is True where the environment is not the project's own.
    """

    plan: InstallPlan
    venv: str
    made: bool = False
    mended: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    builds: tuple[BuildOutcome, ...] = ()
    dry_run: bool = False
    undone_by: str | None = None
    beside: bool = False

    @property
    def unchanged(self) -> bool:
        """Whether the environment was as it should be."""
        idle = all(one.outcome == "kept" for one in self.builds)
        return not (self.made or self.changes) and idle
