"""Read what a host answers: whole pages, ranges, sizes; never half of one."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from envbuild.core.redact import redact_url
from envbuild.errors import WorldError
from envbuild.world.httperrors import BrokenOffError, length_error

if TYPE_CHECKING:
    import requests

CHUNK = 1 << 20
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A whole answer; ``url`` is the address after redirects, without credentials or query."""

    url: str
    status: int
    body: bytes
    content_type: str = ""
    etag: str | None = None
    last_modified: str | None = None
    cache_control: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A range of a file: its bytes, where they start, and the size of the whole file."""

    data: bytes
    start: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Digest:
    """The hash and the size of a file that was read to its end."""

    sha256: str
    size: int


def read_answer(response: requests.Response, *, limit: int, seconds: float) -> Answer:
    """Read a page; one that is not modified has no body."""
    headers, status = response.headers, response.status_code
    unchanged = status == HTTPStatus.NOT_MODIFIED
    return Answer(
        url=urlunsplit(urlsplit(response.url)._replace(query="", fragment="")),
        status=status,
        body=b"" if unchanged else _read_body(response, limit=limit, seconds=seconds),
        content_type=headers.get("Content-Type", ""),
        etag=headers.get("ETag"),
        last_modified=headers.get("Last-Modified"),
        cache_control=headers.get("Cache-Control", ""),
    )


def read_part(response: requests.Response, *, limit: int, seconds: float) -> Part | None:
    """Read a range; None, and nothing read, where the host sends the whole file instead."""
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if response.status_code != HTTPStatus.PARTIAL_CONTENT or match is None:
        return None
    start, end, total = map(int, match.groups())
    data = _read_body(response, limit=limit, seconds=seconds)
    if len(data) != end - start + 1:
        raise length_error(response.url, got=len(data), wanted=end - start + 1)
    return Part(data=data, start=start, total=total)


def total_size(response: requests.Response) -> int | None:
    """Return the size of the whole file from the headers of one range of it."""
    if response.status_code != HTTPStatus.PARTIAL_CONTENT:
        return content_length(response)
    match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    return int(match[3]) if match else None


def content_length(response: requests.Response) -> int | None:
    """Return the length that an answer announces."""
    value = response.headers.get("Content-Length", "")
    return int(value) if value.isdecimal() else None


def check_length(response: requests.Response) -> None:
    """Compare what came over the wire, still packed, with what was announced.

    NOTE: urllib3 2 does so itself; urllib3 1.26, which requests also allows, does not.
    """
    wanted, got = content_length(response), response.raw.tell()
    if wanted is not None and got != wanted:
        raise length_error(response.url, got=got, wanted=wanted)


def _read_body(response: requests.Response, *, limit: int, seconds: float) -> bytes:
    until = time.monotonic() + seconds
    shown = redact_url(response.url)
    body = bytearray()
    for chunk in response.iter_content(CHUNK // 16):
        body += chunk
        if len(body) > limit:
            raise WorldError(f"`{shown}` has more than {limit} bytes, wanted an index page")
        if time.monotonic() > until:
            raise BrokenOffError(f"`{shown}` was not read to its end within {seconds:g} s")
    check_length(response)
    return bytes(body)
