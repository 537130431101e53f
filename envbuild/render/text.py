"""The answer of `envbuild lock` for a person in a hurry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.model.finding import Severity
from envbuild.model.report import MISSING, UNBOUND, Outcome
from envbuild.render.canvas import new_canvas
from envbuild.render.explain import explain_target
from envbuild.render.nextstep import Invocation, has_errors, next_step
from envbuild.render.rows import (
    build_words,
    count_words,
    headline,
    notes_of,
    pin_rows,
    worst_first,
)
from envbuild.render.words import finding_words, plural

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.report import LockReport, TargetReport
    from envbuild.render.canvas import Canvas

_STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "yellow",
    Severity.UNKNOWN: "magenta",
    Severity.NOTE: "cyan",
}


def render_text(
    report: LockReport,
    *,
    invocation: Invocation | None = None,
    explain: bool = False,
    width: int | None = None,
    color: bool = False,
) -> str:
    """Return the whole answer; its last line is what to type next."""
    canvas = new_canvas(width=width, color=color)
    for target in report.targets:
        _target(canvas, target, explain=explain)
    _changes(canvas, report)
    if report.source:
        canvas.line(report.source)
    for line in _verdict(report):
        canvas.line(line)
    step = next_step(report, invocation or Invocation())
    canvas.labelled("next: ", step, style="bold")
    return redact_text(canvas.text())


def _target(canvas: Canvas, report: TargetReport, *, explain: bool) -> None:
    canvas.labelled(f"{report.target}: ", headline(report), style="bold")
    canvas.table(pin_rows(report), indent=2)
    canvas.line(count_words(report.lock), indent=2)
    builds = ", ".join(build_words(build) for build in report.lock.builds or report.stack.builds)
    if builds:
        canvas.line(f"compiled on install: {builds}", indent=2)
    for finding in worst_first(report.findings):
        _finding(canvas, finding)
    for note in notes_of(report):
        canvas.labelled("note: ", note, indent=2, style="cyan")
    if explain:
        explain_target(canvas, report)
    canvas.line()


def _finding(canvas: Canvas, finding: Finding) -> None:
    label = f"{finding.severity.value} {finding.code}: ".replace(" :", ":")
    canvas.labelled(label, finding_words(finding), indent=2, style=_STYLES[finding.severity])
    for line in finding.evidence:
        canvas.line(line, indent=6)
    if finding.hint:
        canvas.line(f"hint: {finding.hint}", indent=6)


def _changes(canvas: Canvas, report: LockReport) -> None:
    stale = report.outcome is Outcome.STALE
    # A file that is written for the first time stands among the files written.
    changes = [c for c in report.changes if stale or c.text not in (MISSING, UNBOUND)]
    if not changes:
        return
    canvas.labelled("changes:", "", style="bold")
    last = None
    for change in changes:
        where = f"{change.file} ({change.target})" if change.target else change.file
        if where != last:
            canvas.line(where, indent=2)
        canvas.line(change.text, indent=4)
        last = where
    canvas.line()


def _verdict(report: LockReport) -> tuple[str, ...]:
    files = ", ".join(report.files)
    lines = {
        Outcome.WRITTEN: f"written: {files}",
        Outcome.WOULD_WRITE: f"nothing was written, a real run would write: {files}",
        Outcome.UNCHANGED: "unchanged: every file already holds this",
        Outcome.FRESH: "fresh: the files hold what the inputs give",
        Outcome.STALE: f"stale: {plural(len(report.changes), 'difference')} between the files "
        "and what the inputs give",
    }
    verdict = [lines[report.outcome]]
    if report.incomplete:
        verdict.append("incomplete: not every package has a hash")
    if has_errors(report):
        verdict.append("not sound: see the errors above")
    return tuple(verdict)
