"""A finding as plain values, alike in every JSON answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.finding import Finding


def finding_values(finding: Finding) -> dict[str, object]:
    """Return what a finding says; the order of the keys never changes."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "subject": finding.subject,
        "message": finding.message,
        "evidence": list(finding.evidence),
        "hint": finding.hint,
    }
