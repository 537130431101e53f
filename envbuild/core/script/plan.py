"""The install plan of a target, derived from its lock alone."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from envbuild.core.buildwords import (
    BuildAim,
    build_refusals,
    built_capabilities,
    common_variables,
    oldest_nvcc,
    variables_for,
)
from envbuild.core.uvsettings import GROUP
from envbuild.core.wanted import default_groups
from envbuild.errors import RefusedError
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.plan import (
    Compile,
    InstallLock,
    InstallPlan,
    MakeEnvironment,
    Needs,
    SelfCheck,
)
from envbuild.model.project import Layer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.lock import Pinned, TargetLock
    from envbuild.model.plan import Step
    from envbuild.model.project import Project
    from envbuild.model.stack import SourceBuild
    from envbuild.model.target import Target

OLDEST_UV = "0.13.0"
"""The oldest uv that reads the lock and takes every option of a plan: no older one was tried."""

_UNPACKED = 2
"""How many bytes a wheel takes on disk for each of its own; torch's 1.9, pure Python's 3."""
_UNKNOWN_SIZE = 10 << 20
_UNKNOWN_SIZES = {"torch": 1 << 30, "flash-attn": 300 << 20, "triton": 200 << 20}


def plan_for(
    lock_text: str,
    lock: TargetLock,
    project: Project,
    target: Target,
    *,
    path: str,
    ptx: bool = False,
) -> InstallPlan:
    """Derive the plan; ``path`` is that of the lock, ``ptx`` adds PTX to what is compiled.

    Raises RefusedError where something cannot be compiled for the GPUs of the lock.
    """
    aim = build_aim(lock, ptx=ptx)
    refusals = build_refusals([build.project for build in lock.builds], aim)
    if refusals:
        raise RefusedError(
            "; ".join(refusals), hint="set another `torch` or `cuda` for the target, and lock anew"
        )
    by_project = is_by_project(project, target)
    return InstallPlan(
        target=target.name,
        lock=path,
        lock_sha256=hashlib.sha256(lock_text.encode()).hexdigest(),
        python=lock.python,
        platform=lock.platform,
        needs=_needs(lock, aim),
        variables=common_variables(aim) if lock.builds else (),
        steps=tuple(_steps(lock, project, target, aim, path=path, by_project=by_project)),
        base=lock.base,
        glibc=lock.glibc,
    )


def is_by_project(project: Project, target: Target) -> bool:
    """Whether the target's set is that of uv.lock."""
    return project.layer is Layer.PROJECT and project.default_target == target.name


def build_aim(lock: TargetLock, *, ptx: bool = False) -> BuildAim:
    """Return what the extensions of a lock are built for."""
    kept = lock.frozen.torch if lock.frozen is not None else None
    torch = next((one.version for one in lock.packages if one.name == "torch"), kept or "")
    return BuildAim(
        torch=torch.partition("+")[0],
        cuda=None if lock.cuda is None else CudaVersion.parse(lock.cuda),
        capabilities=tuple(ComputeCapability.parse(one) for one in lock.capabilities),
        ptx=ptx,
    )


def _needs(lock: TargetLock, aim: BuildAim) -> Needs:
    cuda = aim.cuda if lock.builds else None
    oldest = oldest_nvcc(aim)
    addresses = {artifact.url for package in lock.packages for artifact in package.artifacts}
    return Needs(
        python=lock.python,
        uv=OLDEST_UV,
        disk_bytes=sum(bytes_of(package) for package in lock.packages),
        hosts=tuple(sorted({urlsplit(url).netloc.rpartition("@")[2] for url in addresses})),
        cuda_major=None if cuda is None else cuda.major,
        oldest_nvcc=None if cuda is None or oldest is None else str(oldest),
        compiler=bool(lock.builds),
        git=any(build.git for build in lock.builds),
    )


def bytes_of(package: Pinned) -> int:
    """Return about how many bytes a package takes once it is installed."""
    sizes = [artifact.size for artifact in package.artifacts if artifact.size is not None]
    known = max(sizes, default=_UNKNOWN_SIZES.get(package.name, _UNKNOWN_SIZE))
    return known * _UNPACKED


def _steps(
    lock: TargetLock,
    project: Project,
    target: Target,
    aim: BuildAim,
    *,
    path: str,
    by_project: bool,
) -> Iterator[Step]:
    yield MakeEnvironment(
        python=lock.python,
        reason=f"every wheel of the lock is for CPython {lock.python} on {lock.platform}",
    )
    yield InstallLock(
        pylock=path,
        by_project=by_project,
        options=sync_options(project, target) if by_project else (),
        reason="through uv.lock, so that the next `uv run` changes nothing"
        if by_project
        else "each file against its hash; what the lock does not hold goes",
    )
    for build in lock.builds:
        yield _compile(build, aim)
    yield SelfCheck(reason="what lies there is compared with the lock, and nothing is imported")


def _compile(build: SourceBuild, aim: BuildAim) -> Compile:
    against = f"torch {aim.torch}" if aim.torch else "the environment"
    return Compile(
        build=build,
        variables=variables_for(build.project, aim),
        capabilities=tuple(str(one) for one in built_capabilities(build.project, aim)),
        reason=build.reason or f"compiled against {against}, the one installed",
    )


def sync_options(project: Project, target: Target) -> tuple[str, ...]:
    """Return the options with which `uv sync` installs exactly the target's set."""
    document: dict[str, Any] = tomllib.loads(project.text)
    groups = [*(canonicalize_name(name) for name in target.groups), *default_groups(project)]
    groups += [GROUP] if GROUP in document.get("dependency-groups", {}) else []
    words = ["--no-default-groups"]
    for extra in target.extras:
        words += ["--extra", extra]
    for group in dict.fromkeys(groups):
        words += ["--group", group]
    return tuple(words)
