"""The answer of `envbuild lock` in the format that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.render.github import render_github
from envbuild.render.jsonreport import render_json, report_document
from envbuild.render.text import render_text

if TYPE_CHECKING:
    from envbuild.model.report import LockReport
    from envbuild.render.nextstep import Invocation


@dataclass(frozen=True, kw_only=True, slots=True)
class Manner:
    """How to say it.

    ``format`` is ``text``, ``json`` or ``github``. ``width`` None means that nothing is
    wrapped. ``manifest`` is the text of the pyproject.toml, in which GitHub's lines are found.
    """

    format: str
    invocation: Invocation
    explain: bool = False
    width: int | None = None
    color: bool = False
    manifest: str = ""


def render_answer(report: LockReport, manner: Manner, *, exit_code: int) -> str:
    """Return the text that goes to stdout."""
    if manner.format == "json":
        document = report_document(report, exit_code=exit_code, invocation=manner.invocation)
        return render_json(document)
    if manner.format == "github":
        directory = manner.invocation.directory
        root = "" if directory == "." else f"{directory.rstrip('/')}/"
        return render_github(report, root=root, manifest=manner.manifest)
    return render_text(
        report,
        invocation=manner.invocation,
        explain=manner.explain,
        width=manner.width,
        color=manner.color,
    )
