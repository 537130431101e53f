"""What the installed distributions ask of one another, on their own Python and platform."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from envbuild.core.treebuild import satisfies

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    from packaging.markers import Marker

    from envbuild.model.installed import Distribution, Installed

    Asked: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
    Environments: TypeAlias = tuple[Mapping[str, str], ...]

_PYTHON = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_TAG = re.compile(r"cp(3)(\d{1,2})-cp3\d{1,2}t?-")
_QUOTED = re.compile(r"""['"]([^'"]+)['"]""")
_NEWEST_PATCH = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """One requirement that holds here, and the distribution that has it."""

    by: Distribution
    requirement: Requirement

    @property
    def name(self) -> str:
        """The normalised name of what is required."""
        return canonicalize_name(self.requirement.name)

    @property
    def text(self) -> str:
        """The requirement without its marker."""
        extras = f"[{','.join(sorted(self.requirement.extras))}]" if self.requirement.extras else ""
        return f"{self.requirement.name}{extras}{self.requirement.specifier}"


def visible(installed: Installed) -> tuple[Distribution, ...]:
    """Return the distributions that are imported: the first of each name."""
    found: dict[str, Distribution] = {}
    for one in installed.distributions:
        found.setdefault(one.name, one)
    return tuple(found.values())


def python_of(installed: Installed) -> str:
    """Return the interpreter's version, else the one most wheels are made for, else nothing."""
    if _PYTHON.match(installed.python):
        return installed.python
    tags = (match for one in installed.distributions for match in map(_TAG.match, one.tags))
    counted = Counter(f"{match[1]}.{match[2]}" for match in tags if match)
    return counted.most_common(1)[0][0] if counted else ""


def marker_environments(installed: Installed) -> Environments:
    """Return the PEP 508 environments that the interpreter may have; empty if it is not known.

    There are two where the patch release is not known: what holds must hold in both.
    """
    return _environments(python_of(installed), installed.machine)


def _environments(python: str, machine: str) -> Environments:
    match = _PYTHON.match(python)
    if match is None:
        return ()
    patches = (match[3],) if match[3] else ("0", str(_NEWEST_PATCH))
    minor = f"{match[1]}.{match[2]}"
    return tuple(_environment(minor, patch, machine) for patch in patches)


def _environment(minor: str, patch: str, machine: str) -> dict[str, str]:
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{minor}.{patch}",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{minor}.{patch}",
        "platform_python_implementation": "CPython",
        "python_version": minor,
        "sys_platform": "linux",
        "extra": "",
    }


def holds(marker: Marker | None, environments: Environments, extras: Iterable[str] = ()) -> bool:
    """Whether a marker holds in every environment, under no extra or one of those given."""
    if marker is None:
        return True
    names = ("", *extras)
    return bool(environments) and all(
        any(_evaluates(marker, {**environment, "extra": name}) for name in names)
        for environment in environments
    )


def _evaluates(marker: Marker, environment: Mapping[str, str]) -> bool:
    try:
        return marker.evaluate(dict(environment))
    except (ValueError, KeyError):  # no order, no such name, or a number without end
        return False


def needs_of(installed: Installed) -> tuple[Need, ...]:
    """Return every requirement of a distribution that is imported and that holds here.

    A requirement of an extra holds only where another requirement that holds asks for it.
    """
    distributions = visible(installed)
    asked = tuple((one.name, one.requires) for one in distributions)
    by_name = {one.name: one for one in distributions}
    found = _needs(python_of(installed), installed.machine, asked)
    return tuple(Need(by=by_name[name], requirement=requirement) for name, requirement in found)


@lru_cache(maxsize=4)
def _needs(python: str, machine: str, asked: Asked) -> tuple[tuple[str, Requirement], ...]:
    """Return the requirements that hold, each with the name of who has it.

    Several rules ask for them, and reading them is most of what these rules take.
    """
    environments = _environments(python, machine)
    texts = dict(asked)
    found = {name: list(_plain(requires, environments)) for name, requires in asked}
    todo = [one for requirements in found.values() for one in requirements if one.extras]
    seen: set[tuple[str, str]] = set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        for extra in map(canonicalize_name, requirement.extras):
            if name in texts and (name, extra) not in seen:
                seen.add((name, extra))
                more = list(_of_extra(texts[name], extra, environments))
                found[name] += more
                todo += [one for one in more if one.extras]
    return tuple((name, one) for name, requirements in found.items() for one in requirements)


def _plain(requires: Iterable[str], environments: Environments) -> Iterator[Requirement]:
    for text in requires:
        if "extra" in text.partition(";")[2]:
            continue
        requirement = parsed(text)
        if requirement is not None and holds(requirement.marker, environments):
            yield requirement


def _of_extra(
    requires: Iterable[str], extra: str, environments: Environments
) -> Iterator[Requirement]:
    for text in requires:
        if not _names_extra(text, extra):
            continue
        requirement = parsed(text)
        if requirement is not None and holds(requirement.marker, environments, (extra,)):
            yield requirement


def _names_extra(text: str, extra: str) -> bool:
    """Whether a requirement may be of an extra, told without reading its marker."""
    marker = text.partition(";")[2]
    return "extra" in marker and any(
        canonicalize_name(word) == extra for word in _QUOTED.findall(marker)
    )


def parsed(text: str) -> Requirement | None:
    """Read a requirement; None where it is none."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def is_met(need: Need, versions: Iterable[str]) -> bool:
    """Whether one of the versions a distribution goes by is what is required.

    What is no version of PEP 440 and what is taken from an address cannot be judged.
    """
    specifier = need.requirement.specifier
    if not specifier or need.requirement.url is not None:
        return True
    try:
        return any(satisfies(version, specifier) for version in versions)
    except InvalidVersion:
        return True
