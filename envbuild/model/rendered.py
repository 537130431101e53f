"""What came of writing a script or a Dockerfile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.report import Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderReport:
    """What was written for a target, or would be.

    ``files`` are those that differ from what lies on disk, ``all_files`` all that belong
    together; ``changes`` say how they differ. ``incomplete`` are the packages that the lock has
    no hash for, ``builds`` those that are compiled on install.
    """

    command: str
    outcome: Outcome
    target: str
    lock: str
    lock_sha256: str
    files: tuple[str, ...]
    all_files: tuple[str, ...]
    changes: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
