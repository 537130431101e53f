"""Repairs of an environment that a lock governs: through the lock, never around it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion

from envbuild.core.lockdrift import is_about, lock_for
from envbuild.core.repair.bypip import (
    in_words,
    install_steps,
    reinstall_steps,
    requirers,
    uninstall_steps,
)
from envbuild.core.repair.wish import remaining_owners
from envbuild.model.fix import RepairStep
from envbuild.model.installed import EnvironmentKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.repair.wish import Wanted, Wish
    from envbuild.model.installed import Installed, Ownership
    from envbuild.model.layers import Layers, LockFile

# What a tool puts into a venv by itself, and `uv sync` leaves there.
_SEEDS = frozenset({"pip", "setuptools", "uv", "wheel"})
_NAMED = 4


def chosen_lock(layers: Layers | None, installed: Installed) -> LockFile | None:
    """Return the lock that an environment is mended through, or None.

    It is the one that the environment follows, where that is a whole set: pins by hand are none.
    An environment in another place than uv's own must hold half of it.
    """
    if layers is None or installed.kind is EnvironmentKind.CONDA:
        return None
    lock = lock_for(layers, installed)
    if lock is None or not lock.hashed or (lock in layers.requirements and not lock.target):
        return None
    is_uvs = installed.prefix == f"{layers.directory.rstrip('/')}/.venv"
    return lock if is_uvs or is_about(lock, installed) else None


def steps_through_lock(
    wish: Wish,
    installed: Installed,
    layers: Layers,
    lock: LockFile,
    *,
    ownership: Ownership | None = None,
) -> Iterator[RepairStep]:
    """Yield the steps: mend the lock where it is wrong, then install what it holds.

    What was put beside the lock and is wrong is taken away again, unless more than that was put
    there: then it is meant to be there, and is mended in place.
    """
    held = _held(lock, installed)
    touched = (*wish.removals, *wish.reinstalls, *(one.name for one in wish.installs))
    if not touched and not wish.relocks:
        return
    strays = tuple(
        one for one in wish.installs if one.name not in held and installed.find(one.name)
    )
    locked = replace(wish, installs=tuple(one for one in wish.installs if one not in strays))
    gone = {*wish.removals, *(one.name for one in strays)}
    others = _others(gone, installed, layers, held)
    if strays and not others:
        locked = _taken_away(locked, gone, installed, ownership)
        strays = ()
    yield from _relock_steps(locked, installed, layers, lock)
    if others:
        yield from uninstall_steps(locked.removals, locked, installed)
    again = {name for name in locked.reinstalls if name in held}
    through = sorted(again | {one.name for one in locked.installs})
    yield _sync_step(through, others, locked, installed, layers, lock)
    yield from install_steps(strays, wish, installed)
    outside = [name for name in locked.reinstalls if name not in held]
    yield from reinstall_steps(outside, wish, installed)


def _taken_away(
    wish: Wish, gone: set[str], installed: Installed, ownership: Ownership | None
) -> Wish:
    removals = tuple(sorted(gone))
    owners = remaining_owners(removals, installed=installed, ownership=ownership)
    back = {*wish.reinstalls, *owners} - gone - {one.name for one in wish.installs}
    return replace(wish, removals=removals, reinstalls=tuple(sorted(back)))


def _flags(lock: LockFile, installed: Installed) -> tuple[str, ...]:
    """Return the extras and groups that the environment was synced with (``--extra cu128``)."""
    versions = {one.name: one.version for one in installed.distributions}
    there: dict[str, list[bool]] = {}
    for flag, one in lock.optional:
        there.setdefault(flag, []).append(versions.get(one.name) == one.version)
    return tuple(flag for flag, same in there.items() if sum(same) * 2 > len(same))


def _held(lock: LockFile, installed: Installed) -> dict[str, str]:
    """Map what a sync with those extras and groups installs to its versions."""
    flags = _flags(lock, installed)
    more = (one for flag, one in lock.optional if flag in flags)
    return {one.name: one.version for one in (*lock.packages, *more)}


def _others(
    gone: set[str], installed: Installed, layers: Layers, held: dict[str, str]
) -> tuple[str, ...]:
    """Return what an exact sync would take away although no finding asks for it."""
    return tuple(
        one.name
        for one in installed.distributions
        if one.name not in held
        and one.name not in gone
        and one.name not in _SEEDS
        and (not installed.own_sites or one.site in installed.own_sites)
        and not (one.editable and (one.origin or "").endswith(layers.directory))
    )


def _relock_steps(
    wish: Wish, installed: Installed, layers: Layers, lock: LockFile
) -> Iterator[RepairStep]:
    held = _held(lock, installed)
    wrong = [one for one in wish.installs if one.name in held and not _allows(one, held[one.name])]
    lacking = [one for one in wish.installs if one.name not in held]
    unwanted = [name for name in wish.removals if name in held]
    reasons = [
        *wish.relocks,
        *(f"`{lock.path}` holds `{one.name} {held[one.name]}`" for one in wrong),
        *(f"`{lock.path}` holds `{name} {held[name]}`" for name in unwanted),
        *(f"`{lock.path}` does not hold `{one.name}`" for one in lacking),
    ]
    if not reasons:
        return
    if layers.uses_envbuild:
        reason = "; ".join(reasons)
        yield from _added(lacking, layers)
        yield RepairStep(reason=reason, command=("envbuild", "lock", layers.directory))
        return
    if lock is not layers.uv_lock:
        yield RepairStep(reason="; ".join(reasons), text=in_words(f"make `{lock.path}` anew"))
        return
    yield from _added(lacking, layers)
    for name in unwanted:
        yield _kept_out(name, installed)
    upgrades = [word for one in wrong for word in ("--upgrade-package", one.requirement)]
    if upgrades or unwanted or wish.relocks:
        words = upgrades or ([] if unwanted else ["--upgrade"])
        where = ("--directory", layers.directory)
        yield RepairStep(reason="; ".join(reasons), command=("uv", "lock", *where, *words))


def _added(lacking: list[Wanted], layers: Layers) -> Iterator[RepairStep]:
    for one in lacking:
        index = ("--index", one.index) if one.index else ()
        words = ("uv", "add", "--directory", layers.directory, "--no-sync", *index)
        reason = f"the project does not ask for `{one.name}`"
        yield RepairStep(reason=reason, command=(*words, one.requirement))


def _kept_out(name: str, installed: Installed) -> RepairStep:
    asks = requirers([name], installed)
    why = f"{', '.join(asks)} requires it" if asks else "the project requires it"
    override = f"override-dependencies = [\"{name}; sys_platform == 'never'\"]"
    return RepairStep(
        reason=f"uv.lock holds `{name}`, since {why}",
        text=in_words(f"take that requirement away, or put `{override}` into [tool.uv]"),
    )


def _sync_step(
    names: list[str],
    others: tuple[str, ...],
    wish: Wish,
    installed: Installed,
    layers: Layers,
    lock: LockFile,
) -> RepairStep:
    again = [word for name in names for word in ("--reinstall-package", name)]
    reason = _sync_reason(names, others, wish, lock)
    place = ("--python", installed.executable)
    directory = layers.directory.rstrip("/")
    if lock is layers.uv_lock:
        extras = [word for flag in _flags(lock, installed) for word in flag.split()]
        inexact = ("--inexact",) if others else ()
        words = ("uv", "sync", "--directory", layers.directory, *place, *extras, *inexact, *again)
        elsewhere = installed.prefix != f"{directory}/.venv"
        setting = ("env", f"UV_PROJECT_ENVIRONMENT={installed.prefix}") if elsewhere else ()
        return RepairStep(reason=reason, command=(*setting, *words))
    path = f"{directory}/{lock.path}"
    if others:
        command = ("uv", "pip", "install", *place, *again, "-r", path)
    else:
        command = ("uv", "pip", "sync", path, *place, *again)
    return RepairStep(reason=reason, command=command)


def _sync_reason(names: list[str], others: tuple[str, ...], wish: Wish, lock: LockFile) -> str:
    parts = []
    if wish.removals and not others:
        parts.append(f"remove {_listed(wish.removals)}")
    if names:
        parts.append(f"bring back every file of {_listed(names)}")
    reason = " and ".join(parts) or "install what is locked"
    codes = ", ".join(wish.codes_of((*wish.removals, *names)))
    kept = f"; {_listed(others)} are not in it and stay" if others else ""
    return f"{reason}, as `{lock.path}` holds it{kept}" + (f" ({codes})" if codes else "")


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_NAMED])
    more = len(names) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _allows(one: Wanted, version: str) -> bool:
    try:
        return Requirement(one.requirement).specifier.contains(version, prereleases=True)
    except (InvalidRequirement, InvalidVersion):
        return False
