"""The assembler inside triton's wheels: which GPUs it does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability

TRITON_NAMES = ("triton", "pytorch-triton")
# The ptxas inside triton's wheels (PyPI, read 2026-11-29): 3.4 and 3.5 hold one of CUDA 12.8, 3.6
# one of CUDA 12.9 for Blackwell. What each assembles for beyond sm_120 is read from its bytes.
_PTXAS = {
    (3, 4): ("12.8", "TRITON_PTXAS_PATH", frozenset({(10, 3), (11, 0), (12, 1)})),
    (3, 5): ("12.8", "TRITON_PTXAS_PATH", frozenset({(10, 3), (11, 0), (12, 1)})),
    (3, 6): ("12.9", "TRITON_PTXAS_BLACKWELL_PATH", frozenset({(11, 0)})),
}
_FIRST_TOOLKIT = {(10, 3): "12.9", (11, 0): "13.0", (12, 1): "12.9"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PtxasGap:
    """A GPU that triton's ptxas does not know.

    ``toolkit`` is the CUDA of that ptxas, ``first`` the one that knows the GPU, ``variable``
    the one that names another ptxas.
    """

    gpu: ComputeCapability
    toolkit: str
    first: str
    variable: str

    def message(self, label: str) -> str:
        """Say it of the triton that ``label`` names."""
        return (
            f"the ptxas inside {label} is of CUDA {self.toolkit} and does not know"
            f" {self.gpu.sm}: torch.compile and triton kernels fail there, torch itself runs"
        )

    @property
    def evidence(self) -> str:
        """Since when ptxas knows the GPU."""
        return f"ptxas knows {self.gpu.sm} from CUDA {self.first} on"

    @property
    def hint(self) -> str:
        """What to do about it."""
        return f"set {self.variable} to the ptxas of a CUDA toolkit {self.first} or newer"


def ptxas_gap(version: str, gpu: ComputeCapability) -> PtxasGap | None:
    """Return what a release of triton does not know of a GPU, None where it knows it."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return None
    known = _PTXAS.get((parsed.major, parsed.minor))
    if known is None or (gpu.major, gpu.minor) not in known[2]:
        return None
    toolkit, variable, _ = known
    first = _FIRST_TOOLKIT[gpu.major, gpu.minor]
    return PtxasGap(gpu=gpu, toolkit=toolkit, first=first, variable=variable)
