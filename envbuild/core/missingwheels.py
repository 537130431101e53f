"""Packages without a wheel for a target: which Pythons and platforms they have wheels for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envbuild.core.pylock import parse_pylock
from envbuild.core.wheeltags import only_newer_glibc, pythons, pythons_named
from envbuild.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.lock import TargetLock
    from envbuild.model.target import Target
    from envbuild.model.wheel import WheelFile

_NO_WHEELS = re.compile(
    r"(?:all versions of (?P<name>[\w.-]+)|(?P<requirement>[\w.-]+(?:\[[^\]]*\])?[=<>!~][^\s]*))"
    r" (?:has|have) no (?:`[^`]+`-compatible wheels?|wheel for the target|wheels with a matching)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingWheel:
    """A package that has no wheel for a target, and the wheels that it does have.

    ``pythons`` are those of its wheels for the target's platform, oldest first.
    """

    requirement: Requirement
    pythons: tuple[str, ...]
    elsewhere: bool

    def sentence(self, target: Target) -> str:
        """Say what is missing and what is there."""
        where = target.machines
        what = f"`{self.requirement}` has no wheel for {where} and no source distribution"
        if self.pythons:
            return f"{what}, it has wheels for Python {shown_pythons(self.pythons)}"
        if self.elsewhere:
            return f"{what}, its wheels are for other platforms"
        return what


def requirements_without_wheels(reason: str) -> tuple[Requirement, ...]:
    """Return the packages that uv's explanation says no wheel fits, as requirements."""
    found: dict[str, Requirement] = {}
    for match in _NO_WHEELS.finditer(reason):
        try:
            requirement = Requirement(match["name"] or match["requirement"])
        except InvalidRequirement:
            continue
        found.setdefault(canonicalize_name(requirement.name), requirement)
    return tuple(found.values())


def missing_wheel(
    requirement: Requirement, wheels: Iterable[WheelFile], target: Target
) -> MissingWheel:
    """Describe a package by the wheels that its index lists."""
    allowed = [w for w in wheels if requirement.specifier.contains(w.version, prereleases=True)]
    here = [w for w in allowed if target.platform.machine in w.filename]
    return MissingWheel(
        requirement=requirement, pythons=pythons(here), elsewhere=bool(allowed) and not here
    )


def shown_pythons(versions: tuple[str, ...]) -> str:
    """Return ``3.9 to 3.11``, or ``3.10 and 3.12`` where the Python between them is missing."""
    minors = [int(version.partition(".")[2]) for version in versions]
    if len(versions) == 1:
        return versions[0]
    if minors == list(range(minors[0], minors[-1] + 1)):
        return f"{versions[0]} to {versions[-1]}"
    return f"{', '.join(versions[:-1])} and {versions[-1]}"


def compiled_instead(pylock: str, lock: TargetLock, target: Target) -> Iterator[Finding]:
    """EB105: a package with compiled wheels, but for other Pythons, so that its sdist is taken.

    Built on the user's machine such a package may lack its compiled part and still install.
    """
    compiled = {p.name for p in lock.packages if not any(a.is_wheel for a in p.artifacts)}
    if not compiled:
        return
    for package in parse_pylock(pylock, path="uv export").packages:
        names = [_filename(wheel.url, wheel.name) for wheel in package.wheels or ()]
        here = [name for name in names if target.platform.machine in name]
        if package.name not in compiled or not here:
            continue
        too_new = bool(only_newer_glibc(here, target))
        wanted = f"glibc {target.glibc}" if too_new else f"Python {target.python}"
        yield Finding(
            code="EB105",
            severity=Severity.WARNING,
            subject=f"{package.name} {package.version}",
            message=(
                f"{package.name} {package.version} has no wheel for {wanted},"
                " so its source distribution is compiled on install"
            ),
            evidence=tuple(here[:3]),
            hint=None if too_new else _python_hint(here),
        )


def _python_hint(filenames: list[str]) -> str | None:
    versions = pythons_named(filenames)
    return f"it has wheels for Python {shown_pythons(versions)}" if versions else None


def _filename(url: str | None, name: str | None) -> str:
    return name or (url or "").rpartition("/")[2].replace("%2B", "+")
