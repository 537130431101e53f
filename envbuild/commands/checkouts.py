"""Requirements on a repository or a folder: no sha256 pins them, so they are refused at once."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from envbuild.core.redact import redact_url
from envbuild.core.wanted import groups_for, holds
from envbuild.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.project import DeclaredRequirement, Project
    from envbuild.model.target import Target

_FILES = (".whl", ".tar.gz", ".zip")
_COMMIT = re.compile(r"@[0-9a-f]{40}(?:#|$)")


def refuse_checkouts(project: Project, target: Target) -> None:
    """Raise InputError where a target asks for a checkout; the hint says how to build it."""
    groups = groups_for(project, target)
    asked = tuple(
        declared
        for declared in project.requirements
        if declared.group in groups and holds(declared.requirement, target)
    )
    git = tuple(one for one in asked if (one.requirement.url or "").startswith("git+"))
    _refuse(git, "git", {_name(one): _git_line(one) for one in git})
    folders = _folders(project)
    local = tuple(one for one in asked if _name(one) in folders)
    _refuse(local, "a folder", {n: f'{n} = {{ path = "{path}" }}' for n, path in folders.items()})


def _folders(project: Project) -> Mapping[str, str]:
    """Return the packages that [tool.uv.sources] takes from a folder, by name."""
    document: dict[str, Any] = tomllib.loads(project.text)
    sources = document.get("tool", {}).get("uv", {}).get("sources", {})
    return {
        canonicalize_name(name): source["path"]
        for name, source in sources.items()
        if isinstance(source, dict)
        and isinstance(source.get("path"), str)
        and not source["path"].endswith(_FILES)
    }


def _refuse(
    found: tuple[DeclaredRequirement, ...], kind: str, build_lines: Mapping[str, str]
) -> None:
    if not found:
        return
    named = ", ".join(f"`{_name(one)}` ({one.where}, line {one.line})" for one in found)
    lines = "\n".join(build_lines[_name(one)] for one in found)
    raise InputError(
        f"found {named} taken from {kind}, wanted what a sha256 can pin",
        hint=f"take it out of the requirements and build it after the install:\n\n"
        f"[tool.envbuild.build]\n{lines}",
    )


def _name(declared: DeclaredRequirement) -> str:
    return canonicalize_name(declared.requirement.name)


def _git_line(declared: DeclaredRequirement) -> str:
    address = redact_url(declared.requirement.url or "").removeprefix("git+")
    if not _COMMIT.search(address):
        host, at, _ = address.rpartition("@")
        address = f"{host if at else address}@COMMIT"
    return f'{_name(declared)} = {{ git = "{address}" }}'
