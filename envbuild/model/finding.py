"""A finding: what is wrong, the evidence, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.fix import Fix


class Severity(str, Enum):
    """How bad a finding is.

    error: it will fail or compute on the wrong thing. warning: it will fail under a condition
    that is named. note: worth knowing. unknown: it could not be judged.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One judgement about one subject, with its evidence and what to do about it.

    ``because`` and ``brings`` link findings: one explains another where something it brings is
    a reason of the other. Both hold tokens like ``file:/venv/.../libnccl.so.2``,
    ``dist:torch`` or ``import:torch``.
    """

    code: str
    severity: Severity
    subject: str
    message: str
    evidence: tuple[str, ...] = ()
    hint: str | None = None
    fixes: tuple[Fix, ...] = ()
    because: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
