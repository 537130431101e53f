"""Which finding explains which, and the one that is the root cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.model.diagnosis import Problem, severity_rank
from envbuild.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envbuild.model.finding import Finding

_TORCH = "import:torch"
_PROBLEMS = (Severity.ERROR, Severity.WARNING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sorted:
    """Findings put in order: problems with the root cause first, notes, and what is unknown."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[Finding, ...] = ()
    unknown: tuple[Finding, ...] = ()


def sort_findings(findings: Iterable[Finding]) -> Sorted:
    """Link findings by what they bring and what they are a reason of, and put them in order.

    A finding that another one explains stands under it; of findings that explain one another
    the first in order does. The order is the same whatever the order of ``findings``.
    """
    unique = sorted(dict.fromkeys(findings), key=_text_key)
    known = [one for one in unique if one.severity is not Severity.UNKNOWN]
    problems = _problems(known)
    return Sorted(
        problems=tuple(one for one in problems if one.severity in _PROBLEMS),
        notes=tuple(
            finding for one in problems if one.severity not in _PROBLEMS for finding in one.findings
        ),
        unknown=tuple(one for one in unique if one.severity is Severity.UNKNOWN),
    )


def findings_to_mend(problems: Iterable[Problem]) -> tuple[Finding, ...]:
    """Return the findings whose fixes are wanted, in order.

    What a cause explains is gone once the cause is mended, and what would mend it alone may well
    contradict that. So its own fixes count only where the cause has none.
    """
    found: list[Finding] = []
    for problem in problems:
        if problem.cause.fixes:
            found.append(problem.cause)
        else:
            found += findings_to_mend(sort_findings(problem.explains).problems)
    return tuple(dict.fromkeys(found))


def _problems(findings: list[Finding]) -> list[Problem]:
    reach = _reach(findings)
    ranks = [_rank(number, findings, reach) for number in range(len(findings))]
    causes = [number for number in range(len(findings)) if not _is_explained(number, reach)]
    seen: set[int] = set()
    problems = []
    torch_first = sorted(causes, key=ranks.__getitem__)
    torch_first.sort(key=lambda one: not _breaks_torch(one, findings, reach))
    for cause in torch_first:
        if cause in seen:  # it and a cause before it explain each other
            continue
        under = [one for one in reach[cause] if one not in seen and one != cause]
        seen |= {cause, *under}
        under.sort(key=ranks.__getitem__)
        problems.append(
            Problem(cause=findings[cause], explains=tuple(findings[number] for number in under))
        )
    return problems


def _is_explained(number: int, reach: Mapping[int, frozenset[int]]) -> bool:
    """Whether another finding explains this one, which does not explain that in turn."""
    return any(number in reach[other] and other not in reach[number] for other in reach)


def _rank(
    number: int, findings: list[Finding], reach: Mapping[int, frozenset[int]]
) -> tuple[object, ...]:
    """Return the key that puts the worst first, then what explains most."""
    finding = findings[number]
    group = reach[number] | {number}
    worst = min(severity_rank(findings[one].severity) for one in group)
    return (worst, -len(group), severity_rank(finding.severity), *_text_key(finding))


def _breaks_torch(
    number: int, findings: list[Finding], reach: Mapping[int, frozenset[int]]
) -> bool:
    """Whether an error in a group fails `import torch`: without it, nothing else counts."""
    group = (findings[one] for one in (number, *reach[number]))
    return any(one.severity is Severity.ERROR and _TORCH in one.brings for one in group)


def _reach(findings: list[Finding]) -> dict[int, frozenset[int]]:
    """Map each finding to all that it explains, over any number of steps."""
    waiting: dict[str, list[int]] = {}
    for number, finding in enumerate(findings):
        for token in finding.because:
            waiting.setdefault(token, []).append(number)
    return {number: _reached(number, findings, waiting) for number in range(len(findings))}


def _reached(
    start: int, findings: list[Finding], waiting: Mapping[str, list[int]]
) -> frozenset[int]:
    found: set[int] = set()
    tokens: set[str] = set()
    todo = [start]
    while todo:
        fresh = set(findings[todo.pop()].brings) - tokens
        tokens |= fresh
        new = {number for token in fresh for number in waiting.get(token, ())} - found
        found |= new
        todo += sorted(new)
    return frozenset(found - {start})


def _text_key(finding: Finding) -> tuple[str, ...]:
    rest = (finding.evidence, finding.hint, finding.fixes, finding.because, finding.brings)
    return (finding.code, finding.subject, finding.message, repr(rest))
