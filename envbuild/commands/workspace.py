"""Refuse a member of a workspace of uv, whose own settings and uv.lock uv does not read."""

from __future__ import annotations

import sys
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from envbuild.errors import EnvbuildError, InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from envbuild.ports import Files


def refuse_member(text: str, files: Files) -> None:
    """Raise InputError where a folder above makes the project a member of its workspace.

    ``text`` is the project's own pyproject.toml.
    """
    if _workspace(text) is not None:
        return
    for depth, folder in enumerate(files.root.parents, start=1):
        workspace = _workspace(_text(files, f"{'../' * depth}pyproject.toml"))
        if workspace is None:
            continue
        path = files.root.relative_to(folder).as_posix()
        if _names(workspace, "members", path) and not _names(workspace, "exclude", path):
            raise _member(folder, path)
        return


def _text(files: Files, path: str) -> str:
    with suppress(EnvbuildError):
        return files.read(path) or ""
    return ""


def _workspace(text: str) -> Mapping[str, Any] | None:
    with suppress(tomllib.TOMLDecodeError, AttributeError):
        workspace = tomllib.loads(text).get("tool", {}).get("uv", {}).get("workspace")
        return workspace if isinstance(workspace, dict) else None
    return None


def _names(workspace: Mapping[str, Any], key: str, path: str) -> bool:
    patterns = workspace.get(key, ())
    return isinstance(patterns, list) and any(_fits(str(pattern), path) for pattern in patterns)


def _fits(pattern: str, path: str) -> bool:
    """Whether a glob names a folder; ``*`` stops at a slash, ``**`` does not."""
    pattern = pattern.removeprefix("./").rstrip("/")
    if "**" in pattern:
        return fnmatchcase(path, pattern.replace("**/", "*"))
    return pattern.count("/") == path.count("/") and fnmatchcase(path, pattern)


def _member(folder: Path, path: str) -> InputError:
    return InputError(
        f"the project is a member of the workspace in `{folder}`: uv reads the settings and the"
        " uv.lock of that folder alone",
        hint=f'lock in that folder, add `exclude = ["{path}"]` to its [tool.uv.workspace], or set'
        ' `layer = "pip"` here',
    )
