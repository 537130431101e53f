"""What a package's GPU code is worth on some GPUs, in the words of EB401 and EB402."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.archs import Coverage, coverage, describe, usable_ptx
from envbuild.core.lockview import stem
from envbuild.core.ptxisa import cuda_of_ptx, driver_for, too_new
from envbuild.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.cuda import ComputeCapability, CudaVersion
    from envbuild.model.facts import DeviceCode

# Packages whose wheels hold kernels.
_KERNELS = re.compile(
    r"torch|pyg-lib|torch-(?:scatter|sparse|cluster|spline-conv)|spconv-cu\d+|cumm-cu\d+"
    r"|flash-attn|xformers|bitsandbytes|vllm|nvidia-nccl-cu\d+"
)
_COMPANION = re.compile(r"torchvision|torchaudio|torchcodec")
# Where the missing kernels are only reached under a condition.
_ONLY_FOR = {"nvidia-nccl": "jobs on more than one GPU"}
# PTX that is reported to fail on newer GPUs: public threads on spconv with RTX 50xx.
_RISKY = {"spconv-cu120": "it also bundles NVRTC 12.0, which knows no GPU newer than sm_90"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """A package with GPU code: its name, and how messages name it."""

    name: str
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Driver:
    """The driver that compiles PTX: how messages name it, and the CUDA it came with."""

    label: str
    cuda: CudaVersion


def has_kernels(name: str) -> bool:
    """Whether a package's CUDA build is known to hold kernels."""
    return bool(_KERNELS.fullmatch(name))


def is_companion(name: str) -> bool:
    """Whether a package is one of torch's, whose CUDA builds alone hold kernels."""
    return bool(_COMPANION.fullmatch(name))


def is_judged(name: str) -> bool:
    """Whether the code of a package proves anything.

    NVIDIA's own libraries other than NCCL pick or compile their kernels at run time.
    """
    return not name.startswith("nvidia-") or stem(name) in _ONLY_FOR


def judge_code(
    package: Package,
    code: DeviceCode,
    gpus: Iterable[ComputeCapability],
    *,
    cuda: CudaVersion | None,
    driver: Driver | None = None,
) -> Iterator[Finding]:
    """Give EB401 and EB402 for the GPUs that cannot run a package, or only by JIT.

    PTX of a newer CUDA than that of the ``driver`` is worth nothing.
    """
    if not code.sass and not code.ptx:
        return
    without: list[ComputeCapability] = []
    compiling: dict[ComputeCapability | None, list[ComputeCapability]] = {}
    refused: dict[CudaVersion, list[ComputeCapability]] = {}
    for capability in sorted(set(gpus)):
        found = coverage(code, capability, cuda=cuda)
        if found is Coverage.NONE:
            without.append(capability)
        elif found is Coverage.JIT:
            newer = too_new(code, capability, driver.cuda) if driver else None
            if newer is not None:
                refused.setdefault(newer, []).append(capability)
            else:
                compiling.setdefault(usable_ptx(code, capability), []).append(capability)
    if without:
        yield _none(package, code, without)
    if driver is not None:
        yield from (
            _refused(package, code, ones, newer=c, driver=driver) for c, ones in refused.items()
        )
    for ptx, ones in compiling.items():
        yield _jit(package, code, ptx, ones)


def _none(package: Package, code: DeviceCode, gpus: list[ComputeCapability]) -> Finding:
    condition = _ONLY_FOR.get(stem(package.name))
    what = f"{package.label} has no code for {_named(gpus)}"
    return Finding(
        code="EB401",
        severity=Severity.WARNING if condition else Severity.ERROR,
        subject=package.label,
        message=f"{what}, which {condition} need" if condition else what,
        evidence=(describe(code), *_source(code)),
    )


def _refused(
    package: Package,
    code: DeviceCode,
    gpus: list[ComputeCapability],
    *,
    newer: CudaVersion,
    driver: Driver,
) -> Finding:
    condition = _ONLY_FOR.get(stem(package.name))
    needed = driver_for(newer)
    return Finding(
        code="EB401",
        severity=Severity.WARNING if condition else Severity.ERROR,
        subject=package.label,
        message=(
            f"{package.label} has only PTX for {_named(gpus)}, of CUDA {newer}, which"
            f" {driver.label} (CUDA {driver.cuda}) cannot compile"
        ),
        evidence=(describe(code), *_source(code)),
        hint=f"driver {needed or f'of CUDA {newer}'} or newer compiles it",
    )


def _jit(
    package: Package,
    code: DeviceCode,
    ptx: ComputeCapability | None,
    gpus: list[ComputeCapability],
) -> Finding:
    risk = _RISKY.get(package.name)
    risky = risk is not None and ptx is not None and ptx.major < gpus[-1].major
    name = ptx.compute if ptx else "PTX"
    runs = "runs" if len(gpus) == 1 else "run"
    what = f"{_named(gpus)} {runs} {package.label}"
    text = f"{what} only by compiling its {name} code when it is loaded"
    return Finding(
        code="EB402",
        severity=Severity.WARNING if risky else Severity.NOTE,
        subject=package.label,
        message=f"{text}; {risk}" if risky else text,
        evidence=(describe(code), *_source(code), *_written_by(code, ptx)),
    )


def _written_by(code: DeviceCode, ptx: ComputeCapability | None) -> tuple[str, ...]:
    cuda = cuda_of_ptx(code, ptx) if ptx is not None else None
    if cuda is None:
        return ()
    needed = driver_for(cuda)
    return (
        f"its PTX is of CUDA {cuda}: a driver of that or newer compiles it"
        + (f" ({needed})" if needed else ""),
    )


def _named(gpus: list[ComputeCapability]) -> str:
    return " and ".join(gpu.sm for gpu in gpus)


def _source(code: DeviceCode) -> tuple[str, ...]:
    return (code.source,) if code.source else ()
