"""Whether a wheel fits a target, judged by its file name alone, and which of several is best."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from packaging.tags import Tag

    from envbuild.model.target import Target
    from envbuild.model.wheel import WheelFile

LONGEST_NAME = 255
"""Characters of a file's name; the tags of a longer one could multiply without end."""

_TAGS = 3

Rank: TypeAlias = "tuple[int, int, tuple[int, str]]"

_PLATFORM = re.compile(
    r"(?:linux|manylinux(?:(?P<old>1|2010|2014)|_(?P<glibc>\d+_\d+)))_(?P<machine>x86_64|aarch64)"
)
_OLD_GLIBC = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
_INTERPRETER = re.compile(r"(?P<kind>cp|py)(?P<major>\d)(?P<minor>\d*)")


@cache
def _parsed(filename: str) -> tuple[tuple[int, str], frozenset[Tag]] | None:
    if len(filename) > LONGEST_NAME:
        return None
    try:
        _, _, build, tags = parse_wheel_filename(filename)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    return (build or (0, "")), tags


@cache
def _tag_rank(interpreter: str, abi: str, python: str) -> tuple[int, int] | None:
    match = _INTERPRETER.fullmatch(interpreter)
    major, minor = (int(part) for part in python.split("."))
    if match is None or int(match["major"]) != major:
        return None
    named = int(match["minor"]) if match["minor"] else None
    if match["kind"] == "cp" and abi in (interpreter, "none"):
        return (3, minor) if named == minor else None
    if abi not in ("abi3", "none") or (named is not None and named > minor):
        return None
    return (2 if abi == "abi3" else 1), named or 0


@cache
def _platform_fits(platform: str, machine: str, glibc: str | None) -> bool:
    match = _PLATFORM.fullmatch(platform)
    if platform == "any" or match is None or match["machine"] != machine:
        return platform == "any"
    needed = _needed(match)
    oldest = None if glibc is None else glibc_numbers(glibc)
    return needed is None or oldest is None or needed <= oldest


def glibc_numbers(text: str) -> tuple[int, int] | None:
    """Return ``2.35`` or ``2_35`` as numbers, for comparison; None where it is neither."""
    match = re.fullmatch(r"(\d{1,3})[._](\d{1,3})", text)
    return None if match is None else (int(match[1]), int(match[2]))


def wants_glibc(filename: str, machine: str) -> tuple[int, int] | None:
    """Return the oldest glibc that a wheel is for on a machine; None where its name says none."""
    platforms = filename.lower().removesuffix(".whl").rpartition("-")[2].split(".")
    matches = (_PLATFORM.fullmatch(one) for one in platforms)
    found = [_needed(match) for match in matches if match and match["machine"] == machine]
    return min((one for one in found if one is not None), default=None) if all(found) else None


def _needed(match: re.Match[str]) -> tuple[int, int] | None:
    return glibc_numbers(match["glibc"] or "") or _OLD_GLIBC.get(match["old"] or "")


def only_newer_glibc(filenames: Iterable[str], target: Target) -> tuple[str, ...]:
    """Return the wheels that fit but for the target's glibc; none where one of all fits."""
    names = tuple(filenames)
    if any(fits(name, target) for name in names):
        return ()
    anywhere = replace(target, glibc=None)
    return tuple(name for name in names if fits(name, anywhere))


def rank(filename: str, target: Target) -> Rank | None:
    """Return how well a wheel fits, for comparison; None when it does not fit.

    An interpreter's own wheel beats a stable-ABI one, which beats a pure one; among equals the
    highest build tag wins, as in pip and uv.
    """
    return _rank(filename, target.python, target.platform.machine, target.glibc)


@cache
def _rank(filename: str, python: str, machine: str, glibc: str | None) -> Rank | None:
    """Judge by the tags as text: few wheels of a release fit, and to parse a name takes long."""
    tags = filename.lower().removesuffix(".whl").rsplit("-", 3)[1:]
    if len(tags) != _TAGS or not any(
        _platform_fits(platform, machine, glibc) for platform in tags[2].split(".")
    ):
        return None
    found = (_tag_rank(*pair, python) for pair in product(tags[0].split("."), tags[1].split(".")))
    best_tag = max((one for one in found if one is not None), default=None)
    parsed = None if best_tag is None else _parsed(filename)
    return None if best_tag is None or parsed is None else (*best_tag, parsed[0])


def fits(filename: str, target: Target) -> bool:
    """Whether a wheel of this name can be installed on the target."""
    return rank(filename, target) is not None


def best(wheels: Iterable[WheelFile], target: Target) -> WheelFile | None:
    """Return the wheel that installers would take for the target, or None if none fits.

    Yanked files and those whose Requires-Python excludes the target do not count.
    """
    ranked = [
        (found, wheel.sha256 is not None, wheel.filename, wheel)
        for wheel in wheels
        if not wheel.yanked
        and (found := rank(wheel.filename, target)) is not None
        and python_allowed(wheel.requires_python, target)
    ]
    return max(ranked, key=lambda entry: entry[:3])[3] if ranked else None


def best_by_version(wheels: Iterable[WheelFile], target: Target) -> tuple[WheelFile, ...]:
    """Return the best wheel of each version that has one for the target, newest version first."""
    groups: dict[str, list[WheelFile]] = {}
    for wheel in wheels:
        groups.setdefault(wheel.version, []).append(wheel)
    found = (best(group, target) for group in groups.values())
    return tuple(
        sorted((w for w in found if w is not None), key=lambda w: Version(w.version), reverse=True)
    )


def python_allowed(requires_python: str | None, target: Target) -> bool:
    """Whether Requires-Python admits the target's Python; unreadable text admits everything."""
    if not requires_python:
        return True
    try:
        return SpecifierSet(requires_python).contains(f"{target.python}.0", prereleases=True)
    except InvalidSpecifier:
        return True


def pythons(wheels: Iterable[WheelFile]) -> tuple[str, ...]:
    """Return the CPython versions that wheels are named for (``3.9``), oldest first."""
    return pythons_named(wheel.filename for wheel in wheels)


def pythons_named(filenames: Iterable[str]) -> tuple[str, ...]:
    """Return the CPython versions that file names of wheels hold, oldest first."""
    found: set[tuple[int, int]] = set()
    for filename in filenames:
        parsed = _parsed(filename)
        for tag in parsed[1] if parsed else ():
            match = _INTERPRETER.fullmatch(tag.interpreter)
            if match and match["kind"] == "cp" and match["minor"] and tag.abi == tag.interpreter:
                found.add((int(match["major"]), int(match["minor"])))
    return tuple(f"{major}.{minor}" for major, minor in sorted(found))


def public_of(version: str) -> str:
    """Return a version without its local part."""
    return version.partition("+")[0]


def local_of(version: str) -> str:
    """Return the local part of a version (``cu128``), or an empty text."""
    return version.partition("+")[2]
