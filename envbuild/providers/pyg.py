"""PyG's compiled packages, from the page of a torch minor and accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from envbuild.core.context import fitting
from envbuild.core.indexpages import pyg_page
from envbuild.core.wanted import accepts, asked
from envbuild.core.wheeltags import public_of
from envbuild.model.project import Prefer
from envbuild.model.stack import IndexPin, Refusal
from envbuild.providers.interface import (
    Extension,
    Provider,
    pinned_version,
    preference,
    served,
    source_build,
)
from envbuild.providers.templates import locals_for, strings

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.stack import Candidate, Pin

PROJECTS = frozenset(strings("pyg", "projects"))


def extend(candidate: Candidate, context: Context) -> Extension | Refusal:
    """Pin the newest wheel of each wanted package that is built for the candidate."""
    pins: list[Pin] = []
    for project in served(context, PROJECTS):
        found = _pin(project, candidate, context)
        if isinstance(found, Refusal):
            return found
        pins.append(found)
    return Extension(pins=tuple(pins))


def _pin(project: str, candidate: Candidate, context: Context) -> Pin | Refusal:
    prefer = preference(context, project)
    if prefer is not Prefer.SOURCE:
        found = _wheel(project, candidate, context)
        if isinstance(found, IndexPin) or prefer is Prefer.WHEEL:
            return found
    return _source(project, candidate, context)


def _wheel(project: str, candidate: Candidate, context: Context) -> IndexPin | Refusal:
    page = pyg_page(context.indexes, candidate.public, candidate.accelerator)
    names = locals_for("pyg", candidate)
    built = fitting(context, page, project, local=names)
    chosen = next((w for w in built if accepts(context.wanted, project, w.version)), None)
    if chosen is not None:
        return IndexPin(wheel=chosen, reason=f"built for {candidate.label}")
    wanted = asked(context.wanted, project)
    if built:
        newest = public_of(built[0].version)
        reason = f"PyG's page `torch-{page.key}` has {project} up to {newest}, not `{wanted}`"
        return Refusal(project=project, reason=reason, excludes=wanted)
    where = context.target.machines
    reason = f"PyG's page `torch-{page.key}` has no {project} for {where}"
    return Refusal(project=project, reason=reason, excludes=wanted)


def _source(project: str, candidate: Candidate, context: Context) -> Pin | Refusal:
    version = pinned_version(context, project) or _known_version(project, candidate, context)
    if project in strings("pyg", "wheel-only"):
        reason = f"{project} has no source distribution to build from"
    elif version is None:
        reason = f"no version of {project} is known to build from source, pin one with `==`"
    else:
        runtime = ("scipy",) if project in strings("pyg", "needs-scipy") else ()
        return source_build(context, project, version, candidate=candidate, runtime=runtime)
    return Refusal(project=project, reason=reason, excludes=asked(context.wanted, project))


def _known_version(project: str, candidate: Candidate, context: Context) -> str | None:
    """Return the newest acceptable version on the candidate's page, for whatever Python."""
    page = pyg_page(context.indexes, candidate.public, candidate.accelerator)
    versions = {public_of(wheel.version) for wheel in context.source.wheels(page, project)}
    allowed = [v for v in versions if accepts(context.wanted, project, v)]
    return max(allowed, key=Version, default=None)


PROVIDER = Provider(name="pyg", projects=PROJECTS, extend=extend)
