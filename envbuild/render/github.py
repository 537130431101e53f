"""Workflow commands, with which GitHub Actions annotates the files of a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.model.finding import Severity
from envbuild.model.report import Outcome
from envbuild.render.rows import plural, worst_first

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.report import LockReport
    from envbuild.render.failure import Failure

_LINE = re.compile(r"\bline (\d+)\b")
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.UNKNOWN: "warning",
    Severity.NOTE: "notice",
}


def workflow_command(
    level: str, message: str, *, file: str = "", line: int | None = None, title: str = ""
) -> str:
    """Return one ``::level file=...,line=...::message``, escaped as GitHub unescapes it."""
    properties = {"file": file, "line": str(line or ""), "title": title}
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{level}{' ' if given else ''}{given}::{_data(redact_text(message))}"


def render_github(report: LockReport, *, root: str = "", manifest: str = "") -> str:
    """Return the findings, the changes and the outcome of a lock.

    ``root`` is put before the paths of the project's files. ``manifest`` is the text of its
    pyproject.toml, in which the line of each target is looked up.
    """
    file = f"{root}pyproject.toml"
    lines = [
        _finding(
            finding, target=target.target, file=file, line=target_line(manifest, target.target)
        )
        for target in report.targets
        for finding in worst_first(target.findings)
    ]
    level = "error" if report.outcome is Outcome.STALE else "notice"
    lines += [
        workflow_command(level, change.text, file=root + change.file, title=change.target)
        for change in report.changes
    ]
    lines += [
        workflow_command("error", f"{name} has no hash", file=file, title=target.target)
        for target in report.targets
        for name in (package.name for package in target.lock.unhashed)
    ]
    count = plural(len(report.targets), "target")
    summary = f"envbuild lock: {report.outcome.value} ({count})"
    return "\n".join([*lines, redact_text(summary)]) + "\n"


def failure_commands(failure: Failure, *, file: str) -> str:
    """Return a failure; each line of its message that names a line of the file is annotated."""
    message = f"{failure.message}\nhint: {failure.hint}" if failure.hint else failure.message
    located = _LINE.search(failure.message)
    line = int(located[1]) if located and failure.kind == "input" else None
    return workflow_command("error", message, file=file, line=line, title="envbuild") + "\n"


def target_line(text: str, target: str) -> int | None:
    """Return the line on which the table of a target begins, or None."""
    header = re.compile(
        rf"^\s*\[\s*tool\.envbuild\.targets\.[\"']?{re.escape(target)}[\"']?\s*\]", re.MULTILINE
    )
    match = header.search(text)
    return text.count("\n", 0, match.end()) + 1 if match else None


def _finding(finding: Finding, *, target: str, file: str, line: int | None) -> str:
    subject = f"{finding.subject}: " if finding.subject else ""
    hint = (f"hint: {finding.hint}",) if finding.hint else ()
    message = "\n".join([subject + finding.message, *finding.evidence, *hint])
    title = f"{finding.code} {target}".strip()
    return workflow_command(_LEVELS[finding.severity], message, file=file, line=line, title=title)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
