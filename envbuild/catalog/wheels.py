"""Wheels of the known index pages, as the catalog's data describes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.catalog.order import build_number, release_key
from envbuild.model.wheel import PageKind, WheelFile

if TYPE_CHECKING:
    from envbuild.catalog.layout import PageData, WheelRow
    from envbuild.catalog.storage import Storage
    from envbuild.model.wheel import IndexPage

PUBLIC = {
    PageKind.PYTORCH: "https://download.pytorch.org/whl",
    PageKind.PYG: "https://data.pyg.org/whl",
    PageKind.FLASH_ATTN: "https://github.com/Dao-AILab/flash-attention/releases",
}
ROOT = "root"
_NAME = re.compile(r"[-_.]+")


def canonical(project: str) -> str:
    """Return the normalised name of a project (PEP 503)."""
    return _NAME.sub("-", project).lower()


def base_of(page: IndexPage) -> str:
    """Return the address that a page's wheels lie below: the public one, or a mirror's."""
    url, public = page.url.rstrip("/"), PUBLIC.get(page.kind, "")
    match page.kind:
        case PageKind.PYTORCH:
            return url.removesuffix(f"/{page.key}") if url.endswith(f"/{page.key}") else public
        case PageKind.PYG:
            head, found, _ = url.rpartition("/torch-")
            return head if found else public
        case PageKind.FLASH_ATTN:
            head, found, _ = url.partition("/expanded_assets/")
            return head if found else public
        case PageKind.PYPI | PageKind.BASE:
            return public


def folder_of(kind: PageKind, key: str) -> str:
    """Return the folder of a page's wheels below the base address."""
    match kind:
        case PageKind.PYTORCH:
            return "" if key == ROOT else f"/{key}"
        case PageKind.PYG:
            return f"/torch-{key}"
        case PageKind.FLASH_ATTN:
            return f"/download/v{key}"
        case PageKind.PYPI | PageKind.BASE:
            return ""


def wheel_url(page: IndexPage, key: str, filename: str) -> str:
    """Return where a wheel of a page lies; empty for PyPI, whose addresses follow no rule.

    ``key`` names the folder, which differs from the page's for alias and root files.
    """
    if page.kind is PageKind.PYPI:
        return ""
    path = f"{folder_of(page.kind, key)}/{filename}".replace("+", "%2B")
    return base_of(page) + path


class WheelTable:
    """The wheels of every page that the catalog knows."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._wheels: dict[tuple[IndexPage, str], tuple[WheelFile, ...]] = {}

    def pages(self, kind: PageKind) -> tuple[str, ...]:
        """Return the keys of the pages of one kind, newest first."""
        if kind is PageKind.PYPI:
            return ("",)
        keys = self._storage.page_list()["pages"][kind.value]
        return tuple(key for key in keys if key != ROOT)

    def projects(self, page: IndexPage) -> tuple[str, ...]:
        """Return the projects that a page lists, by name."""
        if page.kind is PageKind.PYPI:
            return tuple(self._storage.page_list()["pages"][page.kind.value])
        names = {name for key in self._keys(page, "") for name in self._page(page, key)["projects"]}
        return tuple(sorted(names))

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        """Return the wheels of a project on a page, newest release first, then by file name."""
        name = canonical(project)
        if (page, name) not in self._wheels:
            parts = [self._part(page, key, name) for key in self._keys(page, name)]
            filled = [part for part in parts if part]
            merged = filled[0] if len(filled) == 1 else _merged(filled)
            self._wheels[page, name] = tuple(merged)
        return self._wheels[page, name]

    def find(self, wheel: WheelFile) -> WheelFile | None:
        """Return what the catalog knows of a wheel of the same page and file name."""
        found = (w for w in self.wheels(wheel.page, wheel.project) if w.filename == wheel.filename)
        return next(found, None)

    def _keys(self, page: IndexPage, project: str) -> tuple[str, ...]:
        """Return the data files that hold a page: its own, PyTorch's root, an alias's goal."""
        known = self._storage.page_list()
        key = project if page.kind is PageKind.PYPI else page.key
        if page.kind is PageKind.PYG:
            key = known["aliases"].get(key, key)
        if key not in known["pages"][page.kind.value]:
            return ()
        return (key, ROOT) if page.kind is PageKind.PYTORCH and key != ROOT else (key,)

    def _page(self, page: IndexPage, key: str) -> PageData:
        return self._storage.page(page.kind.value, key)

    def _part(self, page: IndexPage, key: str, project: str) -> list[WheelFile]:
        data = self._page(page, key)
        rows = data["projects"].get(project, [])
        return [_wheel(row, data, page=page, key=key, project=project) for row in rows]


def _merged(parts: list[list[WheelFile]]) -> list[WheelFile]:
    """Return the files of several folders as one page: one entry a name, newest first."""
    by_name = {wheel.filename: wheel for part in reversed(parts) for wheel in part}
    names = sorted(by_name.values(), key=lambda wheel: wheel.filename)
    return sorted(
        names,
        key=lambda wheel: (release_key(wheel.version), build_number(wheel.filename)),
        reverse=True,
    )


def _wheel(row: WheelRow, data: PageData, *, page: IndexPage, key: str, project: str) -> WheelFile:
    filename, requires = row["file"], row.get("requires")
    return WheelFile(
        project=project,
        version=row.get("version") or filename.split("-", 2)[1],
        filename=filename,
        url=wheel_url(page, key, filename),
        page=page,
        sha256=row.get("sha256"),
        size=row.get("size"),
        requires_python=row.get("python"),
        requires_dist=None if requires is None else tuple(data["requires"][requires]),
        metadata_sha256=row.get("metadata"),
        origin=f"{data['origins'][row['origin']]}; {data['date']}",
    )
