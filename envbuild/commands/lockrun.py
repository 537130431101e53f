"""One run of `envbuild lock`: what the user asked of it, and what its targets share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from envbuild.model.frozen import Frozen
    from envbuild.model.project import Project
    from envbuild.ports import Facts, Files, Reporter, Resolver, WheelSource


@dataclass(frozen=True, kw_only=True, slots=True)
class LockOptions:
    """What the user asked of `envbuild lock`.

    ``directory`` holds pyproject.toml. ``targets`` empty means all of them. ``upgrade`` drops
    every version locked before, ``upgrade_packages`` those of the packages named. ``base_python``
    and ``base_root`` say where the base of the targets can be read.
    """

    directory: Path
    targets: tuple[str, ...] = ()
    check: bool = False
    dry_run: bool = False
    upgrade: bool = False
    upgrade_packages: tuple[str, ...] = ()
    offline: bool = False
    allow_unhashed: bool = False
    base_python: str | None = None
    base_root: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether files may be written."""
        return not (self.check or self.dry_run)

    @property
    def names_base(self) -> bool:
        """Whether the base of the targets is to be read anew."""
        return self.base_python is not None or self.base_root is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """What every target of one run shares.

    ``upgrade`` drops every version locked before, ``upgrade_packages`` those of the packages
    named. ``bases`` is what the base of each target holds that has one.
    """

    project: Project
    upgrade: bool
    upgrade_packages: frozenset[str]
    offline: bool
    allow_unhashed: bool
    source: WheelSource
    facts: Facts
    resolver: Resolver
    files: Files
    reporter: Reporter
    bases: Mapping[str, Frozen] = field(default_factory=dict)
