"""Whether the lock of a target still belongs to its pyproject.toml, told without solving it."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envbuild.core.pylock import marker_environment
from envbuild.core.treebuild import satisfies
from envbuild.core.wheeltags import local_of
from envbuild.model.project import Layer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from envbuild.model.lock import TargetLock
    from envbuild.model.project import Project
    from envbuild.model.target import Target


def stale_reasons(
    project: Project,
    target: Target,
    lock: TargetLock,
    *,
    document: Mapping[str, Any],
    uv_lock: str | None,
) -> tuple[str, ...]:
    """Return in what a lock differs from the project, in one sentence each; nothing if in nothing.

    ``document`` is the pyproject.toml, ``uv_lock`` the text of uv.lock, None where there is none.
    It is necessary for a lock to be fresh, not sufficient: `envbuild lock --check` solves.
    """
    own = project.layer is Layer.PROJECT and project.default_target == target.name
    reasons = input_reasons(project, target, lock, document=document)
    return tuple(dict.fromkeys((*reasons, *(_uv_lock(uv_lock, lock) if own else ()))))


def input_reasons(
    project: Project, target: Target, lock: TargetLock, *, document: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return in what a lock differs from pyproject.toml alone, be there a uv.lock or not."""
    own = project.layer is Layer.PROJECT and project.default_target == target.name
    return tuple(
        dict.fromkeys(
            (
                *_target(target, lock),
                *_torch(target, lock),
                *_requirements(project, target, lock, overridden(document)),
                *_builds(project, lock),
                *(_pins(document, lock) if own else ()),
            )
        )
    )


def _target(target: Target, lock: TargetLock) -> Iterator[str]:
    if lock.python != target.python:
        yield f"the lock is for Python {lock.python}, the target for {target.python}"
    if lock.platform != target.platform.value:
        yield f"the lock is for {lock.platform}, the target for {target.platform.value}"
    if lock.glibc != target.glibc:
        held, asked = (f"glibc {one}" if one else "any glibc" for one in (lock.glibc, target.glibc))
        yield f"the lock is for {held}, the target for {asked}"
    if lock.base != target.base or (lock.frozen is None) == target.is_frozen:
        held = lock.base or ("an interpreter" if lock.frozen is not None else "no base")
        asked = target.base or ("an interpreter" if target.is_frozen else "no base")
        yield f"the lock is around {held}, the target around {asked}"
    wanted = {str(gpu.capability) for gpu in target.gpus}
    if wanted and wanted != set(lock.capabilities):
        have = ", ".join(lock.capabilities) or "no GPU"
        yield f"the lock is for {have}, the target for {', '.join(sorted(wanted))}"


def _torch(target: Target, lock: TargetLock) -> Iterator[str]:
    """Compare the keys `torch` and `cuda`; a base has the only torch that there is for it.

    A target without GPUs may have PyPI's torch, which has CUDA and no local version.
    """
    version = _versions(lock).get("torch")
    if version is None or target.is_frozen:
        return
    if target.torch is not None and not satisfies(version, target.torch):
        yield f"the lock has torch {version}, the target wants `{target.torch}`"
    held = f"CUDA {lock.cuda}" if lock.cuda else "the CPU"
    if target.is_cpu and local_of(version).startswith("cu"):
        yield f"the lock is for {held}, the target for the CPU"
    elif target.cuda is not None and not (lock.cuda and target.cuda.contains(lock.cuda)):
        yield f"the lock is for {held}, the target for CUDA `{target.cuda}`"


def overridden(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the packages whose requirements an override of uv's replaces."""
    return frozenset(one.name for one in _parsed(document, "override-dependencies"))


def pinned_names(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the packages that a constraint of uv's holds at a version."""
    return frozenset(one.name for one in _parsed(document, "constraint-dependencies"))


def _parsed(document: Mapping[str, Any], key: str) -> Iterator[Requirement]:
    for text in document.get("tool", {}).get("uv", {}).get(key, ()):
        with suppress(InvalidRequirement, TypeError):
            requirement = Requirement(text)
            requirement.name = canonicalize_name(requirement.name)
            yield requirement


def _requirements(
    project: Project, target: Target, lock: TargetLock, overridden: frozenset[str]
) -> Iterator[str]:
    locked = _versions(lock)
    replaced = {build.project for build in lock.builds}
    replaced.update(() if lock.frozen is None else lock.frozen.unversioned)
    environment = dict(marker_environment(target))
    for declared in project.requirements:
        requirement = declared.requirement
        name = canonicalize_name(requirement.name)
        marker = requirement.marker
        if declared.group or name in replaced or name in overridden:
            continue
        if marker is not None and not marker.evaluate(environment):
            continue
        version = locked.get(name)
        if version is None and not any(one.startswith(f"{name}-cu") for one in locked):
            yield f"`{requirement}` is required, the lock has no {name}"
        elif version is not None and not satisfies(version, requirement.specifier):
            yield f"`{requirement}` is required, the lock has {name} {version}"


def _versions(lock: TargetLock) -> dict[str, str]:
    """Return the version of each package that is there after an install, a base's included."""
    kept = () if lock.frozen is None else lock.frozen.packages
    return {
        **{package.name: package.version for package in kept},
        **{package.name: package.version for package in lock.packages},
    }


def _builds(project: Project, lock: TargetLock) -> Iterator[str]:
    wanted = {(one.name, one.path or one.git) for one in project.builds if one.path or one.git}
    locked = {(one.project, one.path or one.git) for one in lock.builds if one.path or one.git}
    for name, where in sorted(wanted - locked):
        yield f"`{name}` is to be built from `{where}`, the lock does not say so"
    for name, where in sorted(locked - wanted):
        yield f"the lock builds `{name}` from `{where}`, [tool.envbuild.build] does not say so"


def _pins(document: Mapping[str, Any], lock: TargetLock) -> Iterator[str]:
    """Compare the strict pins that `envbuild lock` wrote with the lock."""
    locked = _versions(lock)
    for pin in _parsed(document, "constraint-dependencies"):
        version = locked.get(pin.name)
        if version is not None and not pin.specifier.contains(version, prereleases=True):
            yield f"`{pin}` stands in [tool.uv], the lock has {pin.name} {version}"


def _uv_lock(text: str | None, lock: TargetLock) -> Iterator[str]:
    if text is None:
        yield "there is no uv.lock"
        return
    held: dict[str, set[str]] = {}
    for row in tomllib.loads(text).get("package", ()):
        held.setdefault(row["name"], set()).add(row.get("version", ""))
    for package in lock.packages:
        versions = held.get(package.name, set())
        if package.version not in versions and not package.direct:
            found = " and ".join(sorted(versions)) or "none"
            yield f"the lock has {package.name} {package.version}, uv.lock has {found}"
