"""`envbuild lock`: read, solve, resolve, prove, compare, and write all files or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.commands.frozen import frozen_bases
from envbuild.commands.lockfiles import PYPROJECT, changes_of, texts_of
from envbuild.commands.lockrun import Shared
from envbuild.commands.locktarget import TargetLocker
from envbuild.commands.projectreading import parsed_project
from envbuild.commands.workspace import refuse_member
from envbuild.errors import InputError, WorldError
from envbuild.model.project import Layer
from envbuild.model.report import LockReport, Outcome
from envbuild.providers.registry import COUPLED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.commands.attempt import LockedTarget
    from envbuild.commands.lockrun import LockOptions
    from envbuild.model.project import Project
    from envbuild.model.target import Target
    from envbuild.ports import BaseReader, Facts, Files, Reporter, Resolver, WheelSource


def lock(
    options: LockOptions,
    *,
    source: WheelSource,
    facts: Facts,
    resolver: Resolver,
    files: Files,
    reporter: Reporter,
    bases: BaseReader,
) -> LockReport:
    """Lock the targets of a project.

    Raises InputError for what the user must change, RefusedError when nothing fits, WorldError
    when uv, an index or the disk fails; in each case no file was written.
    """
    project = read_project(files, options.environ)
    for note in project.notes:
        reporter.note(note)
    targets = _selected(project, options.targets)
    if options.writes:
        files.check_writable()
    shared = Shared(
        project=project,
        upgrade=options.upgrade,
        upgrade_packages=frozenset(map(canonicalize_name, options.upgrade_packages)),
        offline=options.offline,
        allow_unhashed=options.allow_unhashed or options.check,
        source=source,
        facts=facts,
        resolver=resolver,
        files=files,
        reporter=reporter,
        bases=frozen_bases(targets, options, files=files, bases=bases, reporter=reporter),
    )
    locker = TargetLocker(shared=shared)
    locked = [locker.lock(target) for target in targets]
    return _concluded(options, project, locked, facts=facts, files=files, source=source)


def read_project(files: Files, environ: Mapping[str, str]) -> Project:
    """Read and validate the project of a folder; raises InputError with every problem."""
    project = parsed_project(files, environ)
    if project.layer is Layer.PROJECT:
        _check_layer(project, files)
        refuse_member(project.text, files)
    return project


def _check_layer(project: Project, files: Files) -> None:
    if files.exists("uv.toml"):
        raise InputError(
            "`uv.toml` lies beside pyproject.toml, and uv then ignores all of [tool.uv]",
            hint='move its settings to [tool.uv] in pyproject.toml, or set `layer = "pip"`',
        )
    if canonicalize_name(project.name or "") in COUPLED:
        raise InputError(
            f"the project has the name of a package that is locked for it, `{project.name}`",
            hint='give it another name, or set `layer = "pip"`',
        )
    if project.requires_python is None:
        python = project.targets[0].python
        raise InputError(
            "`project.requires-python` is missing, without it uv.lock depends on the machine",
            hint=f'add `requires-python = "=={python}.*"` to [project]',
        )


def _selected(project: Project, names: tuple[str, ...]) -> tuple[Target, ...]:
    known = {target.name: target for target in project.targets}
    for name in names:
        if name not in known:
            raise InputError(
                f"no target `{name}` in pyproject.toml",
                hint=f"the targets are {', '.join(f'`{known_name}`' for known_name in known)}",
            )
    return tuple(target for target in project.targets if not names or target.name in names)


def _concluded(
    options: LockOptions,
    project: Project,
    locked: list[LockedTarget],
    *,
    facts: Facts,
    files: Files,
    source: WheelSource,
) -> LockReport:
    texts = texts_of(project, locked)
    stale = {path: text for path, text in texts.items() if files.read(path) != text}
    report = LockReport(
        outcome=_outcome(options, stale),
        source=getattr(source, "said", ""),
        layer=project.layer,
        default_target=project.default_target,
        targets=tuple(one.report for one in locked),
        changes=tuple(changes_of(project, locked, stale, files=files, facts=facts)),
        files=tuple(stale),
    )
    if report.outcome is Outcome.WRITTEN:
        if files.read(PYPROJECT) != project.text:
            raise WorldError(
                f"`{PYPROJECT}` was changed while the lock was made, nothing was written",
                hint="run `envbuild lock` again",
            )
        files.write_all(stale)
    return report


def _outcome(options: LockOptions, stale: Mapping[str, str | None]) -> Outcome:
    if options.check:
        return Outcome.STALE if stale else Outcome.FRESH
    if not stale:
        return Outcome.UNCHANGED
    return Outcome.WOULD_WRITE if options.dry_run else Outcome.WRITTEN
