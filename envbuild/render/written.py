"""The answer of `envbuild script` and `envbuild dockerfile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.model.report import Outcome
from envbuild.render.canvas import new_canvas
from envbuild.render.jsonreport import VERSION

if TYPE_CHECKING:
    from envbuild.model.rendered import RenderReport

_SAID = {
    Outcome.WRITTEN: "written",
    Outcome.WOULD_WRITE: "would be written",
    Outcome.UNCHANGED: "unchanged",
    Outcome.FRESH: "fresh",
    Outcome.STALE: "stale",
}


def written_document(report: RenderReport, *, exit_code: int) -> dict[str, object]:
    """Return the report as plain values; the order of the keys never changes."""
    return {
        "version": VERSION,
        "command": report.command,
        "outcome": report.outcome.value,
        "exit_code": exit_code,
        "target": report.target,
        "lock": report.lock,
        "lock_sha256": report.lock_sha256,
        "files": list(report.files),
        "all_files": list(report.all_files),
        "changes": list(report.changes),
        "incomplete": list(report.incomplete),
        "builds": list(report.builds),
        "next": next_command(report),
    }


def next_command(report: RenderReport) -> str:
    """Return what to type next."""
    if report.outcome is Outcome.STALE:
        return f"envbuild {report.command} --target {report.target}"
    first = report.all_files[0]
    if report.command == "script":
        return f"sh {first}"
    return f"docker build -f {first} -t {report.target} ."


def render_written(report: RenderReport, *, width: int | None, color: bool) -> str:
    """Return the report as text."""
    canvas = new_canvas(width=width, color=color)
    shown = report.files or report.all_files
    canvas.line(f"{_SAID[report.outcome]}: {', '.join(shown)}", style="bold")
    if report.outcome in (Outcome.STALE, Outcome.WOULD_WRITE):
        for change in report.changes:
            canvas.line(change, indent=2)
    canvas.line(f"of {report.lock}, sha256 {report.lock_sha256}", indent=2)
    if report.builds:
        canvas.line(f"compiles {', '.join(report.builds)}", indent=2)
    if report.incomplete:
        names = ", ".join(report.incomplete)
        canvas.line(
            f"incomplete: no hash is known of {names}; without `--allow-unhashed` the script"
            " refuses to install",
            indent=2,
            style="yellow",
        )
    canvas.line(f"next: {next_command(report)}")
    return canvas.text()
