"""Find what is broken in an environment that an install was broken off in, or a hand changed.

uv takes a distribution for installed as soon as its metadata folder is there, and writes its
files in any order. So what is there is compared with each RECORD before uv is asked.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.world.ownership import read_ownership
from envbuild.world.venv import BASE_PTH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.installed import Distribution, Installed

_WHOLE = ("METADATA", "RECORD", "WHEEL")
_OF_UV = ("_virtualenv.py", "_virtualenv.pth", "distutils-precedence.pth", BASE_PTH)


def remove_halves(site: Path) -> None:
    """Remove metadata folders that lack a part: what they stand for is installed again."""
    for info in site.glob("*.dist-info"):
        if info.is_dir() and not all((info / name).is_file() for name in _WHOLE):
            shutil.rmtree(info, ignore_errors=True)


def broken_names(installed: Installed) -> tuple[str, ...]:
    """Return the distributions of which files are gone or cut short."""
    ownership = read_ownership(installed, objects=())
    labels = {label for label, _ in (*ownership.missing, *ownership.resized)}
    for path in ownership.shared:
        if path.winner is None and not path.identical:
            labels.update(label for label, _ in path.owners)
    own = set(installed.own_sites or installed.sites)
    return tuple(
        sorted(
            {one.name for one in installed.distributions if one.label in labels and one.site in own}
        )
    )


def remove_strays(installed: Installed) -> int:
    """Remove files that no RECORD names, and return how many there were.

    Only for an environment in which an install was broken off: what it left behind would stay.
    """
    count = 0
    for site in installed.own_sites:
        recorded = set(_recorded(installed, site))
        for path in list(_files(Path(site))):
            if str(path) not in recorded and path.name not in _OF_UV:
                path.unlink(missing_ok=True)
                count += 1
        _remove_empty(Path(site))
    return count


def _recorded(installed: Installed, site: str) -> Iterator[str]:
    for one in installed.distributions:
        if one.site == site:
            yield from _paths(one)


def _paths(one: Distribution) -> Iterator[str]:
    for entry in one.record or ():
        yield os.path.normpath(os.path.join(one.site, entry.path))  # noqa: PTH118


def _files(site: Path) -> Iterator[Path]:
    for top, folders, names in os.walk(site):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(top, name) for name in names if not name.endswith(".pyc"))


def _remove_empty(site: Path) -> None:
    for top, folders, names in os.walk(site, topdown=False):
        left = [one for one in (*folders, *names) if Path(top, one).exists()]
        if Path(top) != site and set(left) <= {"__pycache__"}:
            shutil.rmtree(top, ignore_errors=True)
