"""Releases in a set that their authors withdrew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.resolution import Resolution


def withdrawn(resolution: Resolution) -> Iterator[Finding]:
    """EB114: a release that its authors withdrew and that a requirement still names."""
    for release, reason in resolution.yanked:
        yield Finding(
            code="EB114",
            severity=Severity.WARNING,
            subject=release.replace("==", " "),
            message=f"`{release}` is yanked, its authors withdrew it",
            evidence=(reason,) if reason else (),
            hint=f"ask for another version than `{release}`",
        )
