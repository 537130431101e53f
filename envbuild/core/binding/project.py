"""The project's own pyproject.toml with uv bound to a stack: edited, then read back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name
from tomlkit.exceptions import TOMLKitError

from envbuild.core.binding.edit import edit_pyproject
from envbuild.core.uvsettings import GROUP
from envbuild.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.core.uvsettings import UvSettings


def bound_project(text: str, settings: UvSettings, *, coupled: frozenset[str]) -> str:
    """Return the text with ``settings`` in force.

    Raises InputError where the file is written in a way that cannot be edited in place: with
    ``tool`` as an inline table, say, or ``tool.uv`` as dotted keys.
    """
    try:
        edited = edit_pyproject(text, settings, coupled=coupled)
        after = tomllib.loads(edited)
    except (TOMLKitError, tomllib.TOMLDecodeError):
        raise _not_editable() from None
    if _of_the_user(tomllib.loads(text)) != _of_the_user(after) or not _binds(after, settings):
        raise _not_editable()
    return edited


def _of_the_user(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what envbuild never touches."""
    tool = {key: value for key, value in document.get("tool", {}).items() if key != "uv"}
    rest = {k: v for k, v in document.items() if k not in {"tool", "dependency-groups"}}
    groups = document.get("dependency-groups", {})
    return {**rest, "tool": tool, "groups": {k: v for k, v in groups.items() if k != GROUP}}


def _binds(document: Mapping[str, Any], settings: UvSettings) -> bool:
    uv: Mapping[str, Any] = document.get("tool", {}).get("uv", {})
    sources: dict[str, Any] = {
        canonicalize_name(name): source for name, source in uv.get("sources", {}).items()
    }
    names = {index.get("name") for index in uv.get("index", ())}
    return (
        tuple(uv.get("environments", ())) == settings.environments
        and set(settings.constraints) <= set(uv.get("constraint-dependencies", ()))
        and set(settings.overrides) <= set(uv.get("override-dependencies", ()))
        and all(sources.get(name) == {"index": index} for name, index in settings.sources)
        and names.issuperset(name for name, _ in settings.index_tables())
        and tuple(document.get("dependency-groups", {}).get(GROUP, ())) == settings.group
    )


def _not_editable() -> InputError:
    return InputError(
        "found `tool.uv` in pyproject.toml as dotted keys or inside an inline table, wanted a"
        " table that can be edited",
        hint="write it as a table, its keys below a line `[tool.uv]`; so too `[dependency-groups]`",
    )
