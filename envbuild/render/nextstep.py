"""What to type next, after a lock."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.model.finding import Severity
from envbuild.model.project import Layer
from envbuild.model.report import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.report import LockReport


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """How the command was called.

    ``directory`` is the project folder as the user gave it, ``uv`` the word that starts uv.
    ``again`` is the same command, made to write; ``complete`` is the same, made to fetch the
    hashes that are missing.
    """

    directory: str = "."
    uv: str = "uv"
    again: str = "envbuild lock"
    complete: str = "envbuild lock --source live"


def next_step(report: LockReport, invocation: Invocation) -> str:
    """Return the command that follows from the report."""
    if report.outcome is Outcome.WOULD_WRITE or has_errors(report):
        return invocation.again
    if report.incomplete:
        return invocation.complete
    if report.outcome is Outcome.STALE:
        return invocation.again
    return install_command(report, directory=invocation.directory, uv=invocation.uv)


def has_errors(report: LockReport) -> bool:
    """Whether anything was found that will fail or compute on the wrong thing."""
    return any(
        finding.severity is Severity.ERROR
        for target in report.targets
        for finding in target.findings
    )


def _selection(report: LockReport, default: str) -> Iterator[str]:
    """Yield the options with which `uv sync` installs the default target's own set."""
    for target in report.targets:
        if target.target == default:
            for extra in target.extras:
                yield from ("--extra", extra)
            for group in target.groups:
                yield from ("--group", group)


def install_command(report: LockReport, *, directory: str = ".", uv: str = "uv") -> str:
    """Return the command that installs what was locked.

    In layer "project" ``uv sync`` installs the default target; every other target, and every
    target in layer "pip", is installed from its own file. On top of a base envbuild does it,
    and in an image a Dockerfile.
    """
    where = [] if directory == "." else ["--directory", directory]
    names = [target.target for target in report.targets]
    default = report.default_target
    if report.layer is Layer.PROJECT and (not names or not default or default in names):
        return shlex.join([uv, *where, "sync", *_selection(report, default)])
    name = default if default in names or not names else names[0]
    kept = next((t.lock for t in report.targets if t.target == name and t.lock.frozen), None)
    if kept is not None:
        here = [] if directory == "." else [directory]
        verb = "sync" if kept.base is None else "dockerfile"
        return shlex.join(["envbuild", verb, *here, "--target", name])
    return shlex.join([uv, *where, "pip", "sync", f"lockfiles/pylock.{name}.toml"])
