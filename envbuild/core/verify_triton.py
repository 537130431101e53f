"""triton's own assembler: a GPU that it does not know breaks torch.compile, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.core.lockview import shown
from envbuild.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.lockview import LockView

_NAMES = ("triton", "pytorch-triton")
# The ptxas inside triton's wheels (PyPI, read 2026-11-29): 3.4 and 3.5 hold one of CUDA 12.8, 3.6
# one of CUDA 12.9 for Blackwell. What each assembles for beyond sm_120 is read from its bytes.
_PTXAS = {
    (3, 4): ("12.8", "TRITON_PTXAS_PATH", frozenset({(10, 3), (11, 0), (12, 1)})),
    (3, 5): ("12.8", "TRITON_PTXAS_PATH", frozenset({(10, 3), (11, 0), (12, 1)})),
    (3, 6): ("12.9", "TRITON_PTXAS_BLACKWELL_PATH", frozenset({(11, 0)})),
}
_FIRST_TOOLKIT = {(10, 3): "12.9", (11, 0): "13.0", (12, 1): "12.9"}


def unknown_to_ptxas(view: LockView) -> Iterator[Finding]:
    """EB403: a GPU of the target that the ptxas inside triton cannot assemble for."""
    for package in view.lock.packages:
        release = _release(package.version) if package.name in _NAMES else None
        if release is None or release not in _PTXAS:
            continue
        toolkit, variable, unknown = _PTXAS[release]
        for gpu in dict.fromkeys(gpu.capability for gpu in view.target.gpus):
            if (gpu.major, gpu.minor) not in unknown:
                continue
            first = _FIRST_TOOLKIT[gpu.major, gpu.minor]
            yield Finding(
                code="EB403",
                severity=Severity.WARNING,
                subject=shown(package),
                message=(
                    f"the ptxas inside {shown(package)} is of CUDA {toolkit} and does not know"
                    f" {gpu.sm}: torch.compile and triton kernels fail there, torch itself runs"
                ),
                evidence=(f"ptxas knows {gpu.sm} from CUDA {first} on",),
                hint=f"set {variable} to the ptxas of a CUDA toolkit {first} or newer",
            )


def _release(version: str) -> tuple[int, int] | None:
    try:
        return (Version(version).major, Version(version).minor)
    except InvalidVersion:
        return None
