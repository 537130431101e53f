"""The assembler inside triton's wheels: which GPUs it does not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.core.toolkits import first_for
from envbuild.model.cuda import CudaVersion

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability

TRITON_NAMES = ("triton", "pytorch-triton")
# The ptxas inside triton's wheels that assembles for Blackwell and newer, by what its bytes say,
# and the variable that names another (PyPI, read 2026-11-29). Since 3.6 there is one beside the
# older ptxas; 3.3 has one too, and a variable that no shell can set. Older ones know no Blackwell.
_PTXAS = {
    (3, 4): ("12.8", "TRITON_PTXAS_PATH"),
    (3, 5): ("12.8", "TRITON_PTXAS_PATH"),
    (3, 6): ("12.9", "TRITON_PTXAS_BLACKWELL_PATH"),
    (3, 7): ("13.1", "TRITON_PTXAS_BLACKWELL_PATH"),
    (3, 8): ("13.3", "TRITON_PTXAS_BLACKWELL_PATH"),
    (3, 9): ("13.4", "TRITON_PTXAS_BLACKWELL_PATH"),
}
_BLACKWELL = 10


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
    first = first_for(gpu) if known is not None and gpu.major >= _BLACKWELL else None
    if known is None or first is None or first <= CudaVersion.parse(known[0]):
        return None
    toolkit, variable = known
    return PtxasGap(gpu=gpu, toolkit=toolkit, first=str(first), variable=variable)
