"""Edit pyproject.toml so that uv takes exactly the stack that was chosen.

Only keys that envbuild owns are touched: in ``[tool.uv]`` the keys ``managed``,
``environments``, ``exclude-newer`` and, in the lists and tables shared with the user, exact
pins and sources of coupled packages, envbuild's own index names and the dependency group
``envbuild``. An index of the user's that is PyTorch's becomes explicit. Comments and order of
everything else stay.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

import tomlkit
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from tomlkit.items import Array

from envbuild.core.binding.indexes import edit_indexes, edit_sources
from envbuild.core.binding.tomlvalue import array_of, braces, inline, plain, set_value, table_at
from envbuild.core.userconstraints import is_pin
from envbuild.core.uvsettings import GROUP, NEVER

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from tomlkit import TOMLDocument

    from envbuild.core.binding.tomlvalue import Settings
    from envbuild.core.uvsettings import UvSettings


@lru_cache(maxsize=8)
def edit_pyproject(text: str, settings: UvSettings, *, coupled: frozenset[str]) -> str:
    """Return the text with ``settings`` in force; the same text when they already are.

    ``coupled`` are the normalised names whose entries envbuild owns.
    """
    edits: tuple[Callable[[TOMLDocument, Settings], None], ...] = (
        lambda _, uv: set_value(uv, "managed", None if settings.managed else False),
        lambda _, uv: _edit_lists(uv, settings, coupled),
        lambda _, uv: edit_sources(uv, settings, coupled),
        lambda _, uv: edit_indexes(uv, settings),
        lambda _, uv: _edit_cutoff(uv, settings, coupled),
        lambda document, uv: _edit_default_groups(uv, document, settings),
        lambda document, _: _edit_group(document, settings),
    )
    text = _with_tables(text, settings)
    document = tomlkit.parse(text)
    for edit in edits:
        uv = table_at(document, "tool", "uv")
        edit(document, tomlkit.table() if uv is None else uv)
        after = tomlkit.dumps(document)
        if after != text:  # tomlkit loses count of what it deleted: go on with a fresh document
            text = _spaced(after, like=text)
            document = tomlkit.parse(text)
    return text


def _spaced(text: str, *, like: str) -> str:
    """Return the text with the empty line before a table where there was one before."""
    headers = set(re.findall(r"(?<=\n\n)\[.*", like))
    lines = text.split("\n")
    return "\n".join(
        f"\n{line}" if line in headers and number and lines[number - 1] else line
        for number, line in enumerate(lines)
    )


def _with_tables(text: str, settings: UvSettings) -> str:
    """Append whole tables that are not there yet: what stands in the file stays as it is."""
    document = tomllib.loads(text)
    added: list[str] = []
    if not settings.empty and table_at(document, "tool", "uv") is None:
        added.append("[tool.uv]\n")
    if settings.sources and table_at(document, "tool", "uv", "sources") is None:
        lines = [f"{name} = {braces({'index': index})}" for name, index in settings.sources]
        added.append("\n".join(["[tool.uv.sources]", *lines]) + "\n")
    if settings.group and table_at(document, "dependency-groups") is None:
        group = array_of(list(settings.group)).as_string()
        added.append(f"[dependency-groups]\n{GROUP} = {group}\n")
    if table_at(document, "tool", "uv", "index") is None:
        added += [
            tomlkit.dumps({"tool": {"uv": {"index": [values]}}})
            for _, values in settings.index_tables()
        ]
    return "\n".join([text.rstrip("\n") + "\n", *added]) if added else text


def _edit_lists(uv: Settings, settings: UvSettings, coupled: Collection[str]) -> None:
    _set_list(uv, "environments", settings.environments, owned=lambda _: True)
    wanted, pinned = settings.constraints, _names(coupled, is_pin)
    dropped = _names({*coupled, *settings.required})
    owned = lambda entry: entry in wanted or pinned(entry)  # noqa: E731
    _set_list(uv, "constraint-dependencies", wanted, owned=owned)
    owned = lambda entry: NEVER in entry and dropped(entry)  # noqa: E731
    _set_list(uv, "override-dependencies", settings.overrides, owned=owned)


def _names(
    coupled: Collection[str], also: Callable[[Requirement], bool] = lambda _: True
) -> Callable[[str], bool]:
    def owned(entry: str) -> bool:
        try:
            requirement = Requirement(entry)
        except InvalidRequirement:
            return False
        return canonicalize_name(requirement.name) in coupled and also(requirement)

    return owned


def _set_list(
    table: Settings, key: str, wanted: Iterable[str], *, owned: Callable[[str], bool]
) -> None:
    """Make the owned entries of a list equal ``wanted``, keeping the user's own before them."""
    wanted = list(wanted)
    array = table.get(key)
    present = [] if array is None else [str(entry) for entry in array]
    if [entry for entry in present if owned(entry)] == wanted:
        return
    if array is None:
        table[key] = array_of(wanted)
        return
    for position in range(len(present) - 1, -1, -1):
        if owned(present[position]):
            del array[position]
    for entry in wanted:
        array.append(entry)
    if isinstance(array, Array):
        array.multiline(len(array) > 1)
    if not array:
        del table[key]


def _edit_cutoff(uv: Settings, settings: UvSettings, coupled: Collection[str]) -> None:
    if settings.exclude_newer is not None:
        set_value(uv, "exclude-newer", settings.exclude_newer)
    per_package = uv.get("exclude-newer-package")
    wanted = dict.fromkeys(settings.without_cutoff, False)
    if per_package is None:
        if wanted:
            uv["exclude-newer-package"] = inline(wanted)
        return
    for name in list(per_package):
        project = canonicalize_name(name)
        if project in coupled and project not in wanted and plain(per_package[name]) is False:
            del per_package[name]
    for name in wanted:
        set_value(per_package, name, False)  # noqa: FBT003
    if not per_package:
        del uv["exclude-newer-package"]


def _edit_default_groups(uv: Settings, document: TOMLDocument, settings: UvSettings) -> None:
    groups = uv.get("default-groups")
    if groups == "all":
        return
    if settings.group and groups is None:
        defined = table_at(document, "dependency-groups") or {}
        uv["default-groups"] = array_of([*(["dev"] if "dev" in defined else []), GROUP])
    elif groups is None:
        return
    elif settings.group and GROUP not in groups:
        groups.append(GROUP)
    elif not settings.group and GROUP in groups:
        groups.remove(GROUP)
        if plain(groups) in ([], ["dev"]):
            del uv["default-groups"]


def _edit_group(document: TOMLDocument, settings: UvSettings) -> None:
    groups = table_at(document, "dependency-groups")
    if groups is None:
        return
    if settings.group:
        wanted = list(settings.group)
        if GROUP not in groups or plain(groups[GROUP]) != wanted:
            groups[GROUP] = array_of(wanted)
    elif groups.pop(GROUP, None) is not None and not groups:
        del document["dependency-groups"]
