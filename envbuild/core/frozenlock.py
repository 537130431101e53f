"""A locked set and the base below it: what of it is the base's, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.core.frozen import with_asked_extras
from envbuild.core.treebuild import released
from envbuild.core.wanted import accepts
from envbuild.model.stack import IndexPin
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.core.wanted import Wanted
    from envbuild.model.frozen import Frozen
    from envbuild.model.lock import Pinned, TargetLock
    from envbuild.model.resolution import Resolution
    from envbuild.model.stack import Pin, Stack
    from envbuild.model.wheel import WheelFile


def beside(frozen: Frozen | None, packages: Iterable[Pinned]) -> tuple[Pinned, ...]:
    """Return the packages that the base does not hold."""
    return tuple(one for one in packages if frozen is None or frozen.find(one.name) is None)


def only_frozen(lock: TargetLock) -> TargetLock:
    """Return a lock with those of its packages alone that the base holds."""
    added = {package.name for package in beside(lock.frozen, lock.packages)}
    return replace(lock, packages=tuple(p for p in lock.packages if p.name not in added))


def without_frozen(lock: TargetLock, resolution: Resolution) -> TargetLock:
    """Return the lock as it is written: without the base's packages, which are named in it.

    ``resolution`` tells which of their extras are asked for.
    """
    if lock.frozen is None:
        return lock
    return replace(
        lock,
        packages=beside(lock.frozen, lock.packages),
        frozen=with_asked_extras(lock.frozen, resolution.uv_lock, absent=resolution.absent_extras),
    )


def as_released(stack: Stack, wanted: Wanted) -> Stack:
    """Return a stack in which what a base has from a tree goes by its release, for uv to judge.

    What the project itself wants by the name of the tree keeps it.
    """
    return replace(stack, pins=tuple(_pin(pin, wanted) for pin in stack.pins))


def _pin(pin: Pin, wanted: Wanted) -> Pin:
    if not isinstance(pin, IndexPin) or pin.wheel.page.kind is not PageKind.BASE:
        return pin
    release = released(pin.wheel.version)
    if release is None or not accepts(wanted, pin.project, release):
        return pin
    return replace(pin, wheel=_renamed(pin.wheel, release))


def _renamed(wheel: WheelFile, release: str) -> WheelFile:
    filename = wheel.filename.replace(wheel.version, release)
    folder = wheel.url.rpartition("/")[0]
    url = f"{folder}/{filename.replace('+', '%2B')}"
    return replace(wheel, version=release, filename=filename, url=url)
