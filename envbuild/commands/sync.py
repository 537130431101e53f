"""`envbuild sync`: bring an environment to exactly the lock of a target, builds included."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from envbuild.commands.locked import read_locked
from envbuild.core.frozen import base_changes
from envbuild.core.lockfresh import stale_reasons
from envbuild.core.script.plan import build_aim
from envbuild.core.wheeltags import glibc_numbers
from envbuild.errors import RefusedError
from envbuild.model.plan import Compile, InstallLock
from envbuild.model.syncreport import BuildOutcome, SyncReport

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from envbuild.core.buildwords import BuildAim
    from envbuild.model.lock import TargetLock
    from envbuild.model.plan import InstallPlan
    from envbuild.ports import Builder, Files, Installer, Reporter


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncOptions:
    """What to install, and where to; ``venv`` is absolute.

    ``target`` None means the only target, or the project's default. ``build`` False leaves the
    packages out that are compiled, unless a built wheel of theirs is at hand.
    """

    venv: Path
    target: str | None = None
    build: bool = True
    dry_run: bool = False
    allow_unhashed: bool = False
    ptx: bool = False
    environ: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ground:
    """``managed_by`` is the target of uv.lock where that is not the one to install."""

    plan: InstallPlan
    lock: TargetLock
    aim: BuildAim
    managed_by: str | None = None


def sync(
    options: SyncOptions,
    *,
    files: Files,
    installer: Installer,
    builder: Callable[[BuildAim], Builder],
    reporter: Reporter,
) -> SyncReport:
    """Install a lock. Raises RefusedError where it is stale, incomplete or cannot be built."""
    ground = _ground(options, files)
    _refuse_older_glibc(ground.lock, installer)
    if options.dry_run:
        report = _preview(options, ground, installer)
    else:
        report = _install(options, ground, installer, builder(ground.aim), reporter)
    own = files.root / ".venv"
    undone = ground.managed_by if own in (options.venv, options.venv.resolve()) else None
    beside = ground.managed_by is not None and undone is None
    return replace(report, undone_by=undone, beside=beside)


def _ground(options: SyncOptions, files: Files) -> _Ground:
    locked = read_locked(files, options.target, environ=options.environ)
    _refuse_base(locked.lock)
    _refuse_incomplete(options, locked.lock, locked.path)
    reasons = stale_reasons(
        locked.project,
        locked.target,
        locked.lock,
        document=tomllib.loads(locked.project.text),
        uv_lock=files.read("uv.lock"),
    )
    if reasons:
        more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        raise RefusedError(
            f"the lock of target `{locked.target.name}` is stale: {reasons[0]}{more}",
            hint="`envbuild lock` renews it, `envbuild lock --check` says all that differs",
        )
    plan = locked.plan(ptx=options.ptx)
    aim = build_aim(locked.lock, ptx=options.ptx)
    return _Ground(plan=plan, lock=locked.lock, aim=aim, managed_by=locked.managed_by)


def _refuse_base(lock: TargetLock) -> None:
    if lock.base is not None:
        raise RefusedError(
            f"target `{lock.target}` is locked around `{lock.base}`, and an environment of its"
            " own would not have what is kept there",
            hint=f"`envbuild script --target {lock.target}` installs the lock beside the base",
        )


def _refuse_older_glibc(lock: TargetLock, installer: Installer) -> None:
    wanted, found = glibc_numbers(lock.glibc or ""), installer.glibc()
    here = glibc_numbers(found or "")
    if wanted is not None and here is not None and here < wanted:
        raise RefusedError(
            f"this machine has glibc {found}, the lock is for glibc {lock.glibc} or newer",
            hint=f'lock a target with `glibc = "{found}"`',
        )


def _refuse_incomplete(options: SyncOptions, lock: TargetLock, path: str) -> None:
    names = ", ".join(f"{name} {version}" for name, version in lock.incomplete)
    if names and not options.allow_unhashed:
        raise RefusedError(
            f"`{path}` is incomplete: it has no hash of {names}",
            hint="`envbuild lock --source live` completes it; `--allow-unhashed` installs the rest",
        )


def _preview(options: SyncOptions, ground: _Ground, installer: Installer) -> SyncReport:
    step = _lock_step(ground.plan)
    changes = installer.preview(step)
    made = changes is None
    if changes is None:
        changes = tuple(f"+ {one.name}=={one.version}" for one in ground.lock.packages)
    builds = (
        BuildOutcome(project=one.build.project, outcome="to be built or taken from the cache")
        for one in _compile_steps(ground.plan)
    )
    return SyncReport(
        plan=ground.plan,
        venv=str(options.venv),
        made=made,
        changes=changes,
        builds=tuple(builds),
        dry_run=True,
    )


def _install(
    options: SyncOptions,
    ground: _Ground,
    installer: Installer,
    builder: Builder,
    reporter: Reporter,
) -> SyncReport:
    plan = ground.plan
    with installer.held(reporter.note):
        reporter.phase(f"make the environment with Python {plan.python}")
        made = installer.make_environment(plan.python, base=_base(options, ground.lock))
        _refuse_another_base(ground.lock, installer)
        reporter.phase("look at what is installed")
        broken = installer.mend()
        reporter.phase(f"install {len(ground.lock.packages)} packages of {plan.lock}")
        changes = installer.install_lock(_lock_step(plan), reinstall=_locked(broken, ground.lock))
        builds = tuple(
            BuildOutcome(
                project=step.build.project,
                outcome=builder.ensure(
                    step,
                    plan.variables,
                    may_build=options.build,
                    again=step.build.project in broken,
                ),
            )
            for step in _compile_steps(plan)
        )
    return SyncReport(
        plan=plan,
        venv=str(options.venv),
        made=made,
        mended=broken,
        changes=changes,
        builds=builds,
    )


def _base(options: SyncOptions, lock: TargetLock) -> str | None:
    if lock.frozen is None:
        return None
    return (options.environ or {}).get("ENVBUILD_BASE_PYTHON") or lock.frozen.python


def _refuse_another_base(lock: TargetLock, installer: Installer) -> None:
    changes = () if lock.frozen is None else base_changes(lock.frozen, installer.installed())
    if changes:
        more = f", and {len(changes) - 1} more" if len(changes) > 1 else ""
        raise RefusedError(
            f"the base is not the one that was locked: {changes[0]}{more}",
            hint="`envbuild lock --base-python PATH` locks around the base that is there",
        )


def _locked(names: tuple[str, ...], lock: TargetLock) -> tuple[str, ...]:
    """Return those that the lock holds; uv knows no others, and removes them by itself."""
    held = {package.name for package in lock.packages}
    return tuple(name for name in names if name in held)


def _lock_step(plan: InstallPlan) -> InstallLock:
    return next(step for step in plan.steps if isinstance(step, InstallLock))


def _compile_steps(plan: InstallPlan) -> Iterator[Compile]:
    return (step for step in plan.steps if isinstance(step, Compile))
