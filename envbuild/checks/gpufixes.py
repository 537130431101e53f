"""What makes an environment run on a GPU: another build of torch, a newer torch, a build here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.checks.owners import torch_cuda, torch_label, torch_public
from envbuild.core.archs import Coverage, coverage
from envbuild.core.buildwords import BuildAim, variables_for
from envbuild.model.fix import Install, Manual
from envbuild.model.project import IndexUrls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.cuda import ComputeCapability, CudaVersion
    from envbuild.model.facts import TorchBuild
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Installed
    from envbuild.ports import Facts

_SPCONV = "git+https://github.com/FindDefinition/cumm git+https://github.com/traveller59/spconv"


def other_build(
    installed: Installed,
    gpus: Iterable[ComputeCapability],
    *,
    facts: Facts,
    limit: CudaVersion | None,
) -> Fix | None:
    """Return the newest build of the same torch that runs on every GPU, with its companions.

    No build of a CUDA major after ``limit`` counts, which is the driver's.
    """
    public = torch_public(installed)
    found = [
        one for one in _running(installed, gpus, facts=facts, limit=limit) if one.torch == public
    ]
    if not found:
        return None
    requirements, index = _words(max(found, key=_cuda_of), installed)
    return Install(requirements=requirements, index=index)


def nearest_torch(
    installed: Installed,
    gpus: Iterable[ComputeCapability],
    *,
    facts: Facts,
    limit: CudaVersion | None,
) -> Fix:
    """Say which release of torch is the first that runs on every GPU; its extensions go with it."""
    wanted = sorted(set(gpus))
    lock = "envbuild lock with gpus = [" + ", ".join(f'"{one}"' for one in wanted) + "]"
    later = [
        one
        for one in _running(installed, wanted, facts=facts, limit=limit)
        if _number(one.torch) > _number(torch_public(installed) or "")
    ]
    if not later:
        return Manual(text=f"lock for these GPUs: {lock}")
    first = min(_number(one.torch) for one in later)
    best = max((one for one in later if _number(one.torch) == first), key=_cuda_of)
    requirements, index = _words(best, installed)
    return Manual(
        text=(
            f"no build of torch {torch_public(installed)} has it, the first that has is of torch"
            f" {best.torch}: uv pip install {' '.join(requirements)} --index {index}\n"
            f"then install or build every extension for that torch; or {lock}"
        )
    )


def build_spconv(installed: Installed, gpus: Iterable[ComputeCapability]) -> Fix:
    """Return the words with which cumm and spconv are built for GPUs."""
    aim = BuildAim(
        torch=torch_public(installed) or "",
        cuda=torch_cuda(installed),
        capabilities=tuple(gpus),
    )
    words = " ".join(f"{one.name}='{one.value}'" for one in variables_for("spconv", aim))
    return Manual(
        text=(
            f"build both for {torch_label(installed)}: {words} uv pip install"
            f" --no-build-isolation {_SPCONV}\n"
            "or try `spconv-cu126`, whose PTX is newer, forward and backward"
        )
    )


def _running(
    installed: Installed,
    gpus: Iterable[ComputeCapability],
    *,
    facts: Facts,
    limit: CudaVersion | None,
) -> Iterator[TorchBuild]:
    wanted = tuple(gpus)
    for build in facts.torch_builds():
        code = build.code_aarch64 if installed.machine == "aarch64" else build.code_x86_64
        if build.cuda is None or code is None:
            continue
        if limit is not None and build.cuda.major > limit.major:
            continue
        if all(coverage(code, gpu, cuda=build.cuda) is Coverage.NATIVE for gpu in wanted):
            yield build


def _cuda_of(build: TorchBuild) -> tuple[int, int]:
    return (build.cuda.major, build.cuda.minor) if build.cuda else (0, 0)


def _number(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")


def _words(build: TorchBuild, installed: Installed) -> tuple[tuple[str, ...], str]:
    """Return torch and its companions of one build as requirements, and their index."""
    tag = build.cuda.tag if build.cuda else "cpu"
    wanted = {"torch": build.torch}
    wanted |= {name: version for name, version in build.companions if installed.find(name)}
    requirements = tuple(f"{name}=={version}+{tag}" for name, version in wanted.items())
    return requirements, f"{IndexUrls().pytorch}/{tag}"
