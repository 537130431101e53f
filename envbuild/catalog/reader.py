"""The embedded catalog: index pages and facts as they were on one day, without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.catalog.facts import FactTable
from envbuild.catalog.storage import Storage
from envbuild.catalog.wheels import WheelTable
from envbuild.errors import WorldError

if TYPE_CHECKING:
    from pathlib import Path

    from envbuild.model.lock import Artifact
    from envbuild.model.wheel import IndexPage, PageKind, WheelFile


class Catalog(FactTable):
    """A WheelSource and Facts over the files that come with envbuild.

    Nothing is read before it is asked for. Wheels get the address of the page they are asked
    of, so that a mirror's page gives a mirror's addresses.
    """

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._list = storage
        self._table = WheelTable(storage)

    @classmethod
    def load(cls, folder: Path | None = None) -> Catalog:
        """Return the catalog that comes with envbuild, or one in another folder."""
        return cls(Storage() if folder is None else Storage(folder))

    @property
    def date(self) -> str:
        """The day the facts were collected (ISO 8601)."""
        return self._list.page_list()["date"]

    def pages(self, kind: PageKind) -> tuple[str, ...]:
        """Return the keys of the known pages of one kind, newest first."""
        return self._table.pages(kind)

    def projects(self, page: IndexPage) -> tuple[str, ...]:
        """Return the projects that a page lists."""
        return self._table.projects(page)

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        """Return the wheels of a project on a page, newest release first."""
        return self._table.wheels(page, project)

    def requires_dist(self, wheel: WheelFile) -> tuple[str, ...] | None:
        """Return the wheel's requirements, its own or the catalog's for that file name."""
        if wheel.requires_dist is not None:
            return wheel.requires_dist
        known = self._table.find(wheel)
        return known.requires_dist if known else None

    def sha256(self, wheel: WheelFile) -> str | None:
        """Return the wheel's hash, its own or the catalog's for that file name."""
        if wheel.sha256 is not None:
            return wheel.sha256
        known = self._table.find(wheel)
        return known.sha256 if known else None

    def sdist(self, page: IndexPage, project: str, version: str) -> Artifact | None:
        """Raise WorldError: no sdists are listed here."""
        raise WorldError(
            f"the catalog does not know the sdist of {project} {version} on {page.name}",
            hint="lock with `--source auto` where the index is reached",
        )
