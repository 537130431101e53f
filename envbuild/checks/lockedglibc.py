"""EB509: a lock for systems with a newer glibc than the one examined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.checks.drift import is_synced
from envbuild.checks.owners import counted, shortened
from envbuild.checks.rule import rule
from envbuild.checks.tables import first_from
from envbuild.core.lockdrift import is_about, is_locked
from envbuild.core.lockedbuild import target_of
from envbuild.core.wheeltags import glibc_numbers, only_newer_glibc, wants_glibc
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual
from envbuild.model.host import Host
from envbuild.model.installed import Installed
from envbuild.model.layers import Layers

if TYPE_CHECKING:
    from envbuild.model.fix import Fix
    from envbuild.model.layers import LockedVersion, LockFile

_MOST = 4


@rule("EB509", "The lock is for a newer glibc", severity=Severity.ERROR)
def newer_glibc(installed: Installed, layers: Layers, host: Host) -> Iterator[Finding]:
    """Compare the glibc that the lock is for with that of the system, or of the image.

    **What it finds.** Locked packages whose wheels for this Python are all for a newer glibc, by
    their names, where the lock has no sdist of them: an error, and a warning where they are
    installed all the same. And a project each of whose targets for this Python and platform has
    a newer `glibc`: a warning, since every package may have a wheel that fits.

    **Why it matters.** For one such package `uv sync` and `uv pip sync` install nothing at all.
    `envbuild sync` and the install script refuse a system that is older than the target's.

    **Example.** A lock with `vllm-0.33.0-…-manylinux_2_34_x86_64.whl` on Ubuntu 20.04, which has
    glibc 2.31.

    **Fix.** Take a system or an image with that glibc, or set the target's `glibc` to the oldest
    that its machines have and run `envbuild lock`, which then chooses among older releases.
    """
    if host.glibc is None or glibc_numbers(host.glibc) is None:
        return
    pylocks = [one for one in layers.pylocks if one.fits and _concerns(one, layers, installed)]
    newer = [one for one in pylocks if _is_newer(one.glibc, host.glibc)]
    newer = newer if len(newer) == len(pylocks) else []
    locks = [layers.uv_lock] if layers.uv_lock is not None and is_synced(layers) else pylocks
    unfit = {one.path: _unfit(one, installed, host.glibc) for one in locks if one.fits}
    if unfit and all(unfit.values()):
        least = min(locks, key=lambda one: (len(unfit[one.path]), one.path))
        yield _no_wheel(least, unfit[least.path], newer, installed, layers, host)
    elif newer:
        yield _other_system(newer, host)


def _concerns(lock: LockFile, layers: Layers, installed: Installed) -> bool:
    """Tell an environment that a lock is for from one of tools beside it."""
    return layers.owned or is_about(lock, installed)


def _is_newer(glibc: str, found: str) -> bool:
    wanted, here = glibc_numbers(glibc), glibc_numbers(found)
    return wanted is not None and here is not None and wanted > here


def _unfit(lock: LockFile, installed: Installed, glibc: str) -> tuple[LockedVersion, ...]:
    """Return the packages that certainly have no file for this glibc."""
    target = target_of(installed)
    if target is None or not installed.python or installed.free_threaded:
        return ()
    here = replace(target, glibc=glibc)
    newer = {
        one: () if one.built else only_newer_glibc((name for name, _ in one.wheels), here)
        for one in lock.packages
    }
    sound = {one.name for one, names in newer.items() if not names}
    return tuple(
        replace(one, wheels=tuple((name, None) for name in names))
        for one, names in newer.items()
        if one.name not in sound
    )


def _no_wheel(
    lock: LockFile,
    unfit: tuple[LockedVersion, ...],
    newer: list[LockFile],
    installed: Installed,
    layers: Layers,
    host: Host,
) -> Finding:
    wanted = {one.name: _least(one, installed.machine) for one in unfit}
    first = max(unfit, key=lambda one: (not _is_there(one, installed), wanted[one.name]))
    missing = [one for one in unfit if not _is_there(one, installed)]
    also = f" (and so for {counted(len(unfit) - 1, 'more package')})" if len(unfit) > 1 else ""
    verb = "be installed" if missing else "be installed again"
    instead = "" if layers.uses_envbuild else f"lock an older release of {first.name}"
    return Finding(
        code="EB509",
        severity=Severity.ERROR if missing else Severity.WARNING,
        subject=f"{first.name} {first.version}",
        message=(
            f"{first.name} {first.version} of {lock.path} cannot {verb} here: its wheels are for"
            f" glibc {_text(wanted[first.name])} or newer, {_place(host)} has {host.glibc}{also}"
        ),
        evidence=(
            *shortened((one.wheels[0][0] for one in unfit), most=_MOST),
            *(f"{one.path} is for glibc {one.glibc} or newer" for one in newer[:_MOST]),
        ),
        fixes=(_fix(_text(max(wanted.values())), host, instead=instead),),
        brings=tuple(f"dist:{one.name}" for one in missing),
    )


def _other_system(newer: list[LockFile], host: Host) -> Finding:
    oldest = min(newer, key=lambda one: (glibc_numbers(one.glibc) or (0, 0), one.path))
    return Finding(
        code="EB509",
        severity=Severity.WARNING,
        subject=oldest.path,
        message=(
            f"{oldest.path} is for glibc {oldest.glibc} or newer, {_place(host)} has {host.glibc}"
        ),
        evidence=tuple(
            f"{one.path} is for glibc {one.glibc} or newer" for one in newer if one is not oldest
        )[:_MOST],
        hint="`envbuild sync` and the install script refuse it here",
        fixes=(_fix(oldest.glibc, host),),
    )


def _is_there(locked: LockedVersion, installed: Installed) -> bool:
    one = installed.find(locked.name)
    return one is not None and is_locked(one, locked)


def _least(locked: LockedVersion, machine: str) -> tuple[int, int]:
    found = (wants_glibc(name, machine) for name, _ in locked.wheels)
    return min((one for one in found if one is not None), default=(0, 0))


def _text(numbers: tuple[int, int]) -> str:
    return f"{numbers[0]}.{numbers[1]}"


def _place(host: Host) -> str:
    return "the image" if host.is_image else "this machine"


def _fix(glibc: str, host: Host, *, instead: str = "") -> Fix:
    systems = first_from("glibc", glibc)
    where = f" ({systems} or later)" if systems else ""
    other = instead or f'set `glibc = "{host.glibc}"` in the target and run `envbuild lock`'
    return Manual(text=f"use a system with glibc {glibc}{where}, or {other}")


RULES = (newer_glibc,)
