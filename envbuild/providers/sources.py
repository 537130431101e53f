"""Extensions that the user builds from a folder or a repository, whatever their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.model.project import Prefer
from envbuild.model.stack import SourceBuild
from envbuild.providers.interface import Extension, Provider, pinned_version, requires_for

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.project import BuildSpec
    from envbuild.model.stack import Candidate


def extend(candidate: Candidate, context: Context) -> Extension:
    """Add each build of the table that no index serves, and the sdists asked for as source."""
    pins = [
        _build(name, spec, candidate, context)
        for name, spec in sorted(context.builds.items())
        if spec.path is not None or spec.git is not None or _plain_source(name, spec, context)
    ]
    return Extension(pins=tuple(pins))


def _plain_source(name: str, spec: BuildSpec, context: Context) -> bool:
    return (
        spec.prefer is Prefer.SOURCE
        and name in context.wanted
        and pinned_version(context, name) is not None
    )


def _build(name: str, spec: BuildSpec, candidate: Candidate, context: Context) -> SourceBuild:
    from_index = spec.path is None and spec.git is None
    return SourceBuild(
        project=name,
        version=pinned_version(context, name) if from_index else None,
        path=spec.path,
        git=spec.git,
        requires=requires_for(spec, name, candidate),
        reason=f"compiled against {candidate.label}",
    )


PROVIDER = Provider(name="sources", projects=frozenset(), extend=extend)
