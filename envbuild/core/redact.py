"""Keep credentials that stand in addresses out of messages, cache keys and files."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit, urlunsplit

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>`]+", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/?#]*@")
# A password with a bare `/`, `?` or `#` in it: what looks like a port is no number.
_BROKEN_USERINFO = re.compile(r"(?<=://)[^/?#:@]*:(?!\d+[/?#])[^@]*[/?#].*@")
_SECRET = re.compile(
    r"([?&;](?:[^=&;#]*(?:token|secret|signature|password|passwd|credential|api[-_]?key)[^=&;#]*"
    r"|sig|key|auth)=)[^&;#]+",
    re.IGNORECASE,
)


def redact_url(url: str) -> str:
    """Return an address without user name and password, and with secrets of its query hidden."""
    return _SECRET.sub(r"\1***", _BROKEN_USERINFO.sub("", without_credentials(url), count=1))


def redact_text(text: str) -> str:
    """Return a text with every address in it redacted."""
    return _URL.sub(lambda match: redact_url(match[0]), text)


def without_credentials(url: str) -> str:
    """Return an address without user name and password, otherwise unchanged."""
    return _USERINFO.sub("", url, count=1)


def host_of(url: str) -> str:
    """Return the host of an address, with its port if it has one, for a message."""
    try:
        return urlsplit(redact_url(url)).netloc or redact_url(url)
    except ValueError:
        return redact_url(url)


def credentials_of(url: str) -> tuple[str, str] | None:
    """Return the user name and password that stand in an address, decoded."""
    found = _USERINFO.search(url)
    if found is None:
        return None
    user, _, password = found[0][:-1].partition(":")
    return unquote(user), unquote(password)


def lend_credentials(url: str, *, source: str) -> str:
    """Return ``url`` with the credentials of ``source`` where both lie at one origin.

    NOTE: another host, port or scheme never sees them.
    """
    found = _USERINFO.search(source)
    if found is None or _USERINFO.search(url) or _origin(url) != _origin(source):
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=found[0] + parts.netloc))


def _origin(url: str) -> tuple[str, str] | None:
    try:
        parts = urlsplit(without_credentials(url))
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, f"{parts.hostname}:{port}") if parts.hostname else None
