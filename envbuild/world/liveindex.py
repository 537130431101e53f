"""Index pages and wheels from the live hosts."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit, urlunsplit

from packaging.utils import canonicalize_name

from envbuild.core.redact import lend_credentials, redact_url
from envbuild.core.simplepage import parse_page, parse_sdist
from envbuild.core.wheelmetadata import parse_metadata
from envbuild.errors import WorldError
from envbuild.model.wheel import PageKind
from envbuild.world.httperrors import UnreachedError
from envbuild.world.pagecache import FOREVER, CachedPage, fresh_seconds
from envbuild.world.remotezip import open_remote

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from envbuild.model.lock import Artifact
    from envbuild.model.wheel import IndexPage, WheelFile
    from envbuild.world.http import HttpClient
    from envbuild.world.httpanswer import Answer
    from envbuild.world.pagecache import PageCache

    Progress: TypeAlias = Callable[[str, int, int | None], None]

_Read = TypeVar("_Read")
_HTML = "text/html"
_SIMPLE = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)


def silent(_what: str, _done: int, _total: int | None) -> None:
    """Show no progress."""


class LiveIndex:
    """The live hosts, each page asked for once; implements WheelSource.

    ``progress`` gets the name of a wheel that is read to its end, the bytes done and in all.
    """

    def __init__(self, client: HttpClient, cache: PageCache, progress: Progress = silent) -> None:
        self._client = client
        self._cache = cache
        self._progress = progress
        self._pages: dict[tuple[str, str | None], tuple[WheelFile, ...] | None] = {}
        self._requires: dict[str, tuple[str, ...] | None] = {}
        self._sdists: dict[tuple[str, str], Artifact | None] = {}

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        """Return the wheels of a project on a page; empty when the page or project is absent.

        A mirror of PyTorch's index that is one flat folder serves its wheels as a flat page:
        their ``page`` says so.
        """
        name = canonicalize_name(project)
        if page.flat:
            return self._of_flat(page, name)
        found = self._read(page, f"{page.url.rstrip('/')}/{name}/", project=name)
        if found is None and page.kind is PageKind.PYTORCH:
            return self._of_flat(replace(page, flat=True, url=f"{page.url.rstrip('/')}/"), name)
        return found or ()

    def requires_dist(self, wheel: WheelFile) -> tuple[str, ...] | None:
        """Return the wheel's requirements, reading its METADATA alone; None if unknown."""
        if wheel.requires_dist is not None:
            return wheel.requires_dist
        if wheel.url not in self._requires:
            try:
                data = self._metadata(wheel)
            except UnreachedError:
                data = None
            self._requires[wheel.url] = (
                None
                if data is None
                else parse_metadata(data, origin=f"`{wheel.filename}`").requires_dist
            )
        return self._requires[wheel.url]

    def sha256(self, wheel: WheelFile) -> str | None:
        """Return the wheel's hash, reading all of it where no page states one."""
        if wheel.sha256 is not None:
            return wheel.sha256
        url = _request_url(wheel)
        try:
            size = wheel.size if wheel.size is not None else self._client.size(url)
            known = None if size is None else self._cache.load_sha256(wheel.url, size=size)
            return known or self._computed(wheel, url)
        except UnreachedError:
            return None

    def sdist(self, page: IndexPage, project: str, version: str) -> Artifact | None:
        """Return the sdist of a release with its hash, or None where the page has none."""
        key = (f"{page.url.rstrip('/')}/{canonicalize_name(project)}/", version)
        if key not in self._sdists:
            found = self._on(key[0], _SIMPLE, lambda one: _sdist(one, project, version))
            if found is not None and found.sha256 is None:
                found = self._hashed(found, page)
            self._sdists[key] = found
        return self._sdists[key]

    def _hashed(self, sdist: Artifact, page: IndexPage) -> Artifact:
        url = lend_credentials(sdist.url, source=page.url)
        digest = self._client.sha256(
            url, lambda done, total: self._progress(sdist.filename, done, total)
        )
        if digest is None:
            raise WorldError(f"`{redact_url(url)}` stands on its page and does not exist")
        return replace(sdist, sha256=digest.sha256, size=digest.size)

    def _computed(self, wheel: WheelFile, url: str) -> str:
        digest = self._client.sha256(
            url, lambda done, total: self._progress(wheel.filename, done, total)
        )
        if digest is None:
            raise WorldError(
                f"`{redact_url(url)}` stands on {wheel.page.name}'s page and does not exist",
                hint="the index is broken or the page is old: try again later",
            )
        if wheel.size is not None and digest.size != wheel.size:
            raise WorldError(
                f"`{redact_url(url)}` has {digest.size} bytes, its page says {wheel.size}"
            )
        self._cache.save_sha256(wheel.url, size=digest.size, sha256=digest.sha256)
        return digest.sha256

    def _of_flat(self, page: IndexPage, name: str) -> tuple[WheelFile, ...]:
        found = self._read(page, page.url, project=None) or ()
        return tuple(wheel for wheel in found if wheel.project == name)

    def _read(
        self, page: IndexPage, url: str, *, project: str | None
    ) -> tuple[WheelFile, ...] | None:
        """Return the wheels of an address, None where it does not exist."""
        key = (url, project)
        if key not in self._pages:
            self._pages[key] = self._asked(page, url, project=project)
        return self._pages[key]

    def _asked(
        self, page: IndexPage, url: str, *, project: str | None
    ) -> tuple[WheelFile, ...] | None:
        accept = _HTML if page.flat else _SIMPLE
        return self._on(url, accept, lambda one: _parsed(one, page, project))

    def _on(self, url: str, accept: str, read: Callable[[CachedPage], _Read]) -> _Read | None:
        """Return what is read on a page, None where the page does not exist."""
        cached = self._cache.load(url, variant=accept)
        if cached is not None and self._cache.is_fresh(cached):
            return read(cached)
        etag, modified = (cached.etag, cached.last_modified) if cached else (None, None)
        answer = self._client.get(url, accept=accept, etag=etag, last_modified=modified)
        if answer is None:
            return None
        fresh = fresh_seconds(answer.cache_control)
        stored = _revalidated(answer, cached, until=self._cache.now() + (fresh or 0.0))
        found = read(stored)  # a page that cannot be read is not kept
        if fresh is not None:
            self._cache.save(url, stored, variant=accept)
        return found

    def _metadata(self, wheel: WheelFile) -> bytes | None:
        identity = wheel.metadata_sha256 or wheel.sha256
        variant = f"metadata {identity}"
        cached = self._cache.load(wheel.url, variant=variant) if identity else None
        if cached is not None:
            return cached.body
        data = self._beside(wheel) if wheel.metadata_sha256 is not None else None
        if data is None:
            data = self._inside(wheel)
        if data is not None and identity:
            page = CachedPage(url=wheel.url, body=data, fresh_until=FOREVER)
            self._cache.save(wheel.url, page, variant=variant)
        return data

    def _beside(self, wheel: WheelFile) -> bytes | None:
        """Return the metadata file beside the wheel (PEP 658), checked by its hash."""
        parts = urlsplit(_request_url(wheel))
        url = urlunsplit(parts._replace(path=f"{parts.path}.metadata"))
        answer = self._client.get(url)
        if answer is None:
            return None
        got = hashlib.sha256(answer.body).hexdigest()
        if wheel.metadata_sha256 and got != wheel.metadata_sha256:
            raise WorldError(
                f"`{redact_url(url)}` has sha256 {got}, its page says {wheel.metadata_sha256}",
                hint="the index is being changed or is broken: try again later",
            )
        return answer.body

    def _inside(self, wheel: WheelFile) -> bytes | None:
        """Return METADATA out of the wheel by ranges, None where the host serves none."""
        archive = open_remote(self._client, _request_url(wheel))
        if archive is None:
            return None
        # Vendored distributions lie deeper than one folder.
        found = [m for m in archive.members if _is_metadata(m.name)]
        if len(found) != 1:
            raise WorldError(f"`{wheel.filename}` has {len(found)} METADATA files, wanted one")
        return archive.read(found[0])


def _parsed(stored: CachedPage, page: IndexPage, project: str | None) -> tuple[WheelFile, ...]:
    return parse_page(
        stored.body,
        content_type=stored.content_type,
        base_url=stored.url,
        page=page,
        project=project,
    )


def _sdist(stored: CachedPage, project: str, version: str) -> Artifact | None:
    return parse_sdist(
        stored.body,
        content_type=stored.content_type,
        base_url=stored.url,
        project=project,
        version=version,
    )


def _is_metadata(name: str) -> bool:
    folder, _, file = name.partition("/")
    return folder.endswith(".dist-info") and file == "METADATA"


def _request_url(wheel: WheelFile) -> str:
    return lend_credentials(wheel.url, source=wheel.page.url)


def _revalidated(answer: Answer, cached: CachedPage | None, *, until: float) -> CachedPage:
    if cached is not None and answer.status == HTTPStatus.NOT_MODIFIED:
        return replace(cached, fresh_until=until)
    return CachedPage(
        url=answer.url,
        body=answer.body,
        content_type=answer.content_type,
        etag=answer.etag,
        last_modified=answer.last_modified,
        fresh_until=until,
    )
