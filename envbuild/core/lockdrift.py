"""How an environment differs from the lock that applies to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.core.installedrequires import needs_of, visible
from envbuild.core.wheeltags import local_of, public_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envbuild.model.installed import Distribution, Installed
    from envbuild.model.layers import Layers, LockedVersion, LockFile

# Wheels of GitHub releases whose file name was given a local version after they were built.
_RENAMED = frozenset({"flash-attn", "flash-attn-3", "causal-conv1d", "mamba-ssm"})
_COUPLED = frozenset(
    {"torch", "torchvision", "torchaudio", "torchcodec", "torchtext", "triton", "pytorch-triton"}
    | {"xformers", "flash-attn", "spconv", "cumm", "pyg-lib", "vllm", "mmcv"}
    | {"torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A package that is installed in another version than the lock's.

    ``flag`` asks uv for the version installed, where the lock holds that for an extra or group.
    """

    one: Distribution
    locked: LockedVersion
    flag: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    """Every difference: changed packages, those not installed, and those not in the lock.

    ``asked`` are packages of extras, groups and members alone, in another version than theirs;
    their flag asks for that one.
    """

    changed: tuple[Change, ...] = ()
    asked: tuple[Change, ...] = ()
    absent: tuple[LockedVersion, ...] = ()
    extra: tuple[Distribution, ...] = ()


def is_coupled(name: str) -> bool:
    """Whether a package is torch or has to match its build."""
    return name in _COUPLED or name.startswith(("nvidia-", "spconv-", "cumm-"))


def lock_for(layers: Layers, installed: Installed) -> LockFile | None:
    """Return the lock that the environment follows.

    That is uv.lock where uv manages this environment; else, of the files of the targets that fit
    the Python and platform and half of whose packages are there in some version, the one that
    differs the least in what belongs to torch. An environment of tools beside it follows none.
    """
    if layers.managed and layers.owned and layers.uv_lock is not None:
        return layers.uv_lock
    for files in (layers.pylocks, layers.requirements):
        fitting = [one for one in files if one.fits and is_about(one, installed)]
        if fitting:
            return min(fitting, key=lambda one: (_distance(one, installed), one.path))
    uv_lock = layers.uv_lock if layers.managed else None
    return uv_lock if uv_lock is not None and is_about(uv_lock, installed) else None


def is_about(lock: LockFile, installed: Installed) -> bool:
    """Whether half of what a lock holds is installed, in whatever version."""
    names = {one.name for one in installed.distributions}
    present = sum(one.name in names for one in lock.packages)
    return bool(lock.packages) and present * 2 >= len(lock.packages)


def _distance(lock: LockFile, installed: Installed) -> int:
    drift = drift_from(lock, installed)
    changed = sum(is_coupled(one.one.name) for one in drift.changed)
    return changed + sum(is_coupled(one.name) for one in drift.absent)


def drift_from(lock: LockFile, installed: Installed) -> Drift:
    """Compare what is installed in the environment itself with a lock."""
    own = set(installed.own_sites or installed.sites)
    present = {one.name: one for one in visible(installed) if one.site in own}
    wanted: dict[str, list[LockedVersion]] = {}
    for locked in lock.packages:
        wanted.setdefault(locked.name, []).append(locked)
    optional = {(one.name, one.version): flag for flag, one in lock.optional}
    changed = tuple(
        Change(one=one, locked=versions[0], flag=_flag(one, optional))
        for name, versions in sorted(wanted.items())
        if (one := present.get(name)) is not None
        and not one.editable
        and not any(is_locked(one, locked) for locked in versions)
    )
    return Drift(
        changed=changed,
        asked=tuple(_asked(lock, present, without=set(wanted))),
        absent=tuple(
            versions[0] for name, versions in sorted(wanted.items()) if name not in present
        ),
        extra=tuple(one for name, one in sorted(present.items()) if name not in wanted),
    )


def _asked(
    lock: LockFile, present: Mapping[str, Distribution], *, without: set[str]
) -> Iterator[Change]:
    held: dict[str, list[tuple[str, LockedVersion]]] = {}
    for flag, locked in lock.optional:
        if locked.name not in without:
            held.setdefault(locked.name, []).append((flag, locked))
    for name, choices in sorted(held.items()):
        one = present.get(name)
        if one is None or one.editable or any(is_locked(one, locked) for _, locked in choices):
            continue
        yield Change(one=one, locked=choices[0][1], flag=choices[0][0])


def _flag(one: Distribution, optional: Mapping[tuple[str, str], str]) -> str:
    return optional.get((one.name, one.version), "")


def is_locked(one: Distribution, locked: LockedVersion) -> bool:
    """Whether a distribution is the version that a lock names, local part included.

    An empty version in the lock (a checkout, an address) is not known and not guessed. A wheel
    that was renamed after it was built has no local part in its metadata. A pin by hand admits
    every local version, as it does for pip.
    """
    version = public_of(one.version) if locked.any_local else one.version
    if not locked.version or _same(version, locked.version):
        return True
    renamed = one.name in _RENAMED and not local_of(one.version)
    return renamed and _same(one.version, public_of(locked.version))


def _same(a: str, b: str) -> bool:
    try:
        return Version(a) == Version(b)
    except InvalidVersion:
        return a == b


def needed_by(name: str, installed: Installed) -> frozenset[str]:
    """Return the installed distributions that one of them needs, over any number of steps."""
    names = {one.name for one in visible(installed)}
    edges: dict[str, set[str]] = {}
    for need in needs_of(installed):
        edges.setdefault(need.by.name, set()).add(need.name)
    found: set[str] = set()
    todo = [name]
    while todo:
        fresh = (edges.get(todo.pop(), set()) & names) - found
        found |= fresh
        todo += fresh
    return frozenset(found - {name})
