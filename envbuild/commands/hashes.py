"""The hashes that no resolver gives: of wheels whose page states none, and of sources."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from envbuild.core.indexpages import pypi_page
from envbuild.core.redact import without_credentials
from envbuild.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envbuild.commands.lockrun import Shared
    from envbuild.commands.request import Preferences
    from envbuild.model.lock import Pinned, TargetLock
    from envbuild.model.stack import SourceBuild
    from envbuild.model.wheel import WheelFile


def hashed(
    lock: TargetLock,
    shared: Shared,
    preferences: Preferences,
    wheels: Mapping[WheelFile, tuple[str, ...]],
) -> TargetLock:
    """Return a lock with the hashes that were still missing; what is silent loses none.

    Raises WorldError where one cannot be had and an incomplete lock was not asked for.
    """
    known = {without_credentials(wheel.url): wheel for wheel in wheels}
    lock = replace(
        lock,
        packages=tuple(
            package if package.hashed else _with_hash(package, shared, preferences, known)
            for package in lock.packages
        ),
        builds=tuple(
            build if build.hashed else _as_before(build, preferences) for build in lock.builds
        ),
    )
    if lock.incomplete and not shared.allow_unhashed:
        raise _incomplete(lock, shared)
    return lock


def _with_hash(
    package: Pinned,
    shared: Shared,
    preferences: Preferences,
    wheels: Mapping[str, WheelFile],
) -> Pinned:
    artifact = package.artifacts[0]
    wheel = wheels.get(artifact.url)
    digest = None if wheel is None else shared.source.sha256(wheel)
    digest = digest or preferences.sha256(artifact.url)
    return replace(package, artifacts=(replace(artifact, sha256=digest),))


def _as_before(build: SourceBuild, preferences: Preferences) -> SourceBuild:
    before = () if preferences.before is None else preferences.before.builds
    for one in before:
        if (one.project, one.version) == (build.project, build.version) and one.is_sdist:
            return replace(build, url=one.url, sha256=one.sha256)
    return build


def _incomplete(lock: TargetLock, shared: Shared) -> WorldError:
    names = ", ".join(f"{name}=={version}" for name, version in lock.incomplete)
    return WorldError(
        f"no sha256 is known for {names}, and {', '.join(sorted({*_hosts(lock, shared)}))} is "
        "not reached to compute it",
        hint="lock where that host is reached, name a mirror in [tool.envbuild.indexes], or "
        "write an incomplete lock with `--allow-unhashed`",
    )


def _hosts(lock: TargetLock, shared: Shared) -> Iterator[str]:
    for package in lock.unhashed:
        yield from (urlsplit(artifact.url).hostname or "" for artifact in package.artifacts)
    if not all(build.hashed for build in lock.builds):
        yield urlsplit(pypi_page(shared.project.indexes).url).hostname or ""
