"""Files of a lock that their index no longer serves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.indexpages import pyg_page, pypi_page, pytorch_page
from envbuild.errors import WorldError
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.lock import Artifact, Pinned, TargetLock
    from envbuild.model.project import IndexUrls
    from envbuild.model.wheel import IndexPage
    from envbuild.ports import Facts, WheelSource


def vanished(
    before: TargetLock | None,
    indexes: IndexUrls,
    *,
    source: WheelSource,
    facts: Facts,
    reason: str = "",
) -> Iterator[str]:
    """Yield one sentence for each locked wheel that its page lists no more or as withdrawn.

    Looks at the packages of the pages that envbuild reads, and at those of the default index
    that ``reason``, uv's explanation, names.
    """
    pages = {page.url: page for page in _pages(indexes, facts)}
    pypi = pypi_page(indexes)
    for package in before.packages if before else ():
        page = pages.get(package.index)
        if page is None and re.search(rf"(?<![\w.-]){re.escape(package.name)}(?![\w-])", reason):
            page = pypi
        if page is not None:
            yield from _gone(package, page, source)


def _pages(indexes: IndexUrls, facts: Facts) -> Iterator[IndexPage]:
    for key in facts.pages(PageKind.PYTORCH):
        page = pytorch_page(indexes, key)
        if page is not None:
            yield page
    for key in facts.pages(PageKind.PYG):
        torch, _, accelerator = key.partition("+")
        yield pyg_page(indexes, torch, accelerator)


def _gone(package: Pinned, page: IndexPage, source: WheelSource) -> Iterator[str]:
    try:
        listed = {wheel.filename: wheel for wheel in source.wheels(page, package.name)}
    except WorldError:
        return
    for artifact in package.artifacts:
        if not artifact.is_wheel:
            continue
        wheel = listed.get(artifact.filename)
        what = f"`{package.name}=={package.version}` of the lock"
        if wheel is None:
            yield f"{what} is gone from {page.url}: {_file(artifact)} is not listed there any more"
        elif wheel.yanked:
            yield f"{what} was yanked from {page.url}: {_file(artifact)}"


def _file(artifact: Artifact) -> str:
    digest = f" (sha256 {artifact.sha256})" if artifact.sha256 else ""
    return f"{artifact.filename}{digest}"
