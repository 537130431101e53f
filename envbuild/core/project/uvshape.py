"""Check the keys of ``[tool.uv]`` that envbuild reads; of the others uv says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.project.fields import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from envbuild.core.project.fields import Fields

    Shape: TypeAlias = tuple[Callable[[object], bool], str]


def check_uv(tool: Fields) -> None:
    """Record each value of ``[tool.uv]`` that is of no use to uv."""
    uv = tool.table("uv")
    _check(uv, _WANTED)
    if _is_table(uv.raw.get("workspace")):
        _check(uv.table("workspace"), _WORKSPACE)


def _check(table: Fields, wanted: Mapping[str, Shape]) -> None:
    for key, (fits, what) in wanted.items():
        value = table.raw.get(key)
        if value is not None and not fits(value):
            table.problem(key, message=f"found {shown(value)}, wanted {what}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_requirements(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, (str, dict)) for entry in value)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _is_lists(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, list) for entry in value)


def _is_groups(value: object) -> bool:
    return value == "all" or _is_texts(value)


_BOOL: Shape = (_is_bool, "`true` or `false`")
_TEXT: Shape = (_is_text, "a text")
_PACKAGES: Shape = (_is_texts, "a list of packages")
_REQUIREMENTS: Shape = (_is_requirements, "a list of requirements")
_MARKERS: Shape = (_is_texts, "a list of markers")
_TABLE: Shape = (_is_table, "a table")
_PATHS: Shape = (_is_texts, "a list of paths")

_WANTED: Mapping[str, Shape] = {
    "build-constraint-dependencies": _REQUIREMENTS,
    "conflicts": (_is_lists, "a list of lists"),
    "constraint-dependencies": _REQUIREMENTS,
    "default-groups": (_is_groups, "`all` or a list of groups"),
    "dependency-groups": _TABLE,
    "dependency-metadata": (_is_tables, "tables `[[tool.uv.dependency-metadata]]`"),
    "dev-dependencies": _REQUIREMENTS,
    "environments": _MARKERS,
    "exclude-dependencies": _PACKAGES,
    "exclude-newer-package": _TABLE,
    "index": (_is_tables, "tables `[[tool.uv.index]]`"),
    "index-strategy": _TEXT,
    "managed": _BOOL,
    "no-binary-package": _PACKAGES,
    "no-build-package": _PACKAGES,
    "override-dependencies": _REQUIREMENTS,
    "package": _BOOL,
    "prerelease": _TEXT,
    "required-environments": _MARKERS,
    "required-version": _TEXT,
    "resolution": _TEXT,
    "sources": _TABLE,
    "workspace": _TABLE,
}
_WORKSPACE: Mapping[str, Shape] = {"members": _PATHS, "exclude": _PATHS}
