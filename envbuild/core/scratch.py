"""The scratch project in which uv resolves: the user's project over a local index.

Metadata cannot tell uv which builds belong together, and the hosts of those builds may not be
reached. So the chosen wheels stand alone on a local index, with their real addresses and hashes,
and their requirements are given as ``dependency-metadata``. What uv writes then holds the local
index's address, which is replaced by the real one.
"""

from __future__ import annotations

import hashlib
import html
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tomlkit

from envbuild.core.redact import without_credentials
from envbuild.core.wanted import groups_for

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envbuild.model.project import Project
    from envbuild.model.target import Target
    from envbuild.model.wheel import IndexPage, WheelFile

ROOT = "@SCRATCH@"
"""Stands for the scratch folder in every text; the runner of uv puts its path there."""

ANY_PYTHON = ">=3.8"
"""``requires-python`` of the scratch project, so that any interpreter can run the resolution;
``environments`` is what binds it to the target's Python."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScratchIndex:
    """The local index: its files, and the real page behind each local address."""

    files: tuple[tuple[str, str], ...]
    pages: tuple[IndexPage, ...]

    @staticmethod
    def path(page: IndexPage) -> str:
        """Return the local address of a page, as a path below the scratch folder."""
        return f"{ROOT}/index/{page.name}"


def scratch_index(wheels: Iterable[WheelFile]) -> ScratchIndex:
    """Lay out a simple index that holds these wheels and nothing else."""
    files: dict[str, str] = {}
    pages: dict[str, IndexPage] = {}
    for wheel in sorted(wheels, key=lambda w: w.filename):
        pages[wheel.page.name] = wheel.page
        path = f"index/{wheel.page.name}/{wheel.project}/index.html"
        files[path] = files.get(path, "<!DOCTYPE html>\n") + _link(wheel)
    return ScratchIndex(
        files=tuple(sorted(files.items())),
        pages=tuple(pages[name] for name in sorted(pages)),
    )


def _link(wheel: WheelFile) -> str:
    digest = wheel.sha256 or stand_in_sha256(wheel.url)
    href = html.escape(f"{without_credentials(wheel.url)}#sha256={digest}")
    return f'<a href="{href}">{html.escape(wheel.filename)}</a><br/>\n'


def stand_in_sha256(url: str) -> str:
    """Return a value in the place of a hash that is not known; it is never written out."""
    return hashlib.sha256(f"unhashed {url}".encode()).hexdigest()


def scratch_pyproject(
    text: str, index: ScratchIndex, requires: Mapping[WheelFile, tuple[str, ...]]
) -> str:
    """Turn the final pyproject.toml into the one that uv is run on."""
    document: dict[str, Any] = tomllib.loads(text)
    document["project"]["requires-python"] = ANY_PYTHON
    uv = document["tool"]["uv"]
    local = {page.name: page for page in index.pages}
    for entry in uv.get("index", ()):
        page = local.get(str(entry.get("name")))
        if page is not None:
            entry["url"] = f"file://{ScratchIndex.path(page)}"
            entry.pop("format", None)
    given = [
        {"name": wheel.project, "version": wheel.version, "requires-dist": list(requires[wheel])}
        for wheel in sorted(requires, key=lambda w: w.project)
    ]
    uv["dependency-metadata"] = [*uv.get("dependency-metadata", ()), *given]
    return tomlkit.dumps(document)


_KEPT = (
    "constraint-dependencies",
    "override-dependencies",
    "exclude-dependencies",
    "dependency-metadata",
    "index",
    "sources",
    "prerelease",
    "resolution",
    "no-binary-package",
    "no-build-package",
)
"""The user's own settings of uv that also hold for a target resolved apart from uv.lock."""


def target_pyproject(project: Project, target: Target) -> str:
    """Return a pyproject.toml that asks for one target's requirements and nothing else.

    It stands in for the project's own wherever uv.lock is not meant: in the layer "pip", and
    for every target but the default one.
    """
    source: dict[str, Any] = tomllib.loads(project.text)
    uv = source.get("tool", {}).get("uv", {})
    document = tomlkit.document()
    document["project"] = {
        "name": project.name or "environment",
        "version": "0",
        "requires-python": ANY_PYTHON,
        "dependencies": [str(r.requirement) for r in _wanted(project, target)],
    }
    kept = {key: uv[key] for key in _KEPT if key in uv}
    document["tool"] = {"uv": {"package": False, **kept}}
    return tomlkit.dumps(document)


def _wanted(project: Project, target: Target) -> list[Any]:
    groups = groups_for(project, target)
    return [r for r in project.requirements if r.group in groups]


def with_real_pages(text: str, index: ScratchIndex) -> str:
    """Replace every address of the local index in a text of uv's by the real page's."""
    for page in index.pages:
        local = ScratchIndex.path(page)
        for written in (f"file://{local}", local):
            text = text.replace(f'"{written}"', f'"{without_credentials(page.url)}"')
    return text
