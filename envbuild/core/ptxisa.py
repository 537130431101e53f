"""Which driver compiles which PTX: it must be of the CUDA that wrote the PTX, or a newer one.

PTX names the version of its instruction set, which grows with nearly every minor of CUDA. The
driver compiles what its own CUDA knows: compatibility within a major is for machine code alone
(`CUDA_ERROR_UNSUPPORTED_PTX_VERSION`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.core.archs import compiles
from envbuild.core.toolkits import first_for, isa_of
from envbuild.model.cuda import CudaVersion

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability
    from envbuild.model.facts import DeviceCode

# The first driver that comes with each CUDA on Linux, oldest first (NVIDIA, "CUDA Toolkit Release
# Notes", table of toolkit driver versions, read 2026-11-29). It bounds what PTX can be compiled;
# it does not bound which CUDA runs: that is `minimum_driver`.
_SHIPPED_WITH = (
    ("11.8", "520.61.05"),
    ("12.0", "525.60.13"),
    ("12.1", "530.30.02"),
    ("12.2", "535.54.03"),
    ("12.3", "545.23.06"),
    ("12.4", "550.54.14"),
    ("12.5", "555.42.02"),
    ("12.6", "560.28.03"),
    ("12.8", "570.26"),
    ("12.9", "575.51.03"),
    ("13.0", "580.65.06"),
    ("13.1", "590.44.01"),
)
_NEWEST = "13.1"


def cuda_of_driver(driver: str | Version) -> CudaVersion | None:
    """Return the CUDA that a driver came with, None where it is newer than what is known.

    All drivers of a branch (570) are of one CUDA.
    """
    try:
        version = Version(str(driver))
    except InvalidVersion:
        return None
    known = [cuda for cuda, first in _SHIPPED_WITH if Version(first).major <= version.major]
    if not known or known[-1] == _NEWEST:
        return None
    return CudaVersion.parse(known[-1])


def driver_for(cuda: CudaVersion) -> str | None:
    """Return the first driver that compiles the PTX of a CUDA."""
    of = ((first, CudaVersion.parse(known)) for known, first in _SHIPPED_WITH)
    return next((first for first, known in of if known >= cuda), None)


def cuda_of_ptx(code: DeviceCode, ptx: ComputeCapability) -> CudaVersion | None:
    """Return the first CUDA whose driver compiles the PTX for a capability, None if not known."""
    isa = dict(code.isa).get(ptx)
    return isa_of(isa) if isa is not None else None


def too_new(
    code: DeviceCode, gpu: ComputeCapability, driver: CudaVersion | None
) -> CudaVersion | None:
    """Return the CUDA that a driver must be of to compile any PTX for a GPU.

    None is returned where the driver compiles some of it, or it is not known whether it does. A
    driver that runs the GPU at all is no older than the first CUDA that knows it, whatever bound a
    project names for other GPUs.
    """
    fitting = [ptx for ptx in code.ptx if compiles(ptx, gpu)]
    wanted = [cuda_of_ptx(code, ptx) for ptx in fitting]
    known = [cuda for cuda in wanted if cuda is not None]
    if driver is None or not known or len(known) < len(wanted):
        return None
    oldest = max(driver, first_for(gpu) or driver)
    return None if min(known) <= oldest else min(known)
