"""The GPU code of the builds of torch that a target could take, and how its GPUs run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.archs import Coverage, coverage, describe
from envbuild.core.jetson import jetson_notes
from envbuild.core.wheeltags import public_of
from envbuild.model.target import Platform
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.cuda import ComputeCapability, CudaVersion
    from envbuild.model.facts import DeviceCode
    from envbuild.model.stack import Candidate
    from envbuild.model.wheel import WheelFile
    from envbuild.ports import Facts


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


def is_proven(candidate: Candidate, context: Context) -> bool:
    """Whether the GPU code of a candidate is known, so that every GPU is known to run it."""
    return not context.target.gpus or torch_code(candidate, context) is not None


def proof_of(candidate: Candidate, context: Context) -> int:
    """Rank how sure it is that the GPUs run a candidate: natively, by JIT, not known."""
    code = torch_code(candidate, context)
    if code is None and capabilities(context):
        return 0
    by_jit = code is not None and any(
        coverage(code, gpu, cuda=candidate.cuda) is Coverage.JIT for gpu in capabilities(context)
    )
    return 1 if by_jit else 2
