"""Code for every GPU of the target in every wheel with device code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.archs import Coverage, coverage, describe, usable_ptx
from envbuild.core.lockview import shown, stem
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.finding import Finding, Severity
from envbuild.model.target import Platform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.lockview import LockView
    from envbuild.model.cuda import ComputeCapability
    from envbuild.model.facts import DeviceCode
    from envbuild.model.lock import Pinned

# Packages whose wheels hold kernels. NVIDIA's own libraries other than NCCL are left out: they
# pick or compile their kernels at run time, so what lies in the file proves nothing against them.
_KERNELS = re.compile(
    r"torch|pyg-lib|torch-(?:scatter|sparse|cluster|spline-conv)|spconv-cu\d+|cumm-cu\d+"
    r"|flash-attn|xformers|bitsandbytes|vllm|nvidia-nccl-cu\d+"
)
_COMPANION = re.compile(r"torchvision|torchaudio|torchcodec")
# Where the missing kernels are only reached under a condition.
_ONLY_FOR = {"nvidia-nccl": "jobs on more than one GPU"}
# PTX that is reported to fail on newer GPUs: public threads on spconv with RTX 50xx.
_RISKY = {"spconv-cu120": "it also bundles NVRTC 12.0, which knows no GPU newer than sm_90"}


def device_code(view: LockView) -> Iterator[Finding]:
    """EB401 and EB402: wheels whose code a GPU cannot run, or runs only after compiling PTX."""
    if view.target.is_cpu or not view.target.gpus:
        return
    unknown: list[Pinned] = []
    for package in view.lock.packages:
        code = _code(view, package)
        if code is not None:
            yield from _judge(view, package, code)
        elif _has_kernels(package):
            unknown.append(package)
    if unknown:
        yield Finding(
            code="EB401",
            severity=Severity.UNKNOWN,
            subject=shown(unknown[0]) if len(unknown) == 1 else f"{len(unknown)} packages",
            message=f"the GPU code is not known of {', '.join(p.name for p in unknown)}",
            evidence=tuple(shown(package) for package in unknown),
        )


def _has_kernels(package: Pinned) -> bool:
    if _KERNELS.fullmatch(package.name):
        return True
    return bool(_COMPANION.fullmatch(package.name)) and "cu" in local_of(package.version)


def _code(view: LockView, package: Pinned) -> DeviceCode | None:
    wheel = view.wheel(package)
    if package.name == "torch":
        build = view.facts.torch_build(public_of(package.version), view.cuda)
        x86 = view.target.platform is Platform.LINUX_X86_64
        known = (build.code_x86_64 if x86 else build.code_aarch64) if build else None
        if known is not None:
            return known
    if wheel is None or (
        package.name.startswith("nvidia-") and stem(package.name) not in _ONLY_FOR
    ):
        return None
    return view.facts.device_code(wheel.filename)


def _judge(view: LockView, package: Pinned, code: DeviceCode) -> Iterator[Finding]:
    if not code.sass and not code.ptx:
        return
    without: list[ComputeCapability] = []
    compiling: dict[ComputeCapability | None, list[ComputeCapability]] = {}
    for capability in sorted({gpu.capability for gpu in view.target.gpus}):
        match coverage(code, capability, cuda=view.cuda):
            case Coverage.NONE:
                without.append(capability)
            case Coverage.JIT:
                compiling.setdefault(usable_ptx(code, capability), []).append(capability)
            case Coverage.NATIVE:
                pass
    if without:
        yield _none(package, code, without)
    for ptx, gpus in compiling.items():
        yield _jit(package, code, ptx, gpus)


def _none(package: Pinned, code: DeviceCode, gpus: list[ComputeCapability]) -> Finding:
    condition = _ONLY_FOR.get(stem(package.name))
    what = f"{shown(package)} has no code for {_named(gpus)}"
    return Finding(
        code="EB401",
        severity=Severity.WARNING if condition else Severity.ERROR,
        subject=shown(package),
        message=f"{what}, which {condition} need" if condition else what,
        evidence=(describe(code), *_source(code)),
    )


def _jit(
    package: Pinned,
    code: DeviceCode,
    ptx: ComputeCapability | None,
    gpus: list[ComputeCapability],
) -> Finding:
    risk = _RISKY.get(package.name)
    risky = risk is not None and ptx is not None and ptx.major < gpus[-1].major
    name = ptx.compute if ptx else "PTX"
    runs = "runs" if len(gpus) == 1 else "run"
    what = f"{_named(gpus)} {runs} {shown(package)}"
    text = f"{what} only by compiling its {name} code when it is loaded"
    return Finding(
        code="EB402",
        severity=Severity.WARNING if risky else Severity.NOTE,
        subject=shown(package),
        message=f"{text}; {risk}" if risky else text,
        evidence=(describe(code), *_source(code)),
    )


def _named(gpus: list[ComputeCapability]) -> str:
    return " and ".join(gpu.sm for gpu in gpus)


def _source(code: DeviceCode) -> tuple[str, ...]:
    return (code.source,) if code.source else ()
