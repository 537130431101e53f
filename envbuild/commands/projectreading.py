"""Read a project: its pyproject.toml, the requirements files it names, and where locks lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.project.manifest import parse_project, requirement_files_named
from envbuild.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.project import Project
    from envbuild.ports import Files


def parsed_project(files: Files, environ: Mapping[str, str]) -> Project:
    """Read the project of a folder; raises InputError with every problem of its table."""
    text = files.read("pyproject.toml")
    if text is None:
        raise InputError(
            f"no `pyproject.toml` in `{files.root}`", hint="run it in the project's folder"
        )
    named = _requirement_files(text, files)
    return parse_project(text, requirement_files=named, environ=environ)


def _requirement_files(text: str, files: Files) -> dict[str, str]:
    """Return the requirements files that a project names, and those that they name."""
    found: dict[str, str] = {}
    tried: set[str] = set()
    while True:
        named = set(requirement_files_named(text, requirement_files=found)) - tried
        if not named:
            return found
        tried |= named
        read = {name: files.read(name) for name in sorted(named)}
        found.update({name: content for name, content in read.items() if content is not None})


def pylock_path(target: str) -> str:
    """Return where the pylock of a target lies."""
    return f"lockfiles/pylock.{target}.toml"
