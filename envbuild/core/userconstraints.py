"""What ``constraint-dependencies`` of ``[tool.uv]`` say beside the pins of envbuild."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from envbuild.model.project import Project


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
    """Return the constraints that the user wrote, so all that are no pins."""
    document: dict[str, Any] = tomllib.loads(project.text)
    entries = document.get("tool", {}).get("uv", {}).get("constraint-dependencies", ())
    found = (_requirement(entry) for entry in entries)
    return tuple(one for one in found if one is not None and not is_pin(one))


def _requirement(entry: object) -> Requirement | None:
    try:
        return Requirement(str(entry))
    except InvalidRequirement:  # uv says so
        return None
