"""What a project asks for on one target: requirements whose markers hold there, by name."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envbuild.core.userconstraints import user_constraints
from envbuild.core.uvsettings import GROUP
from envbuild.model.project import Layer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from envbuild.model.project import Project
    from envbuild.model.target import Target

    Wanted: TypeAlias = Mapping[str, tuple[Requirement, ...]]


def environment_for(target: Target) -> dict[str, str]:
    """Return the PEP 508 marker environment of a target, each variable set."""
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{target.python}.0",
        "os_name": "posix",
        "platform_machine": target.platform.machine,
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{target.python}.0",
        "platform_python_implementation": "CPython",
        "python_version": target.python,
        "sys_platform": "linux",
        "extra": "",
    }


def default_groups(project: Project) -> tuple[str, ...]:
    """Return the dependency groups that `uv sync` installs unasked, envbuild's own left out."""
    document: dict[str, Any] = tomllib.loads(project.text)
    defined = document.get("dependency-groups", {})
    named = document.get("tool", {}).get("uv", {}).get("default-groups", ["dev"])
    known = {canonicalize_name(name) for name in defined} - {GROUP}
    names = defined if named == "all" else named
    return tuple(n for n in (canonicalize_name(name) for name in names) if n in known)


def groups_for(project: Project, target: Target) -> frozenset[str]:
    """Return the groups of requirements (`DeclaredRequirement.group`) that a target installs."""
    groups = (*target.groups, *default_groups(project))
    extras = (f"extra:{name}" for name in target.extras)
    return frozenset(["", *extras, *(f"group:{name}" for name in groups)])


def wanted_for(project: Project, target: Target, extra: Iterable[Requirement] = ()) -> Wanted:
    """Return the requirements that hold on the target, by canonical name.

    ``extra`` are requirements that came to light later, of dependencies say.
    """
    groups = groups_for(project, target)
    declared = [d.requirement for d in project.requirements if d.group in groups]
    return _constrained(_by_name((*declared, *extra), target), project, target)


def optional_for(project: Project, target: Target) -> Wanted:
    """Return what uv.lock holds besides the target's set, by canonical name.

    These are the requirements of the extras and groups that the target leaves out.
    """
    if project.layer is not Layer.PROJECT or target.name != project.default_target:
        return {}
    groups = groups_for(project, target)
    left_out = [d.requirement for d in project.requirements if d.group not in groups]
    return _constrained(_by_name(left_out, target), project, target)


def _constrained(wanted: Wanted, project: Project, target: Target) -> Wanted:
    """Add the user's constraints to what is wanted; they ask for nothing by themselves."""
    limits = _by_name(user_constraints(project), target)
    return {name: (*asks, *limits.get(name, ())) for name, asks in wanted.items()}


def _by_name(requirements: Iterable[Requirement], target: Target) -> Wanted:
    found: dict[str, tuple[Requirement, ...]] = {}
    for requirement in requirements:
        if holds(requirement, target):
            name = canonicalize_name(requirement.name)
            found[name] = (*found.get(name, ()), _by_version(requirement))
    return found


def _by_version(requirement: Requirement) -> Requirement:
    """Return a wheel's address as the version it stands for; any other requirement as it is."""
    if not (requirement.url or "").partition("#")[0].endswith(".whl"):
        return requirement
    filename = unquote(PurePosixPath(urlsplit(requirement.url or "").path).name)
    with suppress(InvalidWheelFilename):
        version = parse_wheel_filename(filename)[1]
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        return Requirement(f"{requirement.name}{extras}=={version}")
    return requirement


def holds(requirement: Requirement, target: Target) -> bool:
    """Whether a requirement's marker is true on the target, under any extra it asks for."""
    marker = requirement.marker
    if marker is None:
        return True
    environment = environment_for(target)
    return any(marker.evaluate({**environment, "extra": name}) for name in ("", *target.extras))


def accepts(wanted: Wanted, project: str, version: str) -> bool:
    """Whether a version, local part included, satisfies everything asked of a project."""
    return all(
        requirement.specifier.contains(version, prereleases=True)
        for requirement in wanted.get(project, ())
    )


def accepts_release(wanted: Wanted, project: str, public: str) -> bool:
    """Whether some build of a release, a public version, may satisfy all asked of a project."""
    return all(
        spec.contains(public, prereleases=True) or spec.version.partition("+")[:2] == (public, "+")
        for requirement in wanted.get(project, ())
        for spec in requirement.specifier
    )


def asked(wanted: Wanted, project: str) -> str:
    """Return what is asked of a project as one text (``torchvision>=0.23``)."""
    specifiers = sorted({str(r.specifier) for r in wanted.get(project, ()) if r.specifier})
    return project + ",".join(specifiers)
