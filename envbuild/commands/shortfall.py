"""Why uv finds no set for a target whatever torch is taken, and what to change."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from envbuild.core.indexpages import pypi_page
from envbuild.core.missingwheels import missing_wheel, requirements_without_wheels
from envbuild.errors import RefusedError
from envbuild.providers.solve import solve

if TYPE_CHECKING:
    from envbuild.commands.lockrun import Shared
    from envbuild.core.missingwheels import MissingWheel
    from envbuild.model.target import Target


def without_wheels(shared: Shared, target: Target, reason: str) -> RefusedError | None:
    """Return the error for packages that no wheel fits, naming the nearest Python that has them.

    None where uv's reason speaks of no such package.
    """
    page = pypi_page(shared.project.indexes)
    missing = tuple(
        missing_wheel(requirement, shared.source.wheels(page, requirement.name), target)
        for requirement in requirements_without_wheels(reason)
    )
    if not missing:
        return None
    sentences = "; ".join(one.sentence(target) for one in missing)
    return RefusedError(sentences, hint=_hint(shared, target, missing))


def _hint(shared: Shared, target: Target, missing: tuple[MissingWheel, ...]) -> str:
    python = _nearest(shared, target, missing)
    if python is None:
        names = ", ".join(f"`{one.requirement}`" for one in missing)
        return f"ask for another version of {names}, or do without"
    line = f'`python = "{python}"` in [tool.envbuild.targets.{target.name}]'
    supported = SpecifierSet(shared.project.requires_python or "")
    allowed = any(supported.contains(f"{python}.{patch}") for patch in range(31))
    return line if allowed else f"{line}, and a `requires-python` that allows it"


def _nearest(shared: Shared, target: Target, missing: tuple[MissingWheel, ...]) -> str | None:
    """Return the nearest Python that has every package and a stack; the newer of two."""
    common = reduce(set[str].intersection, (set(one.pythons) for one in missing))
    wanted = _minor(target.python)
    for python in sorted(common, key=lambda p: (abs(_minor(p) - wanted), -_minor(p))):
        other = replace(target, python=python)
        solutions = solve(shared.project, other, source=shared.source, facts=shared.facts)
        if next(solutions, None) is not None:
            return python
    return None


def _minor(python: str) -> int:
    return int(python.partition(".")[2])
