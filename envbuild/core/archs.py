"""Which GPU runs which device code: torch's own rule, with its exceptions."""

from __future__ import annotations

from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING

from envbuild.model.cuda import CudaVersion

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.model.cuda import ComputeCapability
    from envbuild.model.facts import DeviceCode

# torch 2.15.0, torch/cuda/__init__.py, DEVICE_REQUIREMENT (read 2026-11-29): machine code for X.y
# runs on X.z with z >= y, except on these integrated (Tegra) GPUs, which run only their own.
_TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)})
# The same table: builds with CUDA 13.2 or newer no longer except these two.
_NO_EXCEPTION_SINCE = {
    (7, 2): CudaVersion(major=13, minor=2),
    (8, 7): CudaVersion(major=13, minor=2),
}
# Jetson Thor was 10.1 until CUDA 13 renamed it to 11.0; code for one name runs under the other.
_THOR = frozenset({(10, 1), (11, 0)})
# The first toolkit that compiles for each major, and for the GPUs that CUDA 13 dropped the last
# major that does (CUDA's release notes, read 2026-11-29).
_FIRST_TOOLKIT = {
    8: CudaVersion(major=11, minor=0),
    9: CudaVersion(major=11, minor=8),
    10: CudaVersion(major=12, minor=8),
    11: CudaVersion(major=13, minor=0),
    12: CudaVersion(major=12, minor=8),
}
_OLDEST_OF_CUDA_13 = (7, 5)


class Coverage(Enum):
    """How a GPU runs a piece of device code, worst last."""

    NATIVE = 0
    JIT = 1
    NONE = 2


def runs(
    code: ComputeCapability, gpu: ComputeCapability, *, cuda: CudaVersion | None = None
) -> bool:
    """Whether a GPU runs machine code built for ``code``, ``cuda`` being the build's toolkit."""
    built, device = (code.major, code.minor), (gpu.major, gpu.minor)
    if built in _THOR and device in _THOR:
        return code.suffix != "a" or built == device
    if code.suffix == "a" or built == device:
        return built == device
    if built in _TEGRA or built[0] != device[0] or built[1] > device[1]:
        return False
    return not own_code_only(gpu, cuda)


def own_code_only(gpu: ComputeCapability, cuda: CudaVersion | None) -> bool:
    """Whether a GPU is an integrated one that runs no code but its own, from this toolkit."""
    device = (gpu.major, gpu.minor)
    since = _NO_EXCEPTION_SINCE.get(device)
    return device in _TEGRA and (cuda is None or since is None or cuda < since)


def compiles(ptx: ComputeCapability, gpu: ComputeCapability) -> bool:
    """Whether the driver can compile PTX for a GPU: any as new as the PTX.

    Suffixed PTX is bound to its capability (``a``) or family (``f``) like machine code.
    """
    if ptx.suffix:
        return runs(ptx, gpu)
    return (ptx.major, ptx.minor) <= (gpu.major, gpu.minor)


def coverage(
    code: DeviceCode, gpu: ComputeCapability, *, cuda: CudaVersion | None = None
) -> Coverage:
    """Return how a GPU runs the code of a wheel: natively, by JIT, or not at all."""
    if any(runs(sass, gpu, cuda=cuda) for sass in code.sass):
        return Coverage.NATIVE
    return Coverage.JIT if usable_ptx(code, gpu) is not None else Coverage.NONE


def toolkit_knows(cuda: CudaVersion, gpu: ComputeCapability) -> bool:
    """Whether a CUDA toolkit can compile machine code for a GPU's family."""
    if cuda.major >= 13 and (gpu.major, gpu.minor) < _OLDEST_OF_CUDA_13:  # noqa: PLR2004
        return False
    first = _FIRST_TOOLKIT.get(gpu.major)
    return first is None or cuda >= first


def usable_ptx(code: DeviceCode, gpu: ComputeCapability) -> ComputeCapability | None:
    """Return the newest PTX of a wheel that the driver can compile for a GPU."""
    return max((ptx for ptx in code.ptx if compiles(ptx, gpu)), default=None)


def describe(code: DeviceCode) -> str:
    """Say what code a wheel holds: ``SASS sm_50 … sm_90, no PTX``."""
    sass = _span([capability.sm for capability in sorted(code.sass)])
    ptx = _span([capability.compute for capability in sorted(code.ptx)])
    return f"{f'SASS {sass}' if sass else 'no SASS'}, {f'PTX {ptx}' if ptx else 'no PTX'}"


def _span(names: Iterable[str]) -> str:
    unique = [name for name, _ in groupby(names)]
    return ", ".join(unique) if len(unique) <= 2 else f"{unique[0]} … {unique[-1]}"  # noqa: PLR2004
