"""Whether what is installed is the very build that a lock names, told from its metadata alone.

An environment does not keep the hash of the wheel that it was installed from, so most of this
proves a difference only, and never that there is none. What was tried and proves nothing: the
platform in the WHEEL file, which is ``linux`` in 7 of 530 wheels of PyPI (torchvision 0.29.2,
vllm 0.33.0) whose names say ``manylinux``, and the tag of the interpreter, which is another one
in 2 (bpy, decord). Whether it is for any platform or for one agrees in all of them (2026-11-29).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.installedrequires import python_of, visible
from envbuild.core.lockdrift import is_locked
from envbuild.core.wheeltags import fits, local_of
from envbuild.model.layers import Taken
from envbuild.model.target import Platform, Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.installed import Distribution, Installed
    from envbuild.model.layers import LockedVersion, LockFile

_SLACK = 1 << 20
_SLACK_PER_FILE = 512
"""Bytes that a ZIP archive may take beyond its files: their names twice, and their headers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreign:
    """A package of the locked version that is another build: how that is known, and the proof."""

    one: Distribution
    locked: LockedVersion
    why: str
    evidence: tuple[str, ...]


def foreign_builds(lock: LockFile, installed: Installed) -> Iterator[Foreign]:
    """Give the packages of the environment itself that are certainly another build."""
    wanted: dict[str, list[LockedVersion]] = {}
    for locked in (*lock.packages, *(one for _, one in lock.optional)):
        wanted.setdefault(locked.name, []).append(locked)
    own = set(installed.own_sites or installed.sites)
    for one in visible(installed):
        if one.site not in own or one.editable or one.installer == "conda":
            continue
        same = [locked for locked in wanted.get(one.name, ()) if is_locked(one, locked)]
        found = [_foreign(one, locked, installed) for locked in same]
        if found and all(found) and found[0] is not None:
            yield found[0]


def from_elsewhere(lock: LockFile, installed: Installed) -> tuple[Distribution, ...]:
    """Return what came from an archive that may be the locked one, and not from the lock's index.

    uv puts it back whatever is in it, and does not note the hash of what it installs.
    """
    locked = {one.name: one for one in lock.packages if one.taken is Taken.INDEX}
    own = set(installed.own_sites or installed.sites)
    return tuple(
        one
        for one in visible(installed)
        if one.site in own and one.origin_kind == "archive" and not one.origin_sha256
        if one.name in locked and is_locked(one, locked[one.name])
    )


def _foreign(one: Distribution, locked: LockedVersion, installed: Installed) -> Foreign | None:
    if not locked.version or locked.taken is Taken.OTHER or locked.any_local:
        return None
    if one.origin is not None:
        proof = _by_origin(one, locked)
    else:
        proof = _by_name(one, locked) or _by_kind(one, locked) or _by_size(one, locked, installed)
    if proof is None:
        return None
    return Foreign(one=one, locked=locked, why=proof[0], evidence=proof[1:])


def _by_origin(one: Distribution, locked: LockedVersion) -> tuple[str, ...] | None:
    """Compare where direct_url.json says that it came from."""
    if one.origin_kind in {"folder", "checkout"}:
        named = "index" if locked.taken is Taken.INDEX else "file"
        return f"it was built from a {one.origin_kind}, the lock names the {named}'s", (
            f"direct_url.json: {one.origin}"
        )
    if one.origin_sha256 and locked.sha256 and one.origin_sha256 not in locked.sha256:
        return (
            "it was installed from a file that the lock does not name",
            f"direct_url.json: {one.origin}, sha256 {one.origin_sha256[:12]}",
            f"locked: sha256 {', '.join(digest[:12] for digest in locked.sha256[:3])}",
        )
    return None


def _by_name(one: Distribution, locked: LockedVersion) -> tuple[str, ...] | None:
    """Tell a build of an index from a renamed wheel, which is installed by its address alone."""
    if locked.taken is not Taken.ADDRESS or not local_of(locked.version) or local_of(one.version):
        return None
    return (
        f"it was not installed from the file that the lock names, {locked.version}",
        "no direct_url.json in its metadata: it came from an index, or was built from its sdist",
    )


def _by_kind(one: Distribution, locked: LockedVersion) -> tuple[str, ...] | None:
    """Compare whether it is for any platform: a wheel that lost its compiled part is."""
    kinds = {name.endswith("-any.whl") for name, _ in locked.wheels if name.endswith(".whl")}
    if locked.built or not one.tags or len(kinds) != 1:
        return None
    is_any = all(tag.rpartition("-")[2] == "any" for tag in one.tags)
    if is_any in kinds:
        return None
    is_, was = ("any platform", "one") if is_any else ("one platform", "any")
    return (
        f"it is a wheel for {is_}, the locked one is for {was}",
        f"WHEEL: {one.tags[0]}",
        f"locked: {locked.wheels[0][0]}",
    )


def _by_size(
    one: Distribution, locked: LockedVersion, installed: Installed
) -> tuple[str, ...] | None:
    """Compare the files with the archive, which cannot be larger than what is in it."""
    target = target_of(installed)
    sizes = [size for name, size in locked.wheels if target and fits(name, target)]
    least = min((size for size in sizes if size is not None), default=0)
    if locked.built or None in sizes or not least or one.record is None:
        return None
    files = [entry for entry in one.record if not entry.path.startswith(f"{one.info}/")]
    if any(entry.size is None and not entry.path.endswith(".pyc") for entry in files):
        return None
    held = sum(entry.size or 0 for entry in files)
    if least <= held + _SLACK + _SLACK_PER_FILE * len(files):
        return None
    return (
        "the locked wheel is larger than all of its files",
        f"RECORD: {held:,} bytes in {len(files)} files, locked: {least:,} bytes",
    )


def target_of(installed: Installed) -> Target | None:
    """Return the Python and platform of an environment, to choose wheels by."""
    python = ".".join(python_of(installed).split(".")[:2])
    platform = next((one for one in Platform if one.machine == installed.machine), None)
    if not python or platform is None:
        return None
    return Target(name="installed", python=python, platform=platform)
