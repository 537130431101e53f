"""A lock that takes an older torch than the one before: said, with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.version import Version

from envbuild.core.wheeltags import public_of

if TYPE_CHECKING:
    from envbuild.model.lock import TargetLock
    from envbuild.model.report import TargetReport


def with_descent(report: TargetReport, before: TargetLock | None) -> TargetReport:
    """Return the report with a note where its torch is older than the one locked before."""
    old, new = _torch(before), _torch(report.lock)
    if old is None or new is None or Version(public_of(new)) >= Version(public_of(old)):
        return report
    reason = _reason(report, old)
    note = f"torch goes down from {old} to {new}{f': {reason}' if reason else ''}"
    return replace(report, notes=(*report.notes, note))


def _torch(lock: TargetLock | None) -> str | None:
    packages = lock.packages if lock else ()
    return next((package.version for package in packages if package.name == "torch"), None)


def _reason(report: TargetReport, old: str) -> str:
    """Return why the build locked before was turned down, else why its release was."""
    for same in (lambda torch: torch == old, lambda torch: public_of(torch) == public_of(old)):
        for rejection in report.rejections:
            if same(rejection.candidate.torch.version):
                return rejection.refusals[0].reason
    return ""
