"""Read an index page: PEP 503 HTML, PEP 691 JSON, or a flat page of links.

A page that was cut off, or is something else than it says, is an error; what is no wheel on
a page is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    is_normalized_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from envbuild.core.pagelinks import json_links, page_links
from envbuild.core.redact import redact_url, without_credentials
from envbuild.core.wheeltags import LONGEST_NAME
from envbuild.errors import WorldError
from envbuild.model.lock import Artifact
from envbuild.model.wheel import WheelFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.core.pagelinks import Link
    from envbuild.model.wheel import IndexPage

JSON_TYPES = frozenset({"application/vnd.pypi.simple.v1+json", "application/json"})
HTML_TYPES = frozenset(
    {"", "text/html", "application/vnd.pypi.simple.v1+html", "application/xhtml+xml"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Context:
    page: IndexPage
    base: str
    project: str | None
    origin: str


def parse_page(
    body: bytes, *, content_type: str, base_url: str, page: IndexPage, project: str | None
) -> tuple[WheelFile, ...]:
    """Return the wheels of a page in its order, of one project or (None) of all.

    ``base_url`` is the address that finally answered. Raises WorldError where the page is cut
    off or is not of the type that ``content_type`` promises.
    """
    links, base = _links(body, content_type=content_type, base_url=base_url)
    context = _Context(
        page=page,
        base=base,
        project=canonicalize_name(project) if project is not None else None,
        origin=f"index page {redact_url(base_url)}",
    )
    return _merged(wheel for link in links if (wheel := _wheel(link, context)) is not None)


def _links(body: bytes, *, content_type: str, base_url: str) -> tuple[tuple[Link, ...], str]:
    """Return the links of a page, and the address that they are relative to."""
    where = redact_url(base_url)
    kind = content_type.partition(";")[0].strip().lower()
    if kind in JSON_TYPES:
        return json_links(body, where=where), without_credentials(base_url)
    if kind in HTML_TYPES:
        links, href = page_links(body, where=where)
        return links, without_credentials(_joined(base_url, href) or base_url)
    raise WorldError(
        f"`{where}` is of type `{kind}`, wanted an index page (HTML, or JSON of PEP 691)",
        hint="check the address of the index under `[tool.envbuild.indexes]`",
    )


def parse_sdist(
    body: bytes, *, content_type: str, base_url: str, project: str, version: str
) -> Artifact | None:
    """Return the sdist of a release on the page of its project, None where there is none.

    A hash that the page contradicts is no hash. Raises WorldError as `parse_page` does.
    """
    links, base = _links(body, content_type=content_type, base_url=base_url)
    found: dict[str, Artifact] = {}
    for link in links:
        one = _sdist(link, base, project=canonicalize_name(project), version=Version(version))
        if one is None:
            continue
        first = found.setdefault(one.filename, one)
        if one.sha256 not in {None, first.sha256}:
            found[one.filename] = replace(first, sha256=None if first.sha256 else one.sha256)
    return min(found.values(), key=_by_format, default=None)


def _by_format(sdist: Artifact) -> tuple[bool, str]:
    return not sdist.filename.endswith(".tar.gz"), sdist.filename


def _sdist(link: Link, base: str, *, project: str, version: Version) -> Artifact | None:
    filename = link.filename or _last_part(link.href)
    if not filename.endswith((".tar.gz", ".zip")) or len(filename) > LONGEST_NAME:
        return None
    try:
        name, found = parse_sdist_filename(filename)
    except InvalidSdistFilename:
        return None
    url = _joined(base, link.href)
    if url is None or name != project or found != version:
        return None
    return Artifact(filename=filename, url=url, sha256=link.sha256, size=link.size)


def _joined(base: str, href: str) -> str | None:
    try:
        url = without_credentials(urljoin(base, href.partition("#")[0].strip()))
    except ValueError:
        return None
    # A page of the network must not point into the disk of its reader.
    allowed = {"http", "https", "file"} if base.startswith("file:") else {"http", "https"}
    return url if url.partition(":")[0].lower() in allowed else None


def _last_part(href: str) -> str:
    path = href.partition("#")[0].partition("?")[0].strip()
    return unquote(path.rpartition("/")[2])


def _wheel(link: Link, context: _Context) -> WheelFile | None:
    filename = link.filename or _last_part(link.href)
    if not filename.endswith(".whl") or len(filename) > LONGEST_NAME:
        return None
    # Cheap before dear: a flat page lists thousands of wheels of other projects.
    name = canonicalize_name(filename.partition("-")[0])
    if not is_normalized_name(name) or context.project not in {None, name}:
        return None
    try:
        _, version, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    url = _joined(context.base, link.href)
    if url is None:
        return None
    return WheelFile(
        project=name,
        version=str(version),
        filename=filename,
        url=url,
        page=context.page,
        sha256=link.sha256,
        size=link.size,
        requires_python=link.requires_python,
        metadata_sha256=link.metadata_sha256,
        yanked=link.yanked,
        origin=context.origin,
    )


def _merged(wheels: Iterable[WheelFile]) -> tuple[WheelFile, ...]:
    """Keep the first entry of each file name; a hash that is contradicted is no hash."""
    kept: dict[str, WheelFile] = {}
    disputed: set[str] = set()
    for wheel in wheels:
        first = kept.setdefault(wheel.filename, wheel)
        if wheel.sha256 is None or wheel.sha256 == first.sha256:
            continue
        if first.sha256 is not None:
            disputed.add(wheel.filename)
        kept[wheel.filename] = replace(first, sha256=wheel.sha256)
    return tuple(
        _undisputed(wheel) if wheel.filename in disputed else wheel for wheel in kept.values()
    )


def _undisputed(wheel: WheelFile) -> WheelFile:
    return replace(
        wheel, sha256=None, origin=f"{wheel.origin}; it states several hashes for this file name"
    )
