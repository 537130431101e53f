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
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"


def releases(client: HttpClient, project: str, *, index: str = PYPI) -> tuple[WheelFile, ...]:
    """Return a wheel for Linux on x86_64 of each release that is not yanked, oldest first."""
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
        if _LINUX_X86_64.search(wheel.filename) and not wheel.yanked:
            found.setdefault(Version(wheel.version), wheel)
    return tuple(found[version] for version in sorted(found))


def opened(client: HttpClient, wheel: WheelFile) -> RemoteZip:
    """Read the directory of a wheel."""
    archive = open_remote(client, lend_credentials(wheel.url, source=wheel.page.url))
    if archive is None:
        raise WorldError(f"`{wheel.filename}` is not served in ranges")
    return archive
