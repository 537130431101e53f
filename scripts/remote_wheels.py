"""The wheels of a package on an index, one of each release, read where they lie."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import Version

from envbuild.core.redact import lend_credentials
from envbuild.core.simplepage import parse_page
from envbuild.errors import WorldError
from envbuild.model.wheel import IndexPage, PageKind
from envbuild.world.remotezip import open_remote

if TYPE_CHECKING:
    from envbuild.model.wheel import WheelFile
    from envbuild.world.http import HttpClient
    from envbuild.world.remotezip import RemoteZip

PYPI = "https://pypi.org/simple"
_LINUX_X86_64 = re.compile(r"(?:manylinux|linux)\w*_x86_64\.whl$|-any\.whl$")
_PYTHON = re.compile(r"-cp3(\d+)-")
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"


def releases(
    client: HttpClient, project: str, *, index: str = PYPI, since: str = "0"
) -> tuple[WheelFile, ...]:
    """Return a wheel for Linux on x86_64 of each final release, oldest first.

    Yanked ones are left out, as is what is older than ``since``. Of several wheels of a release
    it is the one for the newest Python.
    """
    page = IndexPage(kind=PageKind.PYPI, key="", name="index", url=index)
    answer = client.get(f"{index.rstrip('/')}/{project}/", accept=_ACCEPT)
    if answer is None:
        raise WorldError(f"the index has no `{project}`")
    wheels = parse_page(
        answer.body,
        content_type=answer.content_type,
        base_url=answer.url,
        page=page,
        project=project,
    )
    found: dict[Version, WheelFile] = {}
    for wheel in wheels:
        version = Version(wheel.version)
        if not _LINUX_X86_64.search(wheel.filename) or wheel.yanked or version < Version(since):
            continue
        if version.is_prerelease:
            continue
        if version not in found or _python(wheel) > _python(found[version]):
            found[version] = wheel
    return tuple(found[version] for version in sorted(found))


def _python(wheel: WheelFile) -> int:
    tag = _PYTHON.search(wheel.filename)
    return int(tag[1]) if tag else 0


def opened(client: HttpClient, wheel: WheelFile) -> RemoteZip:
    """Read the directory of a wheel."""
    archive = open_remote(client, lend_credentials(wheel.url, source=wheel.page.url))
    if archive is None:
        raise WorldError(f"`{wheel.filename}` is not served in ranges")
    return archive
