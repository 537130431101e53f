"""The answers of `envbuild doctor`, `rules` and `explain` in the format that was asked for.

Text is what somebody waits for: what other formats need is imported for them alone.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.model.finding import Severity
from envbuild.render.canvas import new_canvas
from envbuild.render.doctortext import counts, render_doctor_text
from envbuild.render.words import finding_words, plural

if TYPE_CHECKING:
    from envbuild.model.diagnosis import DoctorReport, Repair, RuleText
    from envbuild.model.finding import Finding

_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.UNKNOWN: "notice",
    Severity.NOTE: "notice",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorManner:
    """How to say it.

    ``format`` is ``text``, ``json``, ``sarif`` or ``github``; ``again`` is the command that
    gave the answer; ``root`` stands before the paths of the project's files.
    """

    format: str
    again: str = "envbuild doctor"
    width: int | None = None
    color: bool = False
    root: str = ""


def render_diagnosis(
    report: DoctorReport, manner: DoctorManner, *, exit_code: int, repair: Repair | None = None
) -> str:
    """Return the text that goes to stdout."""
    if manner.format == "json":
        from envbuild.render.doctorjson import doctor_document
        from envbuild.render.jsonreport import render_json

        return render_json(doctor_document(report, exit_code=exit_code, repair=repair))
    if manner.format == "sarif":
        from envbuild.render.jsonreport import render_json
        from envbuild.render.sarif import sarif_document

        return render_json(sarif_document(report, exit_code=exit_code))
    if manner.format == "github":
        return _github(report, root=manner.root)
    return render_doctor_text(report, again=manner.again, color=manner.color)


def render_rules(
    rules: tuple[RuleText, ...], *, as_json: bool, width: int | None = None, color: bool = False
) -> str:
    """Return the list of rules."""
    if as_json:
        from envbuild.render.doctorjson import rules_document
        from envbuild.render.jsonreport import render_json

        return render_json(rules_document(rules))
    canvas = new_canvas(width=width, color=color)
    rows = [(rule.code, rule.severity.value, rule.title) for rule in rules]
    canvas.table(rows, style="bold")
    return canvas.text()


def render_page(rule: RuleText, *, as_json: bool, color: bool = False) -> str:
    """Return the page of one rule."""
    if as_json:
        from envbuild.render.doctorjson import rules_document
        from envbuild.render.jsonreport import render_json

        return render_json(rules_document((rule,)))
    canvas = new_canvas(color=color)
    canvas.labelled(f"{rule.code} ", f"{rule.title} ({rule.severity.value})", style="bold")
    canvas.line()
    canvas.line(rule.page)
    return canvas.text()


def _github(report: DoctorReport, *, root: str) -> str:
    lines = [_annotation(finding, report, root=root) for finding in report.findings]
    outcome = _outcome(report)
    lines.append(redact_text(f"envbuild doctor: {outcome} ({counts(report)})"))
    return "\n".join(lines) + "\n"


def _annotation(finding: Finding, report: DoctorReport, *, root: str) -> str:
    from envbuild.render.github import workflow_command
    from envbuild.render.location import PROJECT, location_of

    location = location_of(finding, report.subject)
    hint = (f"hint: {finding.hint}",) if finding.hint else ()
    message = "\n".join([finding_words(finding), *finding.evidence, *hint])
    is_primary = finding is report.primary
    return workflow_command(
        _LEVELS[finding.severity],
        message,
        file=root + location.path if location.base == PROJECT else "",
        title=f"{finding.code} root cause" if is_primary else finding.code,
    )


def _outcome(report: DoctorReport) -> str:
    if not report.rules:
        return "not judged"
    return plural(len(report.problems), "problem") if report.problems else "healthy"
