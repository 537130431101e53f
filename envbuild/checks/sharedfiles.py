"""Two distributions that own the same paths: which paths, and whose bytes lie there."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from envbuild.model.installed import Distribution, Installed, Ownership, SharedPath

_SHARED_OBJECT = re.compile(r"\.so(?:\.\d+)*$")
_OF_SYSTEM = ("/usr/lib/", "/usr/lib64/", "/nix/store/")
_OF_USERS = frozenset({"pip", "uv", "poetry"})
# Scripts of a build or of tests that got into a wheel beside the package.
_SCRIPTS = frozenset(
    {"setup.py", "build_backend.py", "hatch_build.py", "versioneer.py", "conftest.py"}
    | {"noxfile.py"}
)
_APART = frozenset(
    {"test", "tests", "testing", "doc", "docs", "example", "examples", "benchmark", "benchmarks"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """Two distributions of different names and the paths that both own with other content."""

    a: Distribution
    b: Distribution
    paths: tuple[SharedPath, ...]

    @property
    def code(self) -> tuple[SharedPath, ...]:
        """The paths that something is loaded or imported from."""
        return tuple(one for one in self.paths if is_code(one.path))

    def winner(self) -> Distribution | None:
        """Return the one whose bytes lie at every path with code, None where that is neither."""
        labels = {one.winner for one in self.code or self.paths}
        return next((one for one in (self.a, self.b) if labels == {one.label}), None)

    def other(self, one: Distribution) -> Distribution:
        """Return the other of the two."""
        return self.b if one.name == self.a.name else self.a


def is_shared_object(path: str) -> bool:
    """Whether a path is named like a shared object (``libnccl.so.2``)."""
    return _SHARED_OBJECT.search(path) is not None


def is_code(path: str) -> bool:
    """Whether a path is a module or a shared object that something loads.

    A package marker (``__init__.py``) at the top is shared by namespace packages, and folders of
    tests and documents beside the packages, or scripts of a build, are nobody's import.
    """
    if is_shared_object(path):
        return True
    if not path.endswith(".py") or path.startswith("/"):
        return False
    parts = path.split("/")
    is_marker = parts[-1] == "__init__.py" and len(parts) <= 3  # noqa: PLR2004
    return not is_marker and path not in _SCRIPTS and not _APART & set(parts[:-1])


def overlaps(installed: Installed, ownership: Ownership) -> tuple[Overlap, ...]:
    """Return every pair of distributions that own a path with different content."""
    by_label = labelled(installed)
    found: dict[tuple[str, str], list[SharedPath]] = defaultdict(list)
    for shared in ownership.shared:
        if not shared.identical:
            for (a, left), (b, right) in combinations(shared.owners, 2):
                if left.sha256 != right.sha256 or left.sha256 is None:
                    found[a, b].append(shared)
    return tuple(
        Overlap(a=by_label[a], b=by_label[b], paths=tuple(paths))
        for (a, b), paths in found.items()
        if a in by_label and b in by_label and by_label[a].name != by_label[b].name
    )


def labelled(installed: Installed) -> Mapping[str, Distribution]:
    """Return the distributions by their label, the first that is imported of each."""
    found: dict[str, Distribution] = {}
    for one in installed.distributions:
        found.setdefault(one.label, one)
    return found


def between(found: Iterable[Overlap], a: str, b: str) -> Overlap | None:
    """Return the overlap of two distributions by name."""
    return next((one for one in found if {one.a.name, one.b.name} == {a, b}), None)


def absolute(one: Distribution, path: str) -> str:
    """Return the absolute path of a path of a RECORD."""
    return posixpath.join(one.site, path)


def first_of(paths: Sequence[str]) -> str:
    """Return the first of some paths, and how many more there are."""
    return f"{paths[0]} (and {len(paths) - 1} more)" if len(paths) > 1 else paths[0]


def is_packaged(one: Distribution) -> bool:
    """Whether the operating system's packages brought a distribution.

    They strip shared objects and leave files out after RECORD is written, so that it says little.
    """
    return one.site.startswith(_OF_SYSTEM) and one.installer not in _OF_USERS


def was_asked_for(one: Distribution) -> bool:
    """Whether somebody named a distribution on a command line.

    NOTE: uv marks every package it installs as requested. Libraries of NVIDIA come in as
    requirements, so that uv's mark says nothing about them.
    """
    return one.requested and not (one.installer == "uv" and one.name.startswith("nvidia-"))
