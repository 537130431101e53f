"""Requirements that name a repository: no sha256 pins them, so they are refused at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.core.redact import redact_url
from envbuild.core.wanted import groups_for, holds
from envbuild.errors import InputError

if TYPE_CHECKING:
    from envbuild.model.project import DeclaredRequirement, Project
    from envbuild.model.target import Target

_COMMIT = re.compile(r"@[0-9a-f]{40}(?:#|$)")


def refuse_checkouts(project: Project, target: Target) -> None:
    """Raise InputError where a target asks for a checkout; the hint says how to build it."""
    found = tuple(
        declared
        for declared in project.requirements
        if (declared.requirement.url or "").startswith("git+")
        and declared.group in groups_for(project, target)
        and holds(declared.requirement, target)
    )
    if not found:
        return
    named = ", ".join(f"`{_name(one)}` ({one.where}, line {one.line})" for one in found)
    lines = "\n".join(_build_line(one) for one in found)
    raise InputError(
        f"found {named} taken from git, wanted what a sha256 can pin",
        hint=f"take it out of the requirements and build it after the install:\n\n"
        f"[tool.envbuild.build]\n{lines}",
    )


def _name(declared: DeclaredRequirement) -> str:
    return canonicalize_name(declared.requirement.name)


def _build_line(declared: DeclaredRequirement) -> str:
    address = redact_url(declared.requirement.url or "").removeprefix("git+")
    if not _COMMIT.search(address):
        host, at, _ = address.rpartition("@")
        address = f"{host if at else address}@COMMIT"
    return f'{_name(declared)} = {{ git = "{address}" }}'
