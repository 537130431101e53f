"""Read what memory and how many cores this process may use, from procfs and its cgroups."""

from __future__ import annotations

import math
import os
import posixpath
from typing import TYPE_CHECKING

from envbuild.core.limitstext import cores_of, parse_cgroups, parse_cpu_max, parse_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from envbuild.world.rootfs import Root

_CGROUPS = "/sys/fs/cgroup"


def memory_limit(*, root: Root) -> int | None:
    """Return the lowest memory limit of the process's group and of the groups above it."""
    limits = [
        *_values("memory", ("memory.limit_in_bytes",), lambda one: parse_limit(one[0]), root=root),
        *_values("", ("memory.max",), lambda one: parse_limit(one[0]), root=root),
    ]
    return min((int(limit) for limit in limits), default=None)


def usable_cores(*, root: Root) -> int:
    """Return how many cores the process may use: its affinity, and the quota of its groups."""
    quotas = [
        *_values(
            "cpu",
            ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
            lambda one: cores_of(one[0], one[1]),
            root=root,
        ),
        *_values("", ("cpu.max",), lambda one: parse_cpu_max(one[0]), root=root),
    ]
    affine = len(os.sched_getaffinity(0))
    return min([affine, *(max(1, math.floor(quota)) for quota in quotas)])


def _values(
    controller: str,
    files: tuple[str, ...],
    parse: Callable[[tuple[str, ...]], float | None],
    *,
    root: Root,
) -> Iterator[float]:
    """Yield what the files say in each folder that governs the process."""
    for folder in _folders(controller, root=root):
        texts = tuple(root.text(f"{folder}/{name}", limit=4096) for name in files)
        if None in texts:
            continue
        value = parse(tuple(text for text in texts if text is not None))
        if value is not None:
            yield value


def _folders(controller: str, *, root: Root) -> Iterator[str]:
    """Yield the group's folder and those above it.

    In a container the group's path is the host's, while its own folder is mounted as the top.
    """
    groups = parse_cgroups(root.text("/proc/self/cgroup") or "")
    path = posixpath.normpath(groups.get(controller, "/"))
    mounts = [f"{_CGROUPS}/{controller}"] if controller else [_CGROUPS, f"{_CGROUPS}/unified"]
    for mount in mounts:
        below = path
        while below != "/":
            yield f"{mount}{below}"
            below = posixpath.dirname(below)
        yield mount
