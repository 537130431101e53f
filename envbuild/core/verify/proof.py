"""The proof of a locked set, before anything is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.core.frozenlock import only_frozen
from envbuild.core.lockview import LockView
from envbuild.core.verify.cuda import mixed_builds, mixed_majors, twins
from envbuild.core.verify.gpu import device_code
from envbuild.core.verify.nccl import missing_symbols
from envbuild.core.verify.origin import foreign_origin
from envbuild.core.verify.pairs import (
    built_for_another,
    not_the_stack,
    unbuilt_sdists,
    wrong_pairs,
    wrong_torch,
)
from envbuild.core.verify.triton import unknown_to_ptxas
from envbuild.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.model.finding import Finding
    from envbuild.model.lock import TargetLock
    from envbuild.model.stack import Stack
    from envbuild.model.target import Target
    from envbuild.ports import Facts

_CHECKS = (
    foreign_origin,
    twins,
    mixed_majors,
    mixed_builds,
    wrong_pairs,
    built_for_another,
    wrong_torch,
    not_the_stack,
    missing_symbols,
    device_code,
    unknown_to_ptxas,
)
_ORDER = tuple(Severity)


def verify(
    stack: Stack,
    lock: TargetLock,
    target: Target,
    facts: Facts,
    *,
    coupled: frozenset[str] = frozenset(),
) -> tuple[Finding, ...]:
    """Return what speaks against a locked set, the worst first.

    ``coupled`` are the names that some provider serves; one of them that is locked as a source
    distribution must stand in the build table, as must each that the stack pins. What a frozen
    base brings by itself is not judged.
    """
    view = LockView(stack=stack, lock=lock, target=target, facts=facts)
    findings = [finding for check in _CHECKS for finding in check(view)]
    if lock.frozen is not None:
        alone = replace(view, lock=only_frozen(lock))
        given = [finding for check in _CHECKS for finding in check(alone)]
        findings = [finding for finding in findings if finding not in given]
    findings += unbuilt_sdists(view, coupled)
    return tuple(sorted(findings, key=lambda f: (_ORDER.index(f.severity), f.code, f.subject)))


def refuses(findings: Iterable[Finding]) -> bool:
    """Whether a lock with these findings must not be written."""
    return any(finding.severity is Severity.ERROR for finding in findings)
