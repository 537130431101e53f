"""What ``constraint-dependencies`` of ``[tool.uv]`` say beside the pins of envbuild."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.project import Project

_BOUND = re.compile(
    r"python_version == '[\d.]+' and sys_platform == 'linux' and platform_machine == '\w+'"
)


def is_pin(requirement: Requirement) -> bool:
    """Whether a constraint has the form of those that envbuild writes: one exact version."""
    specifiers = list(requirement.specifier)
    return (
        requirement.marker is None
        and len(specifiers) == 1
        and specifiers[0].operator == "=="
        and not specifiers[0].version.endswith(".*")
    )


def user_constraints(project: Project) -> tuple[Requirement, ...]:
    """Return the constraints that the user wrote: of a project once bound, all but the pins."""
    document: dict[str, Any] = tomllib.loads(project.text)
    uv = document.get("tool", {}).get("uv", {})
    found = constraints_in(uv)
    return tuple(one for one in found if not (is_bound(uv) and is_pin(one)))


def constraints_in(uv: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """Return ``constraint-dependencies`` of ``[tool.uv]``, without what is no requirement."""
    entries = uv.get("constraint-dependencies", ())
    found = (_requirement(entry) for entry in (entries if isinstance(entries, list) else ()))
    return tuple(one for one in found if one is not None)


def is_bound(uv: Mapping[str, Any]) -> bool:
    """Whether envbuild bound the project before: it then wrote ``environments`` too."""
    entries = uv.get("environments")
    return isinstance(entries, list) and any(_BOUND.fullmatch(str(entry)) for entry in entries)


def _requirement(entry: object) -> Requirement | None:
    try:
        return Requirement(str(entry))
    except InvalidRequirement:  # uv says so
        return None
