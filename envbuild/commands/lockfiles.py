"""The files of a lock: their texts, and how they differ from what lies on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.commands.projectreading import pylock_path
from envbuild.core.binding.project import bound_project
from envbuild.core.compare import compare_code, compare_locks, compare_sets, compare_versions
from envbuild.core.pylock import read_target_lock, render_pylock
from envbuild.core.requirementstxt import parse_requirements, render_requirements
from envbuild.core.uvlock import requires_python_in, versions_in
from envbuild.core.uvsettings import settings_for_layer
from envbuild.errors import EnvbuildError
from envbuild.model.project import Layer
from envbuild.model.report import MISSING, UNBOUND, Change
from envbuild.providers.registry import COUPLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envbuild.commands.attempt import LockedTarget
    from envbuild.model.lock import TargetLock
    from envbuild.model.project import Project
    from envbuild.ports import Facts, Files

UV_LOCK = "uv.lock"
PYPROJECT = "pyproject.toml"


def requirements_path(target: str) -> str:
    """Return where the requirements file of a target lies."""
    return f"lockfiles/requirements.{target}.txt"


def texts_of(project: Project, locked: list[LockedTarget]) -> dict[str, str | None]:
    """Return every file of the lock by its path, in the order in which they are written.

    None stands for a file that must not be there: uv.lock in the layer "pip".
    """
    texts: dict[str, str | None] = {}
    for one in locked:
        name = one.target.name
        lock = one.report.lock
        texts[pylock_path(name)] = render_pylock(lock, one.target)
        texts[requirements_path(name)] = render_requirements(lock, default_index=one.default_index)
    for one in locked:
        if one.target.name == project.default_target:
            settings = settings_for_layer(project, one.target, one.report.stack)
            texts[PYPROJECT] = bound_project(project.text, settings, coupled=COUPLED)
            texts[UV_LOCK] = one.uv_lock
    return texts


def changes_of(
    project: Project,
    locked: list[LockedTarget],
    stale: Mapping[str, str | None],
    *,
    files: Files,
    facts: Facts,
) -> Iterator[Change]:
    """Yield the differences between the stale files on disk and what they should be."""
    for one in locked:
        name = one.target.name
        for path in (pylock_path(name), requirements_path(name)):
            if path in stale:
                before = files.read(path)
                for text in _file_changes(path, before, one.report.lock, facts):
                    yield Change(file=path, target=name, text=text)
    if PYPROJECT in stale:
        yield Change(file=PYPROJECT, text=_settings_change(project))
    if UV_LOCK in stale:
        for text in _uv_lock_changes(files.read(UV_LOCK), stale[UV_LOCK]):
            yield Change(file=UV_LOCK, target=project.default_target, text=text)


def _settings_change(project: Project) -> str:
    if project.layer is Layer.PIP:
        return "[tool.uv] managed is not false: `uv run` would put its own set in"
    return UNBOUND


def _file_changes(path: str, before: str | None, lock: TargetLock, facts: Facts) -> Iterator[str]:
    if before is None:
        yield MISSING
    elif path.endswith(".toml"):
        yield from _lock_changes(path, before, lock, facts)
    else:
        held = {package.name: package.version for package in lock.packages if not package.direct}
        said = {name: pin for name, pin in parse_requirements(before).items() if name in held}
        differences = tuple(compare_sets({"the file": said, "the lock": held}))
        yield from differences or ("its hashes, pages or lines are not those of the lock",)


def _lock_changes(path: str, before: str, lock: TargetLock, facts: Facts) -> Iterator[str]:
    try:
        old = read_target_lock(before, path=path)
    except EnvbuildError as error:
        yield error.message
        return
    differences = [*compare_locks(old, lock), *_code_changes(old, lock, facts)]
    yield from differences or ["was edited by hand, or written by another envbuild"]


def _code_changes(old: TargetLock, new: TargetLock, facts: Facts) -> Iterator[str]:
    before, after = _torch_file(old), _torch_file(new)
    if before is not None and after is not None and before != after:
        yield from compare_code(facts.device_code(before), facts.device_code(after))


def _torch_file(lock: TargetLock) -> str | None:
    for package in lock.packages:
        if package.name == "torch" and package.artifacts:
            return package.artifacts[0].filename
    return None


def _python_change(before: str, after: str) -> Iterator[str]:
    """Say which Pythons the lock is for where the project wants others."""
    old, new = requires_python_in(before), requires_python_in(after)
    if old != new:
        yield f"is for Python {old or 'of no range'}, the project wants {new}"


def _uv_lock_changes(before: str | None, after: str | None) -> Iterator[str]:
    if after is None:
        yield "is not used in layer `pip`, and goes"
        return
    if before is None:
        yield MISSING
        return
    try:
        held = versions_in(before)
    except EnvbuildError as error:
        yield error.message
        return
    differences = (*_python_change(before, after), *compare_versions(held, versions_in(after)))
    yield from differences or ("holds other hashes, addresses or requirements than the lock",)
