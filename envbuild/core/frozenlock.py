"""A locked set and the base below it: what of it is the base's, and what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.core.frozen import with_asked_extras

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.model.frozen import Frozen
    from envbuild.model.lock import Pinned, TargetLock
    from envbuild.model.resolution import Resolution


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
