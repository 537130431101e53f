"""`envbuild script`: the install script of a target, written or compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.commands.locked import read_locked
from envbuild.core.script.generated import is_untouched, parse_header
from envbuild.core.script.install import ScriptSource, project_is_installed, render_script
from envbuild.model.plan import InstallLock
from envbuild.model.rendered import RenderReport
from envbuild.model.report import MISSING, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envbuild.commands.locked import Locked
    from envbuild.ports import Files

PTX = "--ptx"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptOptions:
    """What the user asked of `envbuild script`.

    ``target`` None means the default one. ``project`` is the way from the script's folder to the
    project, ``goal`` the script's path where it is not the usual one.
    """

    target: str | None = None
    check: bool = False
    dry_run: bool = False
    ptx: bool = False
    project: str = ".."
    goal: str | None = None


def script_path(target: str) -> str:
    """Return where the script of a target lies."""
    return f"scripts/install-{target}.sh"


def script(
    options: ScriptOptions, *, files: Files, goal_files: Files | None = None
) -> RenderReport:
    """Write the script, or say whether it is stale.

    ``goal_files`` is the folder it is written to where that is not the project's. Raises
    InputError where there is no lock, RefusedError where something cannot be compiled.
    """
    goal_files = goal_files or files
    locked = read_locked(files, options.target)
    path = options.goal or script_path(locked.target.name)
    if options.check:
        options = remembered(options, goal_files.read(path))
    texts = {path: script_text(locked, options)}
    return concluded("script", options, locked, texts, goal_files)


def remembered(options: ScriptOptions, before: str | None) -> ScriptOptions:
    """Return the options with those that the file was made with: it is checked as it is."""
    header = parse_header(before or "")
    return options if header is None else replace(options, ptx=PTX in header.options)


def script_text(locked: Locked, options: ScriptOptions) -> str:
    """Return the script of a lock."""
    plan = locked.plan(ptx=options.ptx)
    by_project = any(isinstance(step, InstallLock) and step.by_project for step in plan.steps)
    installed = by_project and project_is_installed(locked.project)
    name = canonicalize_name(locked.project.name or "") if installed else None
    return render_script(
        ScriptSource(
            plan=plan,
            lock=locked.lock,
            project=options.project,
            project_name=name,
            options=(PTX,) if options.ptx else (),
            managed_by=locked.managed_by,
        )
    )


def concluded(
    command: str,
    options: ScriptOptions,
    locked: Locked,
    texts: Mapping[str, str],
    goal_files: Files,
) -> RenderReport:
    """Compare with what lies on disk, write what differs if that is asked, and report."""
    stale = {path: text for path, text in texts.items() if goal_files.read(path) != text}
    report = RenderReport(
        command=command,
        outcome=_outcome(options, stale),
        target=locked.target.name,
        lock=locked.path,
        lock_sha256=locked.plan().lock_sha256,
        files=tuple(stale),
        all_files=tuple(texts),
        changes=tuple(_changes(stale, goal_files)),
        incomplete=tuple(f"{name} {version}" for name, version in locked.lock.incomplete),
        builds=tuple(one.project for one in locked.lock.builds),
    )
    if report.outcome is Outcome.WRITTEN:
        goal_files.check_writable()
        goal_files.write_all(dict(stale))
    return report


def _outcome(options: ScriptOptions, stale: Mapping[str, str]) -> Outcome:
    if options.check:
        return Outcome.STALE if stale else Outcome.FRESH
    if not stale:
        return Outcome.UNCHANGED
    return Outcome.WOULD_WRITE if options.dry_run else Outcome.WRITTEN


def _changes(stale: Mapping[str, str], files: Files) -> Iterator[str]:
    for path, text in stale.items():
        before = files.read(path)
        yield f"{path}: {MISSING if before is None else _difference(before, text)}"


def _difference(before: str, after: str) -> str:
    old, new = parse_header(before), parse_header(after)
    if old is None:
        return "was not written by envbuild"
    if not is_untouched(before):
        return "was edited by hand"
    if new is not None and old.lock_sha256 != new.lock_sha256:
        return f"was made from another {new.lock}"
    if new is not None and old.options != new.options:
        return "was made with other options"
    return "was made by another envbuild, or for another project"
