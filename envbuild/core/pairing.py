"""Which torch a release of a coupled package works with, by facts before metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from envbuild.core.wheeltags import public_of

if TYPE_CHECKING:
    from envbuild.model.cuda import CudaVersion
    from envbuild.ports import Facts


def torch_for(
    facts: Facts, project: str, version: str, requires_dist: tuple[str, ...] | None = None
) -> SpecifierSet | None:
    """Return the torch releases that a release of a project works with; None if not known.

    The metadata of some releases admits a torch whose symbols the release cannot find, and that
    of others names no torch at all; a fact therefore narrows what the metadata declares, and
    stands alone where it declares nothing.
    """
    declared = _declared(requires_dist or ())
    pairing = facts.pairing(project, public_of(version))
    if pairing is None:
        return declared
    try:
        known = SpecifierSet(pairing.torch)
    except InvalidSpecifier:
        return declared
    return known if declared is None else known & declared


def pairs(specifier: SpecifierSet | None, torch: str) -> bool:
    """Whether a specifier, if any is known, admits a torch; an unknown one does not."""
    return specifier is not None and specifier.contains(public_of(torch), prereleases=True)


def released_with(facts: Facts, project: str, version: str) -> SpecifierSet | None:
    """Return the torch minor that a release of a companion came with; None if none names it."""
    companion = (project, public_of(version))
    for build in facts.torch_builds():
        if companion in build.companions:
            return SpecifierSet(f"=={'.'.join(build.torch.split('.')[:2])}.*")
    return None


def partner(facts: Facts, project: str, torch: str, cuda: CudaVersion | None) -> str | None:
    """Return the release of a project that belongs to a torch: that of its day, or the newest."""
    build = facts.torch_build(public_of(torch), cuda)
    released = dict(build.companions).get(project) if build else None
    if released is not None:
        return released
    for pairing in facts.pairings(project):
        if pairs(torch_for(facts, project, pairing.version), torch):
            return pairing.version
    return None


def _declared(requires_dist: tuple[str, ...]) -> SpecifierSet | None:
    for text in requires_dist:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) == "torch" and requirement.specifier:
            return requirement.specifier
    return None
