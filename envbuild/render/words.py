"""What every rendering says in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.finding import Finding


def finding_words(finding: Finding) -> str:
    """Return the message, after the subject where it does not name that itself."""
    named = not finding.subject or finding.subject in finding.message
    return finding.message if named else f"{finding.subject}: {finding.message}"


def plural(count: int, noun: str) -> str:
    """Return ``1 package``, ``2 packages``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
