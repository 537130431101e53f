"""Edit the indexes and sources of ``[tool.uv]``: those that envbuild owns, and PyTorch's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import tomlkit
from packaging.utils import canonicalize_name
from tomlkit.items import AoT

from envbuild.core.binding.tomlvalue import inline, plain, set_value
from envbuild.core.redact import without_credentials
from envbuild.core.uvhazards import opens_pytorch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from envbuild.core.binding.tomlvalue import Settings
    from envbuild.core.uvsettings import UvSettings

_OWN_INDEX = re.compile(r"(pytorch-(cpu|cu\d+)|pyg-torch\d+-(cpu|cu\d+)|flash-attn-[\w-]+)")


def edit_sources(uv: Settings, settings: UvSettings, coupled: Collection[str]) -> None:
    """Take each coupled package from the index of the stack, and from no other."""
    sources = uv.get("sources")
    if sources is None:
        return
    wanted = dict(settings.sources)
    for name in list(sources):
        project = canonicalize_name(name)
        if project in wanted:
            set_value(sources, name, {"index": wanted.pop(project)})
            sources[name] = inline(sources[name])
        elif project in coupled and _refers_to_own_index(plain(sources[name])):
            del sources[name]
    for name, index in wanted.items():
        sources[name] = inline({"index": index})
    if not sources:
        del uv["sources"]


def _refers_to_own_index(source: object) -> bool:
    entries = source if isinstance(source, list) else [source]
    return all(
        isinstance(entry, dict) and _OWN_INDEX.fullmatch(str(entry.get("index", "")))
        for entry in entries
    )


def edit_indexes(uv: Settings, settings: UvSettings) -> None:
    """Name the indexes of the stack, and drop those of envbuild's that it does not need."""
    indexes = uv.get("index")
    present = {} if indexes is None else {str(entry.get("name")): entry for entry in indexes}
    for name, table in settings.index_tables():
        if name not in present:
            if indexes is None:
                uv["index"] = indexes = tomlkit.aot()
            indexes.append(_index_table(table, inside=indexes))
        else:
            for key in ("url", "format", "explicit", "default"):
                set_value(present[name], key, table.get(key))
    _close_pytorch(indexes or (), settings)
    if indexes is not None:
        kept = {name for name, _ in settings.index_tables()}
        for position in range(len(indexes) - 1, -1, -1):
            name = str(indexes[position].get("name"))
            unused = _is_unused(indexes[position], settings)
            if unused or (_OWN_INDEX.fullmatch(name) and name not in kept):
                del indexes[position]
        if not indexes:
            del uv["index"]


def _close_pytorch(indexes: Iterable[Settings], settings: UvSettings) -> None:
    """Make the user's own indexes that are PyTorch's explicit."""
    for entry in indexes if settings.managed else ():
        if opens_pytorch(entry, settings.urls):
            entry["explicit"] = True


def _is_unused(index: Settings, settings: UvSettings) -> bool:
    """Whether an index is the default one that the other layer needs and this one does not."""
    if settings.managed or settings.urls.pypi is None:
        return False
    url = without_credentials(settings.urls.pypi)
    return plain(index) == {"name": "pypi", "url": url, "default": True}


def _index_table(values: dict[str, object], *, inside: object) -> object:
    table: Any = tomlkit.table() if isinstance(inside, AoT) else tomlkit.inline_table()
    for key, value in values.items():
        table[key] = value
    return table
