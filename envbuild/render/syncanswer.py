"""The answer of `envbuild sync`: what was done, and what doctor then found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.render.canvas import new_canvas
from envbuild.render.words import plural

if TYPE_CHECKING:
    from envbuild.model.syncreport import SyncReport
    from envbuild.render.canvas import Canvas

_SHOWN = 12
_OUTCOMES = {
    "kept": "is as it would be built now",
    "cached": "taken from the cache of built wheels",
    "built": "built, and what it left was found sound",
    "left out": "NOT installed: it has to be built, and `--no-build` forbids it",
}


def render_sync(report: SyncReport, *, width: int | None = None, color: bool = False) -> str:
    """Return the text of what was done, or would be."""
    canvas = new_canvas(width=width, color=color)
    verb = "would be " if report.dry_run else ""
    if report.made:
        canvas.line(f"{report.venv}: {verb}made with Python {report.plan.python}")
    if report.mended:
        canvas.line(f"files were gone or changed: {', '.join(report.mended)}")
    _changes(canvas, report, verb)
    for one in report.builds:
        canvas.line(f"{one.project}: {_OUTCOMES.get(one.outcome, one.outcome)}")
    canvas.line(_verdict(report))
    if report.undone_by is not None:
        name = report.plan.target
        canvas.line(
            f"warning: the next `uv run` brings it back to target `{report.undone_by}`, which"
            f" uv.lock holds: `UV_NO_SYNC=1` keeps it, and `envbuild sync --target {name} --venv"
            f" .venv-{name}` puts it beside"
        )
    return canvas.text()


def _changes(canvas: Canvas, report: SyncReport, verb: str) -> None:
    if not report.changes:
        return
    canvas.line(f"{plural(len(report.changes), 'change')} {verb or 'were '}made:")
    for change in report.changes[:_SHOWN]:
        canvas.line(change, indent=2)
    if len(report.changes) > _SHOWN:
        canvas.line(f"… and {len(report.changes) - _SHOWN} more", indent=2)


def _verdict(report: SyncReport) -> str:
    where = f"{report.venv} holds {report.plan.lock}"
    if report.dry_run:
        return "nothing was changed (--dry-run)"
    return f"{where}: nothing to do" if report.unchanged else where


def sync_document(report: SyncReport) -> dict[str, object]:
    """Return what was done as JSON's values."""
    return {
        "target": report.plan.target,
        "environment": report.venv,
        "lock": report.plan.lock,
        "lock-sha256": report.plan.lock_sha256,
        "dry-run": report.dry_run,
        "made": report.made,
        "mended": list(report.mended),
        "changes": list(report.changes),
        "builds": [{"name": one.project, "outcome": one.outcome} for one in report.builds],
        "unchanged": report.unchanged,
        "undone-by": report.undone_by,
    }
