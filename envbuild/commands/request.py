"""What uv is asked for one stack, and which versions it shall prefer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from envbuild.core.binding.project import bound_project
from envbuild.core.pylock import read_target_lock
from envbuild.core.redact import credentials_of
from envbuild.core.scratch import scratch_pyproject, target_pyproject
from envbuild.core.uvlock import preferences_lock, versions_in
from envbuild.core.uvsettings import settings_for
from envbuild.errors import EnvbuildError
from envbuild.model.resolution import ResolveRequest
from envbuild.providers.registry import COUPLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envbuild.core.scratch import ScratchIndex
    from envbuild.model.lock import TargetLock
    from envbuild.model.project import Project
    from envbuild.model.stack import Stack
    from envbuild.model.target import Target
    from envbuild.model.wheel import WheelFile
    from envbuild.ports import Files, Reporter


@dataclass(frozen=True, kw_only=True, slots=True)
class Preferences:
    """What was locked before, as far as it is to be kept.

    ``own`` is True where the target's set also goes to uv.lock. ``before`` is the target's
    lock as it lies on disk, None where there is no valid one.
    """

    target: Target
    own: bool
    before: TargetLock | None
    files: Files
    reporter: Reporter
    upgrade: bool
    upgrade_packages: frozenset[str]

    @property
    def keeps_all(self) -> bool:
        """Whether no package is to be upgraded."""
        return not self.upgrade and not self.upgrade_packages

    def stacks(self) -> Iterator[tuple[Requirement, ...]]:
        """Yield what a stack must hold to be the one locked before, the whole of it first.

        uv prefers by itself what an ordinary index serves; the builds of coupled packages are
        chosen before uv is asked. An upgrade of torch frees all that is built for it.
        """
        if self.before is None or self.upgrade or "torch" in self.upgrade_packages:
            return
        kept = [
            Requirement(f"{package.name}=={package.version}")
            for package in self.before.packages
            if package.name in COUPLED
            and package.name not in self.upgrade_packages
            and "+" in package.version
        ]
        torch = [requirement for requirement in kept if requirement.name == "torch"]
        if kept:
            yield tuple(kept)
        if torch and torch != kept:
            yield tuple(torch)

    def sha256(self, url: str) -> str | None:
        """Return the hash that was locked for an address: a host that is silent loses none."""
        packages = self.before.packages if self.before is not None else ()
        artifacts = (artifact for package in packages for artifact in package.artifacts)
        return next((artifact.sha256 for artifact in artifacts if artifact.url == url), None)

    def uv_lock(self) -> str | None:
        """Return the versions to prefer as a uv.lock, or None where there are none."""
        if self.upgrade:
            return None
        if not self.own:
            if self.before is None:
                return None
            return preferences_lock(self.before, without=self.upgrade_packages)
        text = self.files.read("uv.lock")
        try:
            if text is not None:
                versions_in(text)
        except EnvbuildError as error:
            self.reporter.note(f"{error.message}; it is written anew")
            return None
        return text


def lock_on_disk(files: Files, target: Target) -> TargetLock | None:
    """Return a target's lock as it lies on disk, or None where there is no valid one."""
    path = f"lockfiles/pylock.{target.name}.toml"
    text = files.read(path)
    try:
        return None if text is None else read_target_lock(text, path=path)
    except EnvbuildError:
        return None


def request_for(
    project: Project,
    stack: Stack,
    preferences: Preferences,
    *,
    index: ScratchIndex,
    requires: Mapping[WheelFile, tuple[str, ...]],
) -> ResolveRequest:
    """Build the scratch project that asks uv for a stack."""
    target, own = preferences.target, preferences.own
    base = project.text if own else target_pyproject(project, target)
    text = bound_project(base, settings_for(project, target, stack), coupled=COUPLED)
    files = [("pyproject.toml", scratch_pyproject(text, index, requires)), *index.files]
    preferred = preferences.uv_lock()
    if preferred is not None:
        files.append(("uv.lock", preferred))
    return ResolveRequest(
        files=tuple(files),
        beside=preferences.files.root if own else None,
        export_extras=target.extras if own else (),
        export_groups=target.groups if own else (),
        upgrade_packages=tuple(sorted(preferences.upgrade_packages)),
        credentials=_credentials(project),
    )


def _credentials(project: Project) -> tuple[tuple[str, str], ...]:
    found = credentials_of(project.indexes.pypi or "")
    if found is None:
        return ()
    return (("UV_INDEX_PYPI_USERNAME", found[0]), ("UV_INDEX_PYPI_PASSWORD", found[1]))
