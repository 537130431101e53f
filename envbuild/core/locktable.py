"""The ``[tool.envbuild]`` table of a pylock: what the set was made for, and what is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from envbuild.core.frozen import frozen_table
from envbuild.model.stack import SourceBuild

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.lock import TargetLock

_WHERE = ("version", "path", "git", "url", "sha256")


def lock_table(lock: TargetLock) -> dict[str, Any]:
    """Return the table of a lock."""
    table: dict[str, Any] = {
        "target": lock.target,
        "platform": lock.platform,
        "gpus": list(lock.gpus),
        "capabilities": list(lock.capabilities),
    }
    if lock.glibc is not None:
        table["glibc"] = lock.glibc
    if lock.cuda is not None:
        table["cuda"] = lock.cuda
    if lock.unhashed:
        table["incomplete"] = [f"{package.name}=={package.version}" for package in lock.unhashed]
        urls = {p.name: p.artifacts[0].url for p in lock.unhashed if p.artifacts}
        if urls:
            table["unhashed"] = urls
    if lock.base is not None:
        table["base"] = lock.base
    if lock.frozen is not None:
        table.update(frozen_table(lock.frozen))
    if lock.builds:
        table["builds"] = [_build_table(build) for build in lock.builds]
    return table


def _build_table(build: SourceBuild) -> dict[str, Any]:
    where = {key: getattr(build, key) for key in _WHERE}
    known = {key: value for key, value in where.items() if value is not None}
    return {"name": build.project, **known, "requires": list(build.requires)}


def read_builds(table: Mapping[str, Any]) -> tuple[SourceBuild, ...]:
    """Return the packages of a table that are compiled on install."""
    return tuple(_read_build(build) for build in table.get("builds", ()))


def _read_build(table: Mapping[str, Any]) -> SourceBuild:
    where: dict[str, Any] = {key: table.get(key) for key in _WHERE}
    return SourceBuild(project=table["name"], requires=tuple(table.get("requires", ())), **where)
