"""The answer of `envbuild doctor` for a person in a hurry."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.model.finding import Severity
from envbuild.render.canvas import new_canvas
from envbuild.render.words import finding_words, plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.model.diagnosis import DoctorReport, NotJudged, Problem, Repair
    from envbuild.model.finding import Finding
    from envbuild.model.fix import RepairStep
    from envbuild.render.canvas import Canvas

_STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "yellow",
    Severity.UNKNOWN: "magenta",
    Severity.NOTE: "cyan",
}
_MOST_UNREAD = 5
_KINDS = ("skipped", "ignored", "left out")


def render_doctor_text(
    report: DoctorReport,
    *,
    again: str = "envbuild doctor",
    color: bool = False,
) -> str:
    """Return the whole answer: the root cause first; one line where nothing is wrong.

    Nothing in it is folded, whatever the terminal: commands are to be pasted.
    """
    canvas = new_canvas(color=color)
    if report.problems:
        _root_cause(canvas, report.problems[0])
        plan_lines(canvas, report.plan, image=report.subject.root != "/")
        _others(canvas, report.problems[1:])
    else:
        canvas.labelled(*_verdict(report), style="bold green" if report.rules else "bold red")
    _listed(canvas, "notes:", report.notes)
    _listed(canvas, "not known:", report.unknown)
    _not_read(canvas, report.subject.unread)
    _broken(canvas, report)
    if report.problems:
        _ending(canvas, report)
        if any(step.command for step in report.plan):
            canvas.labelled("next: ", f"{again} --fix", style="bold")
    return redact_text(canvas.text())


def plan_lines(canvas: Canvas, plan: tuple[RepairStep, ...], *, image: bool = False) -> None:
    """Add a plan whose lines can be pasted into a shell as they are."""
    if not plan:
        return
    canvas.line()
    canvas.labelled("repair:", " (in a container of the image)" if image else "", style="bold")
    for number, step in enumerate(plan, start=1):
        canvas.line(f"# {number}. {step.reason}", indent=2, style="dim")
        canvas.line(shlex.join(step.command) or step.text, indent=2)


def render_plan(plan: tuple[RepairStep, ...], *, color: bool = False) -> str:
    """Return a plan alone."""
    canvas = new_canvas(color=color)
    plan_lines(canvas, plan)
    return redact_text(canvas.text())


def render_failed_repair(repair: Repair, *, color: bool = False) -> str:
    """Return which step failed and what is still to be done; nothing where none failed."""
    if repair.failed is None:
        return ""
    canvas = new_canvas(color=color)
    step = repair.failed
    what = shlex.join(step.command) or step.text
    canvas.labelled("error: ", f"the repair stopped at `{what}`: {repair.reason}", style="bold red")
    for later in (step, *repair.rest):
        canvas.line(f"# still to do: {later.reason}", indent=2)
        canvas.line(shlex.join(later.command) or later.text, indent=2)
    return redact_text(canvas.text()) + "\n"


def counts(report: DoctorReport) -> str:
    """Return what was looked at and judged, in numbers."""
    subject = report.subject
    parts = []
    if subject.distributions is not None:
        parts.append(plural(subject.distributions, "distribution"))
    if subject.shared_objects is not None:
        parts.append(plural(subject.shared_objects, "shared object"))
    parts.append(f"torch {subject.torch}" if subject.torch else "no torch")
    parts.append(f"{plural(len(report.rules), 'rule')} judged")
    skipped = sum(len(one.codes) for one in report.not_judged if one.kind == "skipped")
    if skipped:
        parts.append(f"{skipped} skipped")
    return ", ".join(parts)


def _verdict(report: DoctorReport) -> tuple[str, str]:
    if not report.rules:
        reasons = _reasons(report, ("skipped", *_KINDS))
        return "not judged: ", reasons or "no rule was selected"
    skipped = _reasons(report, ("skipped",))
    why = f" ({skipped})" if skipped else ""
    aim = f", for {report.aim}" if report.aim else ""
    return "healthy: ", f"{counts(report)}{why}{aim}, {report.seconds:.1f} s"


def _root_cause(canvas: Canvas, problem: Problem) -> None:
    cause = problem.cause
    label = f"{cause.severity.value} {cause.code}: "
    canvas.labelled(label, finding_words(cause), style=_STYLES[cause.severity])
    _details(canvas, cause, indent=2)
    if problem.explains:
        canvas.line()
        canvas.labelled("explains:", "", style="bold")
        for finding in problem.explains:
            _finding(canvas, finding, indent=2)


def _others(canvas: Canvas, problems: tuple[Problem, ...]) -> None:
    if not problems:
        return
    canvas.line()
    canvas.labelled("other problems:", "", style="bold")
    for problem in problems:
        _finding(canvas, problem.cause, indent=2)
        if problem.explains:
            canvas.line("explains:", indent=6)
        for finding in problem.explains:
            _finding(canvas, finding, indent=8)


def _listed(canvas: Canvas, title: str, findings: tuple[Finding, ...]) -> None:
    if findings:
        canvas.line()
        canvas.labelled(title, "", style="bold")
    for finding in findings:
        _finding(canvas, finding, indent=2)


def _finding(canvas: Canvas, finding: Finding, *, indent: int) -> None:
    label = f"{finding.severity.value} {finding.code}: "
    canvas.labelled(label, finding_words(finding), indent=indent, style=_STYLES[finding.severity])
    _details(canvas, finding, indent=indent + 4)


def _details(canvas: Canvas, finding: Finding, *, indent: int) -> None:
    for line in finding.evidence:
        canvas.line(line, indent=indent)
    if finding.hint:
        canvas.line(f"hint: {finding.hint}", indent=indent)


def _not_read(canvas: Canvas, unread: tuple[str, ...]) -> None:
    """Say what of the environment was not read: nothing is known of it."""
    if unread:
        canvas.line()
        canvas.labelled("not read:", "", style="bold")
    for line in unread[:_MOST_UNREAD]:
        canvas.line(line, indent=2)
    if len(unread) > _MOST_UNREAD:
        canvas.line(f"and {len(unread) - _MOST_UNREAD} more (`--format json` has all)", indent=2)


def _broken(canvas: Canvas, report: DoctorReport) -> None:
    for one in report.not_judged:
        if one.kind == "broken":
            last = one.reason.strip().rpartition("\n")[2]
            text = f"{', '.join(one.codes)} was not judged: {last} (`--format json` has more)"
            canvas.labelled("a bug in envbuild: ", text, style="bold red")


def _ending(canvas: Canvas, report: DoctorReport) -> None:
    canvas.line()
    reasons = _reasons(report, _KINDS)
    if reasons:
        canvas.line(f"not judged: {reasons}")
    where = report.subject.executable or report.subject.prefix
    aim = f", for {report.aim}" if report.aim else ""
    canvas.line(f"examined {where}: {counts(report)}{aim}, {report.seconds:.1f} s")


def _reasons(report: DoctorReport, kinds: Iterable[str]) -> str:
    chosen = [one for one in report.not_judged if one.kind in kinds]
    return "; ".join(_reason(one) for one in chosen)


def _reason(one: NotJudged) -> str:
    words = f"ignored: {one.reason}" if one.kind == "ignored" else one.reason
    return f"{', '.join(one.codes)}: {words}"
