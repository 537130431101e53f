"""Take out of a report what tells who and where somebody is, so that it can be shared."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, TypeVar

from envbuild.core.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable

    Value = TypeVar("Value")

# Hosts that everybody has in common.
_PUBLIC = re.compile(
    r"(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|pytorch\.org|pyg\.org|github\.com|nvidia\.com"
    r"|huggingface\.co|anaconda\.org|astral\.sh)"
)
_HOST = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)(?P<host>[^/\s'\"<>`?#]+)", re.IGNORECASE)
_HOMES = re.compile(r"(?<![\w.-])(?P<folder>/(?:home|Users|users|scratch|data/home))/[^/\s'\"`:,]+")
_TOKEN = re.compile(
    r"\b(?:gh[opsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|pypi-[\w-]{20,}"
    r"|sk-[\w-]{20,}|AKIA[0-9A-Z]{16}|ey[\w-]{20,}\.[\w-]{10,}\.[\w-]*)"
)
_STAND_IN = "***"


def anonymized(value: Value, *, home: str = "", user: str = "", host: str = "") -> Value:
    """Return the same values with every text in them free of what names a person or a host.

    ``home`` becomes ``~``; the user's name goes where it is a part of a path, the host's name
    wherever it is a word, and tokens and private hosts of addresses everywhere.
    """

    def clean(text: str) -> str:
        return anonymous_text(text, home=home, user=user, host=host)

    return _mapped(value, clean)  # type: ignore[no-any-return]


def anonymous_text(text: str, *, home: str = "", user: str = "", host: str = "") -> str:
    """Return a text without what names a person or a host."""
    text = _TOKEN.sub(_STAND_IN, redact_text(text))
    text = _HOST.sub(_without_host, text)
    if home.strip("/"):
        text = re.sub(rf"{re.escape(home.rstrip('/'))}(?![\w.-])", "~", text)
    text = _HOMES.sub(rf"\g<folder>/{_STAND_IN}", text)
    if user and user != "root":
        text = re.sub(rf"(?<=[/@=]){re.escape(user)}(?![\w.-])", _STAND_IN, text)
    for name in (host, host.partition(".")[0]):  # the longer first
        if name in {"", "localhost"}:
            continue
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", _STAND_IN, text)
    return text


def _without_host(match: re.Match[str]) -> str:
    public = match["scheme"].lower() == "file://" or _PUBLIC.fullmatch(match["host"].lower())
    return match[0] if public else f"{match['scheme']}{_STAND_IN}"


def _mapped(value: Any, clean: Callable[[str], str]) -> Any:  # noqa: ANN401 - any value of a report
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {
            field.name: _mapped(getattr(value, field.name), clean)
            for field in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **parts)
    if isinstance(value, tuple):
        return tuple(_mapped(one, clean) for one in value)
    return clean(value) if type(value) is str else value
