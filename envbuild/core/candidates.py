"""Every build of torch that a target could take, best first, and why the others could not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envbuild.core.archs import Coverage, coverage, describe, own_code_only, toolkit_knows
from envbuild.core.context import fitting
from envbuild.core.indexpages import pypi_page, pytorch_page
from envbuild.core.jetson import jetson_notes, jetson_reason
from envbuild.core.targetversions import oldest_driver
from envbuild.core.treebuild import accepts_build, satisfies
from envbuild.core.wanted import accepts, asked
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.cuda import CudaVersion
from envbuild.model.stack import Candidate, Refusal, Rejection
from envbuild.model.target import Platform
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from envbuild.core.context import Context
    from envbuild.model.cuda import ComputeCapability
    from envbuild.model.facts import DeviceCode, TorchBuild
    from envbuild.model.wheel import IndexPage, WheelFile
    from envbuild.ports import Facts

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
        refusal = _refusal(candidate, context)
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


def coverage_notes(candidate: Candidate, context: Context) -> tuple[str, ...]:
    """Return what the user must know about how the target's GPUs run a candidate."""
    if not context.target.gpus:
        return ()
    code = torch_code(candidate, context)
    if code is None:
        return (f"the GPU code of {candidate.label} is not known",)
    jit = (
        f"{candidate.label} has {describe(code)}: {gpu.sm} runs it by JIT only"
        for gpu in capabilities(context)
        if coverage(code, gpu, cuda=candidate.cuda) is Coverage.JIT
    )
    return (*jit, *jetson_notes(candidate.label, capabilities(context), candidate.cuda))


def torch_code(candidate: Candidate, context: Context) -> DeviceCode | None:
    """Return the GPU code of a build of torch on the target's platform, or None if unknown."""
    return known_torch_code(context.facts, candidate.torch, candidate.cuda, context.target.platform)


def known_torch_code(
    facts: Facts, torch: WheelFile, cuda: CudaVersion | None, platform: Platform
) -> DeviceCode | None:
    """Return the GPU code of a torch wheel: of its build, else of this very file."""
    if torch.page.kind is PageKind.BASE and not torch.page.key:
        return None
    build = facts.torch_build(public_of(torch.version), cuda)
    code: DeviceCode | None = None
    if build is not None:
        code = build.code_x86_64 if platform is Platform.LINUX_X86_64 else build.code_aarch64
    return code if code is not None else facts.device_code(torch.filename)


def capabilities(context: Context) -> tuple[ComputeCapability, ...]:
    """Return the compute capabilities of the target's GPUs, each once, in the user's order."""
    return tuple(dict.fromkeys(gpu.capability for gpu in context.target.gpus))


def belongs(wheel: WheelFile, accelerator: str) -> bool:
    """Whether a wheel on a page of PyTorch's index is a build for that page's accelerator.

    Each page also lists the wheels at the root of the index, which are other builds. Old aarch64
    builds carry no local version; the folder they lie in tells what they are.
    """
    local = local_of(wheel.version)
    return local == accelerator or (not local and f"/{accelerator}/" in wheel.url)


def cuda_allowed(cuda: CudaVersion | None, context: Context) -> bool:
    """Whether the target's `cuda` and `driver` admit a CUDA version; the CPU build is None."""
    target = context.target
    if cuda is None or target.is_cpu:
        return cuda is None and target.is_cpu
    if target.cuda is not None and not target.cuda.contains(str(cuda)):
        return False
    needed = context.facts.minimum_driver(cuda, target.platform)
    oldest = oldest_driver(target.driver)
    return needed is None or oldest is None or Version(needed) <= oldest


def is_proven(candidate: Candidate, context: Context) -> bool:
    """Whether the GPU code of a candidate is known, so that every GPU is known to run it."""
    return not context.target.gpus or torch_code(candidate, context) is not None


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


def _refusal(candidate: Candidate, context: Context) -> Refusal | None:
    if candidate is context.base_torch:
        refusal = _base_refusal(candidate, context)
        if refusal is not None:
            return refusal
    if context.target.is_cpu:
        return None
    if candidate.cuda is None:
        return Refusal(project="torch", reason=_without_cuda(candidate, context), excludes="gpus")
    code = torch_code(candidate, context)
    missing = [gpu for gpu in capabilities(context) if not _may_run(code, gpu, candidate.cuda)]
    if not missing:
        return None
    names = ", ".join(gpu.sm for gpu in missing)
    if code is None and all(toolkit_knows(candidate.cuda, gpu) for gpu in missing):
        reason = f"{candidate.label} is made for servers and has no code for {names}"
    elif code is None:
        reason = f"CUDA {candidate.cuda} of {candidate.label} does not compile for {names}"
    else:
        reason = f"{candidate.label} has no code for {names}: {describe(code)}"
    reason += jetson_reason(missing)
    return Refusal(project="torch", reason=reason, excludes="gpus")


def _base_refusal(candidate: Candidate, context: Context) -> Refusal | None:
    """Return why the torch of a base is not what the target asks for."""
    target, version = context.target, candidate.torch.version
    kept = f"the base has {candidate.label}, which is kept"
    if target.torch is not None and not satisfies(version, target.torch):
        reason = f"{kept}, and `torch` of the target is `{target.torch}`"
        return Refusal(project="torch", reason=reason, excludes="torch")
    if not accepts_build(context.wanted, "torch", version):
        wanted = asked(context.wanted, "torch")
        return Refusal(project="torch", reason=f"{kept}, wanted `{wanted}`", excludes=wanted)
    if not target.is_cpu and candidate.cuda and not cuda_allowed(candidate.cuda, context):
        reason = f"{kept}, and `cuda` or `driver` of the target exclude CUDA {candidate.cuda}"
        return Refusal(project="torch", reason=reason, excludes="cuda")
    return None


def _without_cuda(candidate: Candidate, context: Context) -> str:
    platform = context.target.platform
    if candidate is context.base_torch:
        return f"{candidate.label} has no code for GPUs"
    if platform is Platform.LINUX_AARCH64:
        return f"torch {candidate.public} from PyPI is a CPU build on {platform.value}"
    return f"it is not known with which CUDA torch {candidate.public} from PyPI was built"


def _may_run(code: DeviceCode | None, gpu: ComputeCapability, cuda: CudaVersion) -> bool:
    """Whether a GPU runs a build, or may run one whose code is not known."""
    if code is None:
        return toolkit_knows(cuda, gpu) and not own_code_only(gpu, cuda)
    return coverage(code, gpu, cuda=cuda) is not Coverage.NONE


def _order(candidate: Candidate, context: Context) -> Order:
    return (
        _proof(candidate, context),
        Version(candidate.public),
        candidate.cuda or _NO_CUDA,
        candidate.torch.sha256 is not None,
        candidate.torch.page.kind is PageKind.PYTORCH,
    )


def _proof(candidate: Candidate, context: Context) -> int:
    """Rank how sure it is that the GPUs run a candidate: natively, by JIT, not known."""
    code = torch_code(candidate, context)
    if code is None and capabilities(context):
        return 0
    by_jit = code is not None and any(
        coverage(code, gpu, cuda=candidate.cuda) is Coverage.JIT for gpu in capabilities(context)
    )
    return 1 if by_jit else 2
