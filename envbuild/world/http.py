"""Ask index hosts: one session with time limits, retries, size limits and range reads."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Thread
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from envbuild import __version__
from envbuild.core.redact import credentials_of, redact_url, without_credentials
from envbuild.errors import WorldError
from envbuild.world.httpanswer import (
    CHUNK,
    Digest,
    check_length,
    content_length,
    read_answer,
    read_part,
    total_size,
)
from envbuild.world.httperrors import (
    TRANSPORT,
    BrokenOffError,
    UnreachedError,
    offline_error,
    status_error,
    transport_error,
    untrusted_certificate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from envbuild.world.httpanswer import (
        Answer,
        Part,
    )

T = TypeVar("T")
_BUSY = frozenset({429, 502, 503, 504})
_UNPACKED = {"Accept-Encoding": "identity"}
# Public buckets whose store answers 403, not 404, for a file that does not exist.
_BUCKETS = ("download.pytorch.org", "download-r2.pytorch.org", "data.pyg.org")


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpOptions:
    """Limits of a client: times in seconds, sizes in bytes.

    ``attempts`` counts the first one; ``backoff`` doubles after each. A ``Retry-After`` above
    ``retry_after_limit`` is not waited for in full. ``buckets`` are hosts on which an
    ``AccessDenied`` of S3 means absence.
    """

    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    attempts: int = 3
    backoff: float = 0.5
    retry_after_limit: float = 5.0
    page_limit: int = 64 << 20
    page_seconds: float = 120.0
    offline: bool = False
    buckets: tuple[str, ...] = _BUCKETS


class _BusyError(Exception):
    def __init__(self, error: WorldError, *, wait: float | None) -> None:
        super().__init__(error.message)
        self.error = error
        self.wait = wait


@dataclass(kw_only=True)
class HttpClient:
    """A session. Proxies and certificates are those of the environment.

    Every method raises UnreachedError where the host is not reached, another WorldError where
    it does not serve what was asked for, and returns None for what does not exist.
    """

    options: HttpOptions = field(default_factory=HttpOptions)

    def __post_init__(self) -> None:
        self._session = requests.Session()
        self._session.headers["User-Agent"] = f"envbuild/{__version__}"
        self._session.max_redirects = 10
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=16))

    def close(self) -> None:
        """Close every connection."""
        self._session.close()

    def get(
        self,
        url: str,
        *,
        accept: str = "*/*",
        etag: str | None = None,
        last_modified: str | None = None,
    ) -> Answer | None:
        """Return a page; with status 304 and no body where it is still as ``etag`` says."""
        headers = {"Accept": accept}
        if etag is not None:
            headers["If-None-Match"] = etag
        elif last_modified is not None:
            headers["If-Modified-Since"] = last_modified
        return self._ask(url, headers, self._read_answer)

    def tail(self, url: str, length: int) -> Part | None:
        """Return the last bytes of a file; None where it is absent or ranges are not served."""
        return self._ask(url, {"Range": f"bytes=-{length}", **_UNPACKED}, self._read_part)

    def part(self, url: str, *, start: int, length: int) -> Part | None:
        """Return some bytes of a file; None where it is absent or ranges are not served."""
        span = f"bytes={start}-{start + length - 1}"
        found = self._ask(url, {"Range": span, **_UNPACKED}, self._read_part)
        if found is not None and found.start != start:
            raise WorldError(f"`{redact_url(url)}` served another range than `{span}`")
        return found

    def size(self, url: str) -> int | None:
        """Return the size of a file, reading at most one byte of it; None where unknown."""
        return self._ask(url, {"Range": "bytes=0-0", **_UNPACKED}, total_size)

    def sha256(self, url: str, progress: Callable[[int, int | None], None]) -> Digest | None:
        """Read a file to its end and return its hash; ``progress`` gets bytes done and in all."""

        def read(response: requests.Response) -> Digest:
            digest, size, total = hashlib.sha256(), 0, content_length(response)
            for chunk in response.iter_content(CHUNK):
                digest.update(chunk)
                size += len(chunk)
                progress(size, total)
            check_length(response)
            return Digest(sha256=digest.hexdigest(), size=size)

        return self._ask(url, dict(_UNPACKED), read)

    def reaches(self, url: str, *, seconds: float = 3.0) -> bool:
        """Whether the host gives any answer within a time that includes finding its name.

        NOTE: a host whose certificate is not trusted counts as reached: it must be seen.
        """
        if self.options.offline:
            return False
        answers: list[bool] = []
        probe = Thread(target=lambda: answers.append(self._answers(url, seconds)), daemon=True)
        probe.start()
        probe.join(seconds)
        return answers == [True]

    def _answers(self, url: str, seconds: float) -> bool:
        try:
            with self._session.head(
                without_credentials(url), timeout=seconds, allow_redirects=False, stream=True
            ):
                return True
        except TRANSPORT as error:
            return untrusted_certificate(error)

    def _read_answer(self, response: requests.Response) -> Answer:
        options = self.options
        return read_answer(response, limit=options.page_limit, seconds=options.page_seconds)

    def _read_part(self, response: requests.Response) -> Part | None:
        options = self.options
        return read_part(response, limit=options.page_limit, seconds=options.page_seconds)

    def _ask(
        self, url: str, headers: dict[str, str], read: Callable[[requests.Response], T | None]
    ) -> T | None:
        if self.options.offline:
            raise offline_error(url)
        for attempt in range(1, self.options.attempts):
            try:
                return self._once(url, headers, read)
            except (UnreachedError, BrokenOffError):
                wait = None
            except _BusyError as busy:
                wait = busy.wait
            time.sleep(self.options.backoff * 2 ** (attempt - 1) if wait is None else wait)
        try:
            return self._once(url, headers, read)
        except _BusyError as busy:
            raise busy.error from None

    def _once(
        self, url: str, headers: dict[str, str], read: Callable[[requests.Response], T | None]
    ) -> T | None:
        options = self.options
        try:
            # NOTE: apart from the address, so that no exception and no `response.url` holds them.
            with self._session.get(
                without_credentials(url),
                headers=headers,
                auth=credentials_of(url),
                timeout=(options.connect_timeout, options.read_timeout),
                stream=True,
            ) as response:
                return read(response) if self._serves(response, url, headers) else None
        except TRANSPORT as error:
            raise transport_error(
                error, url=url, connect=options.connect_timeout, read=options.read_timeout
            ) from None

    def _serves(self, response: requests.Response, url: str, headers: dict[str, str]) -> bool:
        """Whether there is something to read; raise what the status means otherwise."""
        status = response.status_code
        ranged = "Range" in headers
        known = {"If-None-Match", "If-Modified-Since"} & headers.keys()
        match status:
            case HTTPStatus.OK:
                return True
            case HTTPStatus.PARTIAL_CONTENT if ranged:
                return True
            case HTTPStatus.NOT_MODIFIED if known:
                return True
            case HTTPStatus.NOT_FOUND | HTTPStatus.GONE:
                return False
            case HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE if ranged:
                return False
            case HTTPStatus.FORBIDDEN if self._absent_in_bucket(response):
                return False
            case _:
                pass
        error = status_error(status, url=url, answered=response.url)
        if status in _BUSY:
            raise _BusyError(error, wait=self._retry_after(response))
        raise error

    def _absent_in_bucket(self, response: requests.Response) -> bool:
        if urlsplit(response.url).hostname not in self.options.buckets:
            return False
        return b"<Code>AccessDenied</Code>" in next(response.iter_content(4096), b"")

    def _retry_after(self, response: requests.Response) -> float | None:
        value = response.headers.get("Retry-After", "")
        return min(float(value), self.options.retry_after_limit) if value.isdecimal() else None
