"""Workflow commands, with which GitHub Actions annotates the files of a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.project.positions import toml_positions
from envbuild.core.redact import redact_text
from envbuild.model.finding import Severity
from envbuild.model.report import Outcome
from envbuild.render.rows import worst_first
from envbuild.render.words import finding_words, plural

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.report import LockReport
    from envbuild.render.failure import Failure

_PLACED = re.compile(r"(?P<file>[^\s:]+):(?P<line>[1-9]\d*): (?P<text>.*)")
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
    known = toml_positions(manifest).lines
    where = {
        target.target: known.get(("tool", "envbuild", "targets", target.target))
        for target in report.targets
    }
    lines = [
        _finding(finding, target=target.target, file=file, line=where[target.target])
        for target in report.targets
        for finding in worst_first(target.findings)
    ]
    level = "error" if report.outcome is Outcome.STALE else "notice"
    lines += [
        workflow_command(level, change.text, file=root + change.file, title=change.target)
        for change in report.changes
    ]
    lines += [
        workflow_command(
            "error" if report.outcome in {Outcome.FRESH, Outcome.STALE} else "warning",
            f"`{name}` has no hash",
            file=file,
            line=where[target.target],
            title=target.target,
        )
        for target in report.targets
        for name, _ in target.lock.incomplete
    ]
    count = plural(len(report.targets), "target")
    summary = f"envbuild lock: {report.outcome.value} ({count})"
    return "\n".join([*lines, redact_text(summary)]) + "\n"


def failure_commands(failure: Failure, *, root: str = "") -> str:
    """Return a failure; each problem that names a file and a line is annotated there."""
    placed = [match for line in failure.message.split("\n") if (match := _PLACED.fullmatch(line))]
    found = [
        workflow_command("error", match["text"], file=root + match["file"], line=int(match["line"]))
        for match in placed
    ]
    rest = [line for line in failure.message.split("\n") if not _PLACED.fullmatch(line)]
    hint = [f"hint: {failure.hint}"] if failure.hint else []
    if rest or hint:
        text = "\n".join([*rest, *hint])
        found.append(workflow_command("error", text, file=f"{root}pyproject.toml"))
    return "\n".join(found) + "\n"


def _finding(finding: Finding, *, target: str, file: str, line: int | None) -> str:
    hint = (f"hint: {finding.hint}",) if finding.hint else ()
    message = "\n".join([finding_words(finding), *finding.evidence, *hint])
    title = f"{finding.code} {target}".strip()
    return workflow_command(_LEVELS[finding.severity], message, file=file, line=line, title=title)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
