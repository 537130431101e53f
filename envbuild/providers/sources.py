"""Extensions that the user builds from a folder or a repository, whatever their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.model.project import Prefer
from envbuild.model.stack import Refusal, SourceBuild
from envbuild.providers.interface import (
    Extension,
    Provider,
    pinned_version,
    requires_for,
    source_build,
)

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.project import BuildSpec
    from envbuild.model.stack import Candidate


def extend(candidate: Candidate, context: Context) -> Extension | Refusal:
    """Add each build of the table that no index serves, and the sdists asked for as source."""
    pins = []
    for name, spec in sorted(context.builds.items()):
        built = _build(name, spec, candidate, context)
        if isinstance(built, Refusal):
            return built
        pins += [built] if built is not None else []
    return Extension(pins=tuple(pins))


def _build(
    name: str, spec: BuildSpec, candidate: Candidate, context: Context
) -> SourceBuild | Refusal | None:
    if spec.path is None and spec.git is None:
        version = pinned_version(context, name)
        is_asked = spec.prefer is Prefer.SOURCE and name in context.wanted
        if version is None or not is_asked:
            return None
        return source_build(context, name, version, candidate=candidate)
    return SourceBuild(
        project=name,
        path=spec.path,
        git=spec.git,
        requires=requires_for(spec, name, candidate),
        reason=f"compiled against {candidate.label}",
    )


PROVIDER = Provider(name="sources", projects=frozenset(), extend=extend)
