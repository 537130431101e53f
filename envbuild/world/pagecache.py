"""Keep pages and hashes of files on disk, for every process of one user.

An entry is one file: a line of JSON, then the body. Files are replaced as a whole, and what
cannot be read, or is not what its own checksum says, counts as absent. A cache that cannot be
written is no error: the next run asks again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.core.pagelinks import is_digest
from envbuild.core.redact import redact_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=(\d+)")
_NO_STORE = re.compile(r"(?:^|[,\s])no-store(?:$|[,\s])")
_NO_CACHE = re.compile(r"(?:^|[,\s])no-cache(?:$|[,\s])")
_LONGEST = 600
FOREVER = float(1 << 53)


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedPage:
    """A page as it was served; ``fresh_until`` is a time of ``time.time``."""

    url: str
    body: bytes
    content_type: str = ""
    etag: str | None = None
    last_modified: str | None = None
    fresh_until: float = 0.0


def default_directory(environ: Mapping[str, str]) -> Path:
    """Return ``$ENVBUILD_CACHE_DIR``, else the user's cache folder for envbuild."""
    if own := environ.get("ENVBUILD_CACHE_DIR"):
        return Path(own)
    if (shared := environ.get("XDG_CACHE_HOME")) and Path(shared).is_absolute():
        return Path(shared) / "envbuild"
    return Path(environ.get("HOME") or Path.home()) / ".cache" / "envbuild"


def fresh_seconds(cache_control: str) -> float | None:
    """Return how long an answer may be used unasked; None where it must not be stored."""
    header = cache_control.lower()
    if _NO_STORE.search(header):
        return None
    age = _MAX_AGE.search(header)
    if age is None or _NO_CACHE.search(header):
        return 0.0
    return float(min(int(age[1][:9]), _LONGEST))


class PageCache:
    """The cache below one folder; addresses lose their credentials before they become keys."""

    def __init__(self, directory: Path, *, now: Callable[[], float] = time.time) -> None:
        self.now = now
        self._pages = directory / "pages-v1"
        self._hashes = directory / "hashes-v1"

    def load(self, url: str, *, variant: str = "") -> CachedPage | None:
        """Return the stored page of an address, fresh or not."""
        key = f"{redact_url(url)} {variant}"
        try:
            head, _, body = self._file(self._pages, key).read_bytes().partition(b"\n")
            stored = json.loads(head)
            told = (stored["key"], stored["sha256"])
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        known = (key, hashlib.sha256(body).hexdigest())
        return _page(stored, body) if told == known else None

    def save(self, url: str, page: CachedPage, *, variant: str = "") -> None:
        """Store the page of an address."""
        key = f"{redact_url(url)} {variant}"
        head = asdict(replace(page, url=redact_url(page.url)))
        body = head.pop("body")
        head |= {"key": key, "sha256": hashlib.sha256(body).hexdigest()}
        _write(self._file(self._pages, key), json.dumps(head).encode() + b"\n" + body)

    def is_fresh(self, page: CachedPage) -> bool:
        """Whether a page may be used unasked; a clock that was set back makes it stale."""
        left = page.fresh_until - self.now()
        return page.fresh_until == FOREVER or 0 < left <= _LONGEST

    def load_sha256(self, url: str, *, size: int) -> str | None:
        """Return the hash of a file of this address and size, computed before."""
        key = f"{redact_url(url)} {size}"
        try:
            stored = json.loads(self._file(self._hashes, key).read_bytes())
            value = stored["sha256"] if stored["key"] == key else None
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return value if is_digest(value) else None

    def save_sha256(self, url: str, *, size: int, sha256: str) -> None:
        """Store the hash of a file."""
        key = f"{redact_url(url)} {size}"
        entry = json.dumps({"key": key, "sha256": sha256}).encode()
        _write(self._file(self._hashes, key), entry)

    def _file(self, folder: Path, key: str) -> Path:
        return folder / hashlib.sha256(key.encode()).hexdigest()


def _page(stored: object, body: bytes) -> CachedPage | None:
    match stored:
        case {
            "url": str(url),
            "content_type": str(content_type),
            "etag": (str() | None) as etag,
            "last_modified": (str() | None) as last_modified,
            "fresh_until": (int() | float()) as fresh_until,
        }:
            return CachedPage(
                url=url,
                body=body,
                content_type=content_type,
                etag=etag,
                last_modified=last_modified,
                fresh_until=fresh_until,
            )
        case _:
            return None


def _write(path: Path, data: bytes) -> None:
    """Replace a file as a whole, readable by its owner alone."""
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
