"""Every build of torch that a target could take, best first, and why the others could not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envbuild.core.context import fitting
from envbuild.core.indexpages import pypi_page, pytorch_page
from envbuild.core.torchcode import proof_of
from envbuild.core.torchfit import cuda_allowed, refusal_of
from envbuild.core.wanted import accepts
from envbuild.core.wheeltags import local_of
from envbuild.model.cuda import CudaVersion
from envbuild.model.stack import Candidate, Rejection
from envbuild.model.target import Platform
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from envbuild.core.context import Context
    from envbuild.model.facts import TorchBuild
    from envbuild.model.wheel import IndexPage, WheelFile

    Order: TypeAlias = tuple[int, Version, CudaVersion, bool, bool]

_CUDA_KEY = re.compile(r"cu\d{3}")
# The first torch whose aarch64 wheel on PyPI is a CUDA build (METADATA of the PyPI wheels,
# 2026-11-29: 2.8.0 to 2.10.0 require no nvidia package, 2.11.0 requires CUDA 13's).
PYPI_AARCH64_CUDA_SINCE = Version("2.11.0")
_NO_CUDA = CudaVersion(major=0, minor=0)


def candidates(context: Context) -> tuple[tuple[Candidate, ...], tuple[Rejection, ...]]:
    """Return the builds that fit, best first, and those that do not, with reasons.

    Newest torch first, then the newest CUDA, then a build whose hash is known, then the build
    of PyTorch's index before PyPI's. All that comes after the proof: a build that every GPU is
    known to run natively goes before one that a GPU runs by JIT, and that before one whose GPU
    code is not known.
    A page that the target's `cuda` or `driver` excludes is not fetched, so its builds are in
    neither answer.
    """
    taken: list[Candidate] = []
    rejected: list[Rejection] = []
    for candidate in _builds(context):
        refusal = refusal_of(candidate, context)
        if refusal is None:
            taken.append(candidate)
        else:
            rejected.append(Rejection(candidate=candidate, refusals=(refusal,)))
    taken.sort(key=lambda candidate: _order(candidate, context), reverse=True)
    rejected.sort(key=lambda rejection: _order(rejection.candidate, context), reverse=True)
    return tuple(taken), tuple(rejected)


def _builds(context: Context) -> Iterator[Candidate]:
    if context.base_torch is not None:
        yield context.base_torch
        return
    yield from _index_builds(context)
    yield from _pypi_builds(context)


def belongs(wheel: WheelFile, accelerator: str) -> bool:
    """Whether a wheel on a page of PyTorch's index is a build for that page's accelerator.

    Each page also lists the wheels at the root of the index, which are other builds. Old aarch64
    builds carry no local version; the folder they lie in tells what they are.
    """
    local = local_of(wheel.version)
    return local == accelerator or (not local and f"/{accelerator}/" in wheel.url)


def accelerators(context: Context) -> tuple[str, ...]:
    """Return the pages of PyTorch's index that the target's `cuda` and `driver` admit."""
    return tuple(key for key, _ in _accelerators(context))


def _index_builds(context: Context) -> Iterator[Candidate]:
    for accelerator, cuda in _accelerators(context):
        page = pytorch_page(context.indexes, accelerator)
        for wheel in _torch_wheels(context, page) if page else ():
            if belongs(wheel, accelerator):
                yield Candidate(torch=wheel, cuda=cuda)


def _accelerators(context: Context) -> Iterator[tuple[str, CudaVersion | None]]:
    if context.target.is_cpu:
        yield "cpu", None
        return
    asked = _asked_local(context)
    for key in context.facts.pages(PageKind.PYTORCH):
        if asked and key != asked:
            continue  # a page costs a request, and no build on this one can be the one asked for
        if _CUDA_KEY.fullmatch(key) and cuda_allowed(cuda := CudaVersion.parse(key), context):
            yield key, cuda


def _asked_local(context: Context) -> str | None:
    """Return the local version that torch is pinned to (``cu128``), or None."""
    asked = [context.target.torch] if context.target.torch is not None else []
    asked += [requirement.specifier for requirement in context.wanted.get("torch", ())]
    pins = (spec for specifier in asked for spec in specifier if spec.operator == "==")
    return next((local_of(spec.version) for spec in pins if local_of(spec.version)), None)


def _torch_wheels(context: Context, page: IndexPage) -> Iterator[WheelFile]:
    wanted_torch = context.target.torch
    asks_early = any(spec.prereleases for spec in wanted_torch or ())
    for wheel in fitting(context, page, "torch"):
        early = Version(wheel.version).is_prerelease and not asks_early
        named = wanted_torch is None or wanted_torch.contains(wheel.version, prereleases=True)
        if named and not early and accepts(context.wanted, "torch", wheel.version):
            yield wheel


def _pypi_builds(context: Context) -> Iterator[Candidate]:
    if context.target.is_cpu and context.indexes.pytorch is not None:
        return
    if _asked_local(context) is not None:
        return  # PyPI takes no wheel with a local version
    for wheel in _torch_wheels(context, pypi_page(context.indexes)):
        cuda = pypi_cuda(wheel, context)
        if cuda is None or context.target.is_cpu or cuda_allowed(cuda, context):
            yield Candidate(torch=wheel, cuda=cuda)


def pypi_cuda(wheel: WheelFile, context: Context) -> CudaVersion | None:
    """Return the CUDA of a torch wheel on PyPI: by the facts, else by its requirements.

    None means a CPU build.
    """
    for build in context.facts.torch_builds():
        if build.torch == wheel.version and on_pypi(build, context.target.platform):
            return build.cuda
    aarch64 = context.target.platform is Platform.LINUX_AARCH64
    if aarch64 and Version(wheel.version) < PYPI_AARCH64_CUDA_SINCE:
        return None
    return _required_cuda(context.source.requires_dist(wheel) or ())


def on_pypi(build: TorchBuild, platform: Platform) -> bool:
    """Whether a build is the one that PyPI serves to a platform."""
    return build.on_pypi if platform is Platform.LINUX_X86_64 else build.on_pypi_aarch64


def _required_cuda(requires: tuple[str, ...]) -> CudaVersion | None:
    for text in requires:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name == "cuda-toolkit" or name.startswith("nvidia-cuda-runtime"):
            for spec in requirement.specifier:
                return CudaVersion.parse(".".join(spec.version.split(".")[:2]))
    return None


def _order(candidate: Candidate, context: Context) -> Order:
    return (
        proof_of(candidate, context),
        Version(candidate.public),
        candidate.cuda or _NO_CUDA,
        candidate.torch.sha256 is not None,
        candidate.torch.page.kind is PageKind.PYTORCH,
    )
