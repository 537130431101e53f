"""A target's lock as it lies on disk, with the plan to install it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.commands.projectreading import parsed_project, pylock_path
from envbuild.core.pylock import read_target_lock
from envbuild.core.script.plan import plan_for
from envbuild.errors import InputError
from envbuild.model.project import Layer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.lock import TargetLock
    from envbuild.model.plan import InstallPlan
    from envbuild.model.project import Project
    from envbuild.model.target import Target
    from envbuild.ports import Files


@dataclass(frozen=True, kw_only=True, slots=True)
class Locked:
    """A project, one of its targets, and what its lock says."""

    project: Project
    target: Target
    lock: TargetLock
    text: str

    @property
    def path(self) -> str:
        """Where the lock lies."""
        return pylock_path(self.target.name)

    @property
    def managed_by(self) -> str | None:
        """The target at which `uv run` keeps the project's environment, None where it is this."""
        is_managed = self.project.layer is Layer.PROJECT
        other = self.project.default_target
        return other if is_managed and other != self.target.name else None

    def plan(self, *, ptx: bool = False) -> InstallPlan:
        """Derive the plan; raises RefusedError where something cannot be compiled."""
        return plan_for(self.text, self.lock, self.project, self.target, path=self.path, ptx=ptx)


def read_locked(
    files: Files, name: str | None, *, environ: Mapping[str, str] | None = None
) -> Locked:
    """Read the lock of a target, of the default one where none is named.

    Raises InputError where there is no such target, or no lock of it.
    """
    project = parsed_project(files, environ or {})
    wanted = name or project.default_target
    target = next((one for one in project.targets if one.name == wanted), None)
    if target is None:
        known = ", ".join(f"`{one.name}`" for one in project.targets)
        raise InputError(f"no target `{wanted}` in pyproject.toml", hint=f"the targets are {known}")
    path = pylock_path(target.name)
    text = files.read(path)
    if text is None:
        raise InputError(
            f"`{path}` is not there, wanted the lock of the target",
            hint=f"envbuild lock --target {target.name}",
        )
    lock = read_target_lock(text, path=path)
    if lock.target != target.name:
        raise InputError(
            f"`{path}` is the lock of `{lock.target}`, wanted that of `{target.name}`",
            hint=f"envbuild lock --target {target.name}",
        )
    return Locked(project=project, target=target, lock=lock, text=text)
