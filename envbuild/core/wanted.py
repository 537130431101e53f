"""What a project asks for on one target: requirements whose markers hold there, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from packaging.requirements import Requirement

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


def wanted_for(project: Project, target: Target, extra: Iterable[Requirement] = ()) -> Wanted:
    """Return the requirements that hold on the target, by canonical name.

    ``extra`` are requirements that came to light later, of dependencies say.
    """
    groups = {"", *(f"extra:{name}" for name in target.extras)}
    groups |= {f"group:{name}" for name in target.groups}
    declared = (d.requirement for d in project.requirements if d.group in groups)
    found: dict[str, tuple[Requirement, ...]] = {}
    for requirement in (*declared, *extra):
        if holds(requirement, target):
            name = canonicalize_name(requirement.name)
            found[name] = (*found.get(name, ()), requirement)
    return found


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


def asked(wanted: Wanted, project: str) -> str:
    """Return what is asked of a project as one text (``torchvision>=0.23``)."""
    specifiers = sorted({str(r.specifier) for r in wanted.get(project, ()) if r.specifier})
    return project + ",".join(specifiers)
