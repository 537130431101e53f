"""Why this build of torch and no other: the candidates with the reasons against them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.render.canvas import new_canvas
from envbuild.render.words import plural

if TYPE_CHECKING:
    from envbuild.model.report import TargetReport
    from envbuild.model.stack import Candidate, Refusal, Rejection
    from envbuild.render.canvas import Canvas

_NAMED = 4


def explain_target(canvas: Canvas, report: TargetReport) -> None:
    """Add the table of candidates: the chosen one, then the rejected, alike ones together."""
    count = plural(len(report.rejections) + 1, "candidate")
    canvas.line(f"{count}, {len(report.rejections)} rejected:", indent=2)
    chosen = ("chosen", report.stack.candidate.label, "the first that everything allows")
    canvas.table([chosen, *_rejected(report.rejections)], indent=4)


def explain_refused(
    rejections: tuple[Rejection, ...], *, width: int | None = None, color: bool = False
) -> str:
    """Return the table of candidates where none was left."""
    canvas = new_canvas(width=width, color=color)
    canvas.line(f"{plural(len(rejections), 'candidate')}, all rejected:")
    canvas.table(_rejected(rejections), indent=2)
    return redact_text(canvas.text())


def _rejected(rejections: tuple[Rejection, ...]) -> list[tuple[str, str, str]]:
    return [
        ("rejected" if number == 0 else "", _names(group) if number == 0 else "", reason)
        for group in alike(rejections)
        for number, reason in enumerate(_reasons(group[0]))
    ]


def alike(rejections: tuple[Rejection, ...]) -> tuple[tuple[Rejection, ...], ...]:
    """Group the rejections whose reasons differ in nothing but the candidate they name."""
    groups: dict[tuple[str, ...], list[Rejection]] = {}
    for rejection in rejections:
        key = tuple(_general(refusal, rejection.candidate) for refusal in rejection.refusals)
        groups.setdefault(key, []).append(rejection)
    return tuple(tuple(group) for group in groups.values())


def _general(refusal: Refusal, candidate: Candidate) -> str:
    text = f"{refusal.project}\n{refusal.reason}"
    names = {candidate.label, candidate.torch.version, candidate.public, candidate.accelerator}
    if candidate.cuda:
        names.add(str(candidate.cuda))
    for name in sorted(names, key=lambda name: (-len(name), name)):
        text = text.replace(name, "\0")
    return text


def _names(group: tuple[Rejection, ...]) -> str:
    labels = [rejection.candidate.label.removeprefix("torch ") for rejection in group]
    if len(labels) > _NAMED:
        labels = [*labels[: _NAMED - 1], f"and {len(labels) - _NAMED + 1} more"]
    return f"torch {', '.join(labels)}"


def _reasons(rejection: Rejection) -> tuple[str, ...]:
    return tuple(_reason(refusal) for refusal in rejection.refusals) or ("no reason was given",)


def _reason(refusal: Refusal) -> str:
    named = not refusal.project or refusal.reason.startswith(f"{refusal.project} ")
    return refusal.reason if named else f"{refusal.project}: {refusal.reason}"
