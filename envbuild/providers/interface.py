"""What a provider is: one source of wheels that are coupled to a build of torch."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envbuild.core.buildtools import OLD_SETUPTOOLS, imported_to_build, needs_old_setuptools
from envbuild.core.indexpages import pypi_page
from envbuild.core.wanted import asked
from envbuild.errors import WorldError
from envbuild.model.project import Prefer
from envbuild.model.stack import Refusal, SourceBuild

if TYPE_CHECKING:
    from collections.abc import Callable

    from envbuild.core.context import Context
    from envbuild.model.project import BuildSpec
    from envbuild.model.stack import Candidate, Pin


@dataclass(frozen=True, kw_only=True, slots=True)
class Extension:
    """The pins a provider adds to a candidate, and sentences the user must know."""

    pins: tuple[Pin, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Provider:
    """One source of coupled wheels.

    ``projects`` are the canonical names it serves; it looks at no other name of the context.
    ``extend`` finds the build of each that is wanted, or says why there is none.
    """

    name: str
    projects: frozenset[str]
    extend: Callable[[Candidate, Context], Extension | Refusal] = field(repr=False)


def built_elsewhere(context: Context, project: str) -> bool:
    """Whether the user builds a project from a folder or a repository of their own."""
    spec = context.builds.get(project)
    return spec is not None and (spec.path is not None or spec.git is not None)


def served(context: Context, projects: frozenset[str]) -> tuple[str, ...]:
    """Return the names of a provider that are wanted and not built elsewhere, sorted."""
    return tuple(
        sorted(p for p in projects & context.wanted.keys() if not built_elsewhere(context, p))
    )


def preference(context: Context, project: str) -> Prefer:
    """Return how the user wants a project taken; wheels alone unless the build table names it."""
    spec = context.builds.get(project)
    return Prefer.WHEEL if spec is None else spec.prefer


def source_build(
    context: Context,
    project: str,
    version: str,
    *,
    candidate: Candidate,
    runtime: tuple[str, ...] = (),
) -> SourceBuild | Refusal:
    """Return the source build of a project of the default index, as the build table asks.

    ``runtime`` is what the package needs to run beside torch. Where the index is silent, the
    source has no address and no hash.
    """
    spec = context.builds.get(project)
    page, found = pypi_page(context.indexes), None
    with suppress(WorldError):
        found = context.source.sdist(page, project, version)
        if found is None:
            return Refusal(
                project=project,
                reason=f"{project} {version} has no sdist on {page.name} to compile it from",
                excludes=asked(context.wanted, project),
            )
    return SourceBuild(
        project=project,
        version=version,
        url=None if found is None else found.url,
        sha256=None if found is None else found.sha256,
        requires=requires_for(spec, project, candidate),
        runtime_requires=runtime,
        reason=f"compiled against {candidate.label}",
    )


def requires_for(spec: BuildSpec | None, project: str, candidate: Candidate) -> tuple[str, ...]:
    """Return the build requirements of a build table entry, or the usual ones.

    setuptools is bound where the package or torch's own part imports what it has no more.
    """
    if spec is not None and spec.requires:
        return spec.requires
    old = needs_old_setuptools(project, candidate.public)
    setuptools = OLD_SETUPTOOLS if old else "setuptools"
    return (setuptools, "wheel", "ninja", *imported_to_build(project))


def pinned_version(context: Context, project: str) -> str | None:
    """Return the version that the project's own requirement names exactly, without local part."""
    for requirement in context.wanted.get(project, ()):
        for spec in requirement.specifier:
            if spec.operator in ("==", "===") and not spec.version.endswith(".*"):
                return spec.version.partition("+")[0]
    return None
