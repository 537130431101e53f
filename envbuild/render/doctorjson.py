"""The answer of `envbuild doctor` as JSON; `data/doctor.schema.json` describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.render.findingjson import finding_values

if TYPE_CHECKING:
    from envbuild.model.diagnosis import DoctorReport, Problem, Repair, RuleText, Subject
    from envbuild.model.finding import Finding
    from envbuild.model.fix import RepairStep

VERSION = 1


def doctor_document(
    report: DoctorReport, *, exit_code: int, repair: Repair | None = None
) -> dict[str, object]:
    """Return the report as plain values; the order of the keys never changes."""
    first, others = report.problems[:1], report.problems[1:]
    return {
        "version": VERSION,
        "command": "doctor",
        "exit_code": exit_code,
        "environment": _environment(report.subject),
        "aim": report.aim or None,
        "primary": _finding(first[0].cause) if first else None,
        "consequences": [_finding(one) for problem in first for one in problem.explains],
        "others": [_problem(one) for one in others],
        "notes": [_finding(one) for one in report.notes],
        "unknown": [_finding(one) for one in report.unknown],
        "plan": [_step(step) for step in report.plan],
        "repair": _repair(repair) if repair else None,
        "judged": [rule.code for rule in report.rules],
        "not_judged": [
            {"codes": list(one.codes), "kind": one.kind, "reason": one.reason}
            for one in report.not_judged
        ],
        "seconds": round(report.seconds, 3),
        "timings": {what: round(seconds, 3) for what, seconds in report.timings},
    }


def rules_document(rules: tuple[RuleText, ...]) -> dict[str, object]:
    """Return rules with their pages as plain values."""
    return {
        "version": VERSION,
        "command": "rules",
        "rules": [
            {
                "code": rule.code,
                "title": rule.title,
                "severity": rule.severity.value,
                "page": rule.page,
            }
            for rule in rules
        ],
    }


def _environment(subject: Subject) -> dict[str, object]:
    return {
        "prefix": subject.prefix,
        "executable": subject.executable or None,
        "python": subject.python or None,
        "root": subject.root,
        "project": subject.project or None,
        "torch": subject.torch or None,
        "distributions": subject.distributions,
        "shared_objects": subject.shared_objects,
        "unread": list(subject.unread),
    }


def _problem(problem: Problem) -> dict[str, object]:
    return {
        "cause": _finding(problem.cause),
        "explains": [_finding(one) for one in problem.explains],
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        **finding_values(finding),
        "because": list(finding.because),
        "brings": list(finding.brings),
    }


def _step(step: RepairStep) -> dict[str, object]:
    return {
        "reason": step.reason,
        "command": list(step.command) or None,
        "text": step.text or None,
    }


def _repair(repair: Repair) -> dict[str, object]:
    return {
        "done": [_step(step) for step in repair.done],
        "failed": _step(repair.failed) if repair.failed else None,
        "reason": repair.reason or None,
        "rest": [_step(step) for step in repair.rest],
        "left": [_step(step) for step in repair.left],
    }
