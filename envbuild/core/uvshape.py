"""Check the keys of ``[tool.uv]`` that envbuild reads; of the others uv says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.fields import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from envbuild.core.fields import Fields


def check_uv(tool: Fields) -> None:
    """Record each value of ``[tool.uv]`` that is of no use to uv."""
    uv = tool.table("uv")
    for key, (fits, wanted) in _WANTED.items():
        value = uv.raw.get(key)
        if value is not None and not fits(value):
            uv.problem(key, message=f"found {shown(value)}, wanted {wanted}")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_requirements(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, (str, dict)) for entry in value)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _is_groups(value: object) -> bool:
    return value == "all" or _is_texts(value)


_WANTED: dict[str, tuple[Callable[[object], bool], str]] = {
    "constraint-dependencies": (_is_requirements, "a list of requirements"),
    "override-dependencies": (_is_requirements, "a list of requirements"),
    "environments": (_is_texts, "a list of markers"),
    "sources": (_is_table, "a table"),
    "index": (_is_tables, "tables `[[tool.uv.index]]`"),
    "default-groups": (_is_groups, "`all` or a list of groups"),
    "exclude-newer-package": (_is_table, "a table"),
}
