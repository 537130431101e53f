"""Everything one solve looks at: the target, what is wanted, and where facts come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.core.wanted import optional_for, wanted_for
from envbuild.core.wheeltags import best_by_version, local_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from packaging.requirements import Requirement

    from envbuild.core.wanted import Wanted
    from envbuild.model.project import BuildSpec, IndexUrls, Project
    from envbuild.model.target import Target
    from envbuild.model.wheel import IndexPage, WheelFile
    from envbuild.ports import Facts, WheelSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The inputs of one solve; ``wanted`` and ``builds`` are keyed by canonical name.

    ``optional`` is what uv.lock holds besides the target's set: it never rules a build out.
    """

    target: Target
    wanted: Wanted
    builds: Mapping[str, BuildSpec]
    indexes: IndexUrls
    source: WheelSource
    facts: Facts
    optional: Wanted = field(default_factory=dict)


def context_for(
    project: Project,
    target: Target,
    *,
    source: WheelSource,
    facts: Facts,
    extra: Iterable[Requirement] = (),
) -> Context:
    """Return the context of a project on one of its targets."""
    return Context(
        target=target,
        wanted=wanted_for(project, target, extra),
        builds={canonicalize_name(spec.name): spec for spec in project.builds},
        indexes=project.indexes,
        source=source,
        facts=facts,
        optional=optional_for(project, target),
    )


def fitting(
    context: Context, page: IndexPage, project: str, *, local: frozenset[str] | None = None
) -> tuple[WheelFile, ...]:
    """Return the best wheel of each version that fits the target, newest version first.

    With ``local`` only versions with one of these local parts count.
    """
    wheels = context.source.wheels(page, project)
    if local is not None:
        wheels = tuple(wheel for wheel in wheels if local_of(wheel.version) in local)
    return best_by_version(wheels, context.target)
