"""Everything one solve looks at: the target, what is wanted, and where facts come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.core.frozen import base_candidate, frozen_pins
from envbuild.core.wanted import optional_for, wanted_for
from envbuild.core.wheeltags import best_by_version, local_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from packaging.requirements import Requirement

    from envbuild.core.wanted import Wanted
    from envbuild.model.frozen import Frozen
    from envbuild.model.project import BuildSpec, IndexUrls, Project
    from envbuild.model.stack import Candidate, IndexPin
    from envbuild.model.target import Target
    from envbuild.model.wheel import IndexPage, WheelFile
    from envbuild.ports import Facts, WheelSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The inputs of one solve; ``wanted`` and ``builds`` are keyed by canonical name.

    ``optional`` is what uv.lock holds besides the target's set: it never rules a build out.
    ``frozen`` pins what a base already holds, and ``base_torch`` is the torch among it; then no
    other is a candidate, and no provider is asked for what is frozen. ``unversioned`` is in the
    base too, and no pin can name it.
    """

    target: Target
    wanted: Wanted
    builds: Mapping[str, BuildSpec]
    indexes: IndexUrls
    source: WheelSource
    facts: Facts
    optional: Wanted = field(default_factory=dict)
    frozen: Mapping[str, IndexPin] = field(default_factory=dict)
    base_torch: Candidate | None = None
    unversioned: tuple[str, ...] = ()


def context_for(
    project: Project,
    target: Target,
    *,
    source: WheelSource,
    facts: Facts,
    extra: Iterable[Requirement] = (),
    frozen: Frozen | None = None,
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
        frozen={}
        if frozen is None
        else {pin.project: pin for pin in frozen_pins(frozen, project=project.name)},
        base_torch=None if frozen is None else base_candidate(frozen),
        unversioned=() if frozen is None else frozen.unversioned,
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
