"""Index pages from the live hosts where they are reached, else from the embedded catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.indexpages import PYPI
from envbuild.core.redact import host_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from envbuild.model.lock import Artifact
    from envbuild.model.wheel import IndexPage, WheelFile
    from envbuild.ports import WheelSource


class AutoSource:
    """Ask each host once whether it is there; implements WheelSource.

    A host that is reached and answers with an error stays live: an index that refuses must be
    seen, not papered over with old pages. What the catalog knows of PyPI is not
    asked for: its pages are large, and a build there says which CUDA it is for only to the
    facts, which are the catalog's. A mirror of it is asked, for it may hold less.
    """

    def __init__(
        self,
        live: WheelSource,
        catalog: WheelSource,
        *,
        reaches: Callable[[str], bool],
        catalog_date: str,
    ) -> None:
        self._live = live
        self._catalog = catalog
        self._reaches = reaches
        self._date = catalog_date
        self._reached: dict[str, bool] = {}
        self._page_hosts: dict[str, bool] = {}

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        """Return the wheels of a project on a page, live if its host is reached."""
        if page == PYPI:
            known = self._catalog.wheels(page, project)
            if known:
                return known
        source = self._live if self._is_reached(page.url) else self._catalog
        self._page_hosts[host_of(page.url)] = source is self._live
        return source.wheels(page, project)

    def requires_dist(self, wheel: WheelFile) -> tuple[str, ...] | None:
        """Return the wheel's requirements; what the catalog knows where the host is silent."""
        if wheel.requires_dist is not None:
            return wheel.requires_dist
        found = self._live.requires_dist(wheel) if self._is_reached(wheel.url) else None
        return found if found is not None else self._catalog.requires_dist(wheel)

    def sha256(self, wheel: WheelFile) -> str | None:
        """Return the wheel's hash; what the catalog knows where the host is silent."""
        if wheel.sha256 is not None:
            return wheel.sha256
        found = self._live.sha256(wheel) if self._is_reached(wheel.url) else None
        return found if found is not None else self._catalog.sha256(wheel)

    def sdist(self, page: IndexPage, project: str, version: str) -> Artifact | None:
        """Return the sdist of a release; the catalog knows none."""
        if self._is_reached(page.url):
            return self._live.sdist(page, project, version)
        return self._catalog.sdist(page, project, version)

    @property
    def said(self) -> str:
        """Where the pages came from, as one line."""
        live = sorted(host for host, is_live in self._page_hosts.items() if is_live)
        missed = sorted(host for host, is_live in self._page_hosts.items() if not is_live)
        parts = []
        if missed:
            parts.append(f"catalog of {self._date} ({', '.join(missed)} not reached)")
        if live:
            parts.append(f"live: {', '.join(live)}")
        return f"index pages: {', '.join(parts) or 'none were asked for'}"

    def _is_reached(self, url: str) -> bool:
        host = host_of(url)
        if host not in self._reached:
            self._reached[host] = self._reaches(url)
        return self._reached[host]
