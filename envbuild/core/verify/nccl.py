"""Every NCCL symbol that torch imports is exported by the NCCL that is locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from envbuild.core.lockview import cuda_major, shown
from envbuild.core.wheeltags import public_of
from envbuild.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.lockview import LockView
    from envbuild.model.lock import Pinned

_MOST_SYMBOLS = 5


def missing_symbols(view: LockView) -> Iterator[Finding]:
    """EB301: symbols that torch needs and the locked NCCL does not have."""
    torch = view.torch
    for name in ("nvidia-nccl-cu12", "nvidia-nccl-cu13"):
        nccl = view.package(name)
        if torch is None or nccl is None:
            continue
        needed = view.facts.torch_needs(public_of(torch.version), "nccl")
        if needed is None:
            yield _unknown(nccl, f"which NCCL symbols {shown(torch)} needs")
            continue
        yield from _judge(view, torch, nccl, needed)


def _judge(
    view: LockView, torch: Pinned, nccl: Pinned, needed: tuple[str, ...]
) -> Iterator[Finding]:
    major = cuda_major(view, nccl) or 0
    pinned = Version(nccl.version)
    first = {s: view.facts.nccl_first_version(s, cuda_major=major) for s in needed}
    late = {s: Version(v) for s, v in first.items() if v is not None and Version(v) > pinned}
    if late:
        newest = max(late.values())
        yield Finding(
            code="EB301",
            severity=Severity.ERROR,
            subject=shown(nccl),
            message=(
                f"{shown(torch)} needs {len(late)} NCCL symbol{'s' if len(late) > 1 else ''} that"
                f" `{nccl.name}` {nccl.version} lacks, the newest came with {newest}"
            ),
            evidence=tuple(f"{s} (since {late[s]})" for s in sorted(late)[:_MOST_SYMBOLS]),
            hint=f"`{nccl.name}>={newest}`",
        )
    strangers = sorted(s for s, v in first.items() if v is None)
    if strangers:
        yield _unknown(nccl, f"which NCCL exports {', '.join(strangers[:_MOST_SYMBOLS])}")


def _unknown(nccl: Pinned, what: str) -> Finding:
    return Finding(
        code="EB301",
        severity=Severity.UNKNOWN,
        subject=shown(nccl),
        message=f"it is not known {what}",
    )
