"""Turning facts about index pages into the catalog's page files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog_text import DATE
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from envbuild.catalog.order import build_number, release_key

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINUX = re.compile(r"-(\w*linux\w*_(x86_64|aarch64)|any)(\.\w*linux\w*)*\.whl")


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """One wheel of one page, as the facts give it."""

    kind: str
    key: str
    filename: str
    origin: str
    sha256: str | None = None
    size: int | None = None
    requires: tuple[str, ...] | None = None
    python: str | None = None
    metadata: str | None = None
    from_page: bool = False

    @property
    def project(self) -> str:
        """Normalised name of the distribution."""
        return canonicalize_name(self.filename.partition("-")[0])

    @property
    def version(self) -> str:
        """Normalised version of the file name."""
        return str(parse_wheel_filename(self.filename)[1])


def is_wanted(filename: str) -> bool:
    """Whether a wheel is a release for Linux on x86_64 or aarch64, or for any platform.

    Names that installers refuse (`torch-2.2.0-cu121-...`) are left out.
    """
    try:
        version = parse_wheel_filename(filename)[1]
    except InvalidWheelFilename:
        return False
    return bool(_LINUX.search(filename)) and not version.is_devrelease


def merge(wheels: Iterable[Wheel]) -> list[Wheel]:
    """Return one wheel for each page and file name; contradictory hashes cancel out.

    A hash that a copy of the index page itself gives wins over what locks say.
    """
    groups: dict[tuple[str, str, str], list[Wheel]] = {}
    for wheel in wheels:
        groups.setdefault((wheel.kind, wheel.key, wheel.filename), []).append(wheel)
    return [_merged(group) for group in groups.values()]


def _merged(group: list[Wheel]) -> Wheel:
    hashes = {wheel.sha256 for wheel in group if wheel.sha256}
    from_page = {wheel.sha256 for wheel in group if wheel.sha256 and wheel.from_page}
    known = hashes if len(hashes) == 1 else from_page
    best = min(group, key=lambda w: (not w.from_page, w.requires is None, w.origin))
    doubt = "" if len(hashes) < 2 or len(known) == 1 else f"; {len(hashes)} different hashes seen"  # noqa: PLR2004
    return Wheel(
        kind=best.kind,
        key=best.key,
        filename=best.filename,
        origin=best.origin + doubt,
        sha256=next(iter(known)) if len(known) == 1 else None,
        size=next((wheel.size for wheel in group if wheel.size), None),
        requires=next((w.requires for w in (best, *group) if w.requires is not None), None),
        python=next((wheel.python for wheel in group if wheel.python), None),
        metadata=next((wheel.metadata for wheel in group if wheel.metadata), None),
        from_page=best.from_page,
    )


def page_data(wheels: Iterable[Wheel]) -> dict[str, Any]:
    """Return the data file of one page: newest release first, then by file name."""
    names = sorted(wheels, key=lambda wheel: (wheel.project, wheel.filename))
    origins = sorted({wheel.origin for wheel in names})
    requires = sorted({wheel.requires for wheel in names if wheel.requires is not None})
    projects: dict[str, list[Wheel]] = {}
    for wheel in names:
        projects.setdefault(wheel.project, []).append(wheel)
    return {
        "date": DATE,
        "origins": origins,
        "requires": [list(lines) for lines in requires],
        "projects": {
            project: [_row(w, origins, requires) for w in newest_first(found)]
            for project, found in sorted(projects.items())
        },
    }


def newest_first(wheels: Iterable[Wheel]) -> list[Wheel]:
    """Sort by release and build number downwards; equal ones keep their order."""
    return sorted(
        wheels, key=lambda w: (release_key(w.version), build_number(w.filename)), reverse=True
    )


def _row(wheel: Wheel, origins: list[str], requires: list[tuple[str, ...]]) -> dict[str, Any]:
    in_name = wheel.filename.split("-", 2)[1]
    row = {
        "file": wheel.filename,
        "origin": origins.index(wheel.origin),
        "version": None if wheel.version == in_name else wheel.version,
        "sha256": wheel.sha256,
        "size": wheel.size,
        "requires": None if wheel.requires is None else requires.index(wheel.requires),
        "python": wheel.python,
        "metadata": wheel.metadata,
    }
    return {key: value for key, value in row.items() if value is not None}
