"""Builds of a source tree: `2.8.0a0+5228986c39.nv25.05` is what torch's own calls itself.

The trees of torch and of its companions are at ``2.8.0a0`` until 2.8.0 is out, and NVIDIA's images
and many a build by hand keep that name. PEP 440 has it before 2.8.0, so that `>=2.8` would refuse
the very torch that a container is made around: such a build satisfies what its release does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from envbuild.core.wanted import Wanted

_TREE = ("a", 0)


def released(version: str) -> str | None:
    """Return the release that the build of a tree goes by, its local part kept; None for others."""
    if "a0" not in version:
        return None
    try:
        parsed = Version(version)
    except InvalidVersion:
        return None
    if parsed.pre != _TREE or parsed.dev is not None or parsed.post is not None:
        return None
    return f"{parsed.base_version}{f'+{parsed.local}' if parsed.local else ''}"


def spellings(version: str) -> tuple[str, ...]:
    """Return what a version goes by: itself, and for the build of a tree its release."""
    release = released(version)
    return (version,) if release is None else (version, release)


def satisfies(version: str, specifier: SpecifierSet) -> bool:
    """Whether a version, or the release that it goes by, is within a specifier."""
    return any(specifier.contains(one, prereleases=True) for one in spellings(version))


def accepts_build(wanted: Wanted, project: str, version: str) -> bool:
    """Whether a build of a base satisfies everything asked of a project."""
    asked = wanted.get(project, ())
    return all(satisfies(version, requirement.specifier) for requirement in asked)
