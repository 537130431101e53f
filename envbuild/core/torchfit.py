"""Why a build of torch is not one for a target: its CUDA, its GPU code, or what a base keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from envbuild.core.archs import Coverage, coverage, describe, own_code_only, toolkit_knows
from envbuild.core.jetson import jetson_reason
from envbuild.core.project.targetversions import oldest_driver
from envbuild.core.torchcode import capabilities, torch_code
from envbuild.core.treebuild import accepts_build, satisfies
from envbuild.core.wanted import asked
from envbuild.model.stack import Refusal
from envbuild.model.target import Platform

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.cuda import ComputeCapability, CudaVersion
    from envbuild.model.facts import DeviceCode
    from envbuild.model.stack import Candidate


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


def refusal_of(candidate: Candidate, context: Context) -> Refusal | None:
    """Return why a candidate is not one for the target, None where it may be."""
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
