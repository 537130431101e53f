"""The live hosts, met when one of them is there: until then nothing of HTTP is imported."""
# ruff: noqa: PLC0415 - requests takes as long to import as all else before uv is started

from __future__ import annotations

import os
import socket
from dataclasses import replace
from functools import cached_property
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from envbuild.model.lock import Artifact
    from envbuild.model.wheel import IndexPage, WheelFile
    from envbuild.world.http import HttpClient
    from envbuild.world.liveindex import LiveIndex

_PROXIES = frozenset({"all_proxy", "http_proxy", "https_proxy"})


class LiveHosts:
    """A LiveIndex that is made when it is first asked; implements WheelSource.

    ``seconds`` is how long a host may stay silent, None for what is usual.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        seconds: float | None,
        progress: Callable[[str, int, int | None], None],
    ) -> None:
        self._environ = environ
        self._seconds = seconds
        self._progress = progress

    def reaches(self, url: str) -> bool:
        """Whether the host of an address gives any answer."""
        return has_name(url, self._environ) and self._client.reaches(url)

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        """See `envbuild.ports.WheelSource`."""
        return self._index.wheels(page, project)

    def requires_dist(self, wheel: WheelFile) -> tuple[str, ...] | None:
        """See `envbuild.ports.WheelSource`."""
        return self._index.requires_dist(wheel)

    def sha256(self, wheel: WheelFile) -> str | None:
        """See `envbuild.ports.WheelSource`."""
        return self._index.sha256(wheel)

    def sdist(self, page: IndexPage, project: str, version: str) -> Artifact | None:
        """See `envbuild.ports.WheelSource`."""
        return self._index.sdist(page, project, version)

    @cached_property
    def _client(self) -> HttpClient:
        from envbuild.world.http import HttpClient, HttpOptions

        limits = HttpOptions()
        if self._seconds is not None:
            connect = min(self._seconds, limits.connect_timeout)
            limits = replace(limits, connect_timeout=connect, read_timeout=self._seconds)
        return HttpClient(options=limits)

    @cached_property
    def _index(self) -> LiveIndex:
        from envbuild.world.liveindex import LiveIndex
        from envbuild.world.pagecache import PageCache, default_directory

        return LiveIndex(self._client, PageCache(default_directory(self._environ)), self._progress)


def has_name(url: str, environ: Mapping[str, str] = os.environ, *, seconds: float = 3.0) -> bool:
    """Whether the host of an address may be there: not where nobody in time knows its name.

    Behind a proxy it is the proxy that has to know it.
    """
    if any(value and name.lower() in _PROXIES for name, value in environ.items()):
        return True
    known: list[bool] = []
    asking = Thread(target=lambda: known.append(_is_known(url)), daemon=True)
    asking.start()
    asking.join(seconds)
    return known == [True]


def _is_known(url: str) -> bool:
    try:
        return bool(socket.getaddrinfo(urlsplit(url).hostname, None, type=socket.SOCK_STREAM))
    except (OSError, ValueError):
        return False
