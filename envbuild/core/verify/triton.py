"""triton's own assembler: a GPU that it does not know breaks torch.compile, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.lockview import shown
from envbuild.core.ptxas import TRITON_NAMES, ptxas_gap
from envbuild.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.lockview import LockView


def unknown_to_ptxas(view: LockView) -> Iterator[Finding]:
    """EB405: a GPU of the target that the ptxas inside triton cannot assemble for."""
    for package in view.lock.packages:
        if package.name not in TRITON_NAMES:
            continue
        for gpu in dict.fromkeys(gpu.capability for gpu in view.target.gpus):
            gap = ptxas_gap(package.version, gpu)
            if gap is not None:
                yield Finding(
                    code="EB405",
                    severity=Severity.WARNING,
                    subject=shown(package),
                    message=gap.message(shown(package)),
                    evidence=(gap.evidence,),
                    hint=gap.hint,
                )
