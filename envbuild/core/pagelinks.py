"""The links of an index page with what the page says about each, before they are wheels."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import TypeGuard
from urllib.parse import parse_qsl

from envbuild.errors import WorldError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHOWN_DIGEST = re.compile(r"\s*sha256:([0-9a-f]{64})\s*")
_HINT = "try again; if it stays, check the index under `[tool.envbuild.indexes]`"


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One link; ``metadata_sha256`` is empty where metadata is served without a hash."""

    href: str
    filename: str | None = None
    sha256: str | None = None
    size: int | None = None
    requires_python: str | None = None
    metadata_sha256: str | None = None
    yanked: bool = False


def is_digest(value: object) -> TypeGuard[str]:
    """Whether a value is a sha256 in lower-case hexadecimal."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def json_links(body: bytes, *, where: str) -> tuple[Link, ...]:
    """Return the files of a PEP 691 page; raise WorldError where it is none or is cut off."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        found = "HTML" if body.lstrip()[:1] == b"<" else "no whole JSON"
        raise WorldError(
            f"`{where}` holds {found}, wanted the JSON it promises", hint=_HINT
        ) from None
    files = document.get("files") if isinstance(document, dict) else None
    if not isinstance(files, list) or not _known_version(document):
        raise WorldError(
            f"`{where}` is JSON, wanted a page of PEP 691 (`files`, API 1.x)", hint=_HINT
        )
    return tuple(_json_link(entry, where=where) for entry in files)


def _known_version(document: dict[str, object]) -> bool:
    meta = document.get("meta")
    version = meta.get("api-version") if isinstance(meta, dict) else None
    return isinstance(version, str) and version.partition(".")[0] == "1"


def _json_link(entry: object, *, where: str) -> Link:
    if not isinstance(entry, dict):
        raise WorldError(f"`{where}` lists something that is no file", hint=_HINT)
    href, filename = entry.get("url"), entry.get("filename")
    if not isinstance(href, str) or not isinstance(filename, str):
        raise WorldError(f"`{where}` lists a file without `url` or `filename`", hint=_HINT)
    size, python = entry.get("size"), entry.get("requires-python")
    return Link(
        href=href,
        filename=filename,
        sha256=_sha256_in(entry.get("hashes")),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        requires_python=python.strip() or None if isinstance(python, str) else None,
        metadata_sha256=_json_metadata(entry),
        yanked=bool(entry.get("yanked")),
    )


def _sha256_in(hashes: object) -> str | None:
    value = hashes.get("sha256") if isinstance(hashes, dict) else None
    lower = value.lower() if isinstance(value, str) else None
    return lower if is_digest(lower) else None


def _json_metadata(entry: dict[str, object]) -> str | None:
    for key in ("core-metadata", "data-dist-info-metadata", "dist-info-metadata"):
        if (value := entry.get(key)) is not None:
            return (_sha256_in(value) or "") if value else None
    return None


def page_links(body: bytes, *, where: str) -> tuple[tuple[Link, ...], str]:
    """Return the links of an HTML page and its ``<base href>`` (or an empty text).

    Raises WorldError where it is no HTML, is cut off, or asks to sign in.
    """
    text = body.decode("utf-8", errors="replace")
    if text.lstrip()[:1] in {"{", "["}:
        raise WorldError(f"`{where}` holds JSON, wanted the HTML it promises", hint=_HINT)
    cut_off = f"`{where}` is cut off, wanted a whole page"
    if text.rfind("<") > text.rfind(">"):  # a parser would try each of its ends anew
        raise WorldError(cut_off, hint=_HINT)
    reader = _Reader()
    try:
        reader.feed(text)
        reader.close()
    except (AssertionError, ValueError) as error:
        # The parser asserts on malformed declarations, and int() refuses endless references.
        raise WorldError(f"`{where}` is HTML that cannot be read: {error}", hint=_HINT) from None
    if reader.opened and not reader.closed:
        raise WorldError(cut_off, hint=_HINT)
    if reader.asks_password and not any(".whl" in link.href for link in reader.links):
        raise WorldError(
            f"`{where}` is a sign-in page, wanted links to wheels",
            hint="put the credentials into the index's address, or sign in to the network",
        )
    return tuple(reader.links), reader.base


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[Link] = []
        self.base = ""
        self.opened = self.closed = self.asks_password = False
        self._row = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(reversed(attrs))  # HTML takes the first of two equal attributes
        if tag in {"html", "body"}:
            self.opened = True
        elif tag == "base" and not self.base:
            self.base = given.get("href") or ""
        elif tag == "input" and (given.get("type") or "").lower() == "password":
            self.asks_password = True
        elif tag == "a" and (href := given.get("href")):
            self.links.append(_html_link(href, given))
            self._row = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"html", "body"}:
            self.closed = True
        elif tag == "li":
            self._row = False

    def handle_data(self, data: str) -> None:
        """Take the hash that GitHub shows beside each file of a release."""
        shown = _SHOWN_DIGEST.fullmatch(data) if self._row and self.links else None
        if shown is not None and self.links[-1].sha256 is None:
            self.links[-1] = replace(self.links[-1], sha256=shown[1])


def _html_link(href: str, given: dict[str, str | None]) -> Link:
    fragment = dict(parse_qsl(href.partition("#")[2]))
    python = (given.get("data-requires-python") or "").strip()
    metadata = given.get("data-core-metadata", given.get("data-dist-info-metadata"))
    return Link(
        href=href,
        sha256=_sha256_in(fragment),
        requires_python=python or None,
        metadata_sha256=_html_metadata(metadata),
        yanked="data-yanked" in given,
    )


def _html_metadata(value: str | None) -> str | None:
    if value is None or value.strip().lower() in {"", "false"}:
        return None
    return _sha256_in(dict([value.strip().partition("=")[::2]])) or ""
