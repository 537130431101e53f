"""In what envbuild's locks differ from the pyproject.toml that they were made for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from envbuild.core.lockfresh import input_reasons, pinned_names
from envbuild.core.project.manifest import parse_project
from envbuild.core.pylock import read_target_lock
from envbuild.core.tomltext import parse_toml
from envbuild.core.wheeltags import local_of
from envbuild.errors import EnvbuildError
from envbuild.model.project import Layer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from envbuild.model.lock import TargetLock
    from envbuild.model.project import Project


def stale_locks(
    pyproject: str,
    locks: Iterable[tuple[str, str]],
    *,
    requirement_files: Mapping[str, str],
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the locks that differ from the project, each with the differences in sentences.

    ``locks`` pairs paths with texts. What cannot be read is not judged here.
    """
    try:
        project = parse_project(pyproject, requirement_files=requirement_files)
        document = parse_toml(pyproject)
    except (EnvbuildError, ValueError):
        return ()
    found = []
    for path, text in locks:
        reasons = tuple(_reasons(path, text, project, document))
        if reasons:
            found.append((path, reasons))
    return tuple(found)


def _reasons(path: str, text: str, project: Project, document: Mapping[str, Any]) -> Iterator[str]:
    try:
        lock = read_target_lock(text, path=path)
    except EnvbuildError:
        return
    target = next((one for one in project.targets if one.name == lock.target), None)
    if target is None:
        if lock.target:
            yield f"pyproject.toml has no target `{lock.target}` any more"
        return
    yield from input_reasons(project, target, lock, document=document)
    if project.layer is Layer.PROJECT and project.default_target == target.name:
        yield from _unbound(lock, document)


def _unbound(lock: TargetLock, document: Mapping[str, Any]) -> Iterator[str]:
    """Say where the entries are gone that bind torch: without them the next lock moves it."""
    torch = next((one for one in lock.packages if one.name == "torch"), None)
    if torch is None or not local_of(torch.version):
        return
    if "torch" not in pinned_names(document):
        yield f"`constraint-dependencies` in [tool.uv] does not hold torch at {torch.version}"
    sources = document.get("tool", {}).get("uv", {}).get("sources", {})
    if "torch" not in {str(canonicalize_name(name)) for name in sources}:
        yield "[tool.uv.sources] does not lead torch to its index"
