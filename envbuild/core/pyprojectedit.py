"""Edit pyproject.toml so that uv takes exactly the stack that was chosen.

Only keys that envbuild owns are touched: in ``[tool.uv]`` the keys ``managed``,
``environments``, ``exclude-newer`` and, in the lists and tables shared with the user, exact
pins and sources of coupled packages, envbuild's own index names and the dependency group
``envbuild``. An index of the user's that is PyTorch's becomes explicit. Comments and order of
everything else stay.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tomlkit
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from tomlkit.items import AoT, Array

from envbuild.core.redact import without_credentials
from envbuild.core.userconstraints import is_pin
from envbuild.core.uvhazards import opens_pytorch
from envbuild.core.uvsettings import GROUP, NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping

    from tomlkit import TOMLDocument

    from envbuild.core.uvsettings import UvSettings

    Settings = MutableMapping[str, Any]

_OWN_INDEX = re.compile(r"(pytorch-(cpu|cu\d+)|pyg-torch\d+-(cpu|cu\d+)|flash-attn-[\w-]+)")


@lru_cache(maxsize=8)
def edit_pyproject(text: str, settings: UvSettings, *, coupled: frozenset[str]) -> str:
    """Return the text with ``settings`` in force; the same text when they already are.

    ``coupled`` are the normalised names whose entries envbuild owns.
    """
    edits: tuple[Callable[[TOMLDocument, Settings], None], ...] = (
        lambda _, uv: _set(uv, "managed", None if settings.managed else False),
        lambda _, uv: _edit_lists(uv, settings, coupled),
        lambda _, uv: _edit_sources(uv, settings, coupled),
        lambda _, uv: _edit_indexes(uv, settings),
        lambda _, uv: _edit_cutoff(uv, settings, coupled),
        lambda document, uv: _edit_default_groups(uv, document, settings),
        lambda document, _: _edit_group(document, settings),
    )
    text = _with_tables(text, settings)
    document = tomlkit.parse(text)
    for edit in edits:
        uv = _table(document, "tool", "uv")
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
    document = tomlkit.parse(text)
    added: list[str] = []
    if not settings.empty and _table(document, "tool", "uv") is None:
        added.append("[tool.uv]\n")
    if settings.sources and _table(document, "tool", "uv", "sources") is None:
        lines = [f"{name} = {_braces({'index': index})}" for name, index in settings.sources]
        added.append("\n".join(["[tool.uv.sources]", *lines]) + "\n")
    if settings.group and _table(document, "dependency-groups") is None:
        group = _array(list(settings.group)).as_string()
        added.append(f"[dependency-groups]\n{GROUP} = {group}\n")
    if _table(document, "tool", "uv", "index") is None:
        added += [
            tomlkit.dumps({"tool": {"uv": {"index": [values]}}})
            for _, values in settings.index_tables()
        ]
    return "\n".join([text.rstrip("\n") + "\n", *added]) if added else text


def _braces(values: Mapping[str, object]) -> str:
    pairs = ", ".join(f"{key} = {tomlkit.item(one).as_string()}" for key, one in values.items())
    return f"{{ {pairs} }}"


def _table(document: TOMLDocument, *path: str) -> Settings | None:
    table: Any = document
    for key in path:
        table = table.get(key)
        if table is None:
            return None
    return table  # type: ignore[no-any-return]


def _set(table: Settings, key: str, value: object) -> None:
    """Set, or remove where the value is None, and leave an equal value as it is written."""
    if value is None:
        table.pop(key, None)
    elif key not in table or _plain(table[key]) != value:
        table[key] = value


def _plain(item: Any) -> object:  # noqa: ANN401
    return item.unwrap() if hasattr(item, "unwrap") else item


def _edit_lists(uv: Settings, settings: UvSettings, coupled: Collection[str]) -> None:
    _set_list(uv, "environments", settings.environments, owned=lambda _: True)
    wanted, dropped, pinned = settings.constraints, _names(coupled), _names(coupled, is_pin)
    owned = lambda entry: entry in wanted or pinned(entry)  # noqa: E731
    _set_list(uv, "constraint-dependencies", wanted, owned=owned)
    _set_list(
        uv,
        "override-dependencies",
        settings.overrides,
        owned=lambda entry: NEVER in entry and dropped(entry),
    )


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
        table[key] = _array(wanted)
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


def _array(entries: list[str]) -> Array:
    array = tomlkit.array()
    array.extend(entries)
    return array.multiline(len(entries) > 1)


def _edit_sources(uv: Settings, settings: UvSettings, coupled: Collection[str]) -> None:
    sources = uv.get("sources")
    if sources is None:
        return
    wanted = dict(settings.sources)
    for name in list(sources):
        project = canonicalize_name(name)
        if project in wanted:
            _set(sources, name, {"index": wanted.pop(project)})
            sources[name] = _inline(sources[name])
        elif project in coupled and _refers_to_own_index(_plain(sources[name])):
            del sources[name]
    for name, index in wanted.items():
        sources[name] = _inline({"index": index})
    if not sources:
        del uv["sources"]


def _inline(value: Any) -> Any:  # noqa: ANN401
    """Return an inline table written as people write it, with spaces inside the braces."""
    if isinstance(value, tomlkit.items.InlineTable):
        return value
    return tomlkit.parse(f"x = {_braces(value)}")["x"]


def _refers_to_own_index(source: object) -> bool:
    entries = source if isinstance(source, list) else [source]
    return all(
        isinstance(entry, dict) and _OWN_INDEX.fullmatch(str(entry.get("index", "")))
        for entry in entries
    )


def _edit_indexes(uv: Settings, settings: UvSettings) -> None:
    indexes = uv.get("index")
    present = {} if indexes is None else {str(entry.get("name")): entry for entry in indexes}
    for name, table in settings.index_tables():
        if name not in present:
            if indexes is None:
                uv["index"] = indexes = tomlkit.aot()
            indexes.append(_index_table(table, inside=indexes))
        else:
            for key in ("url", "format", "explicit", "default"):
                _set(present[name], key, table.get(key))
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
    return _plain(index) == {"name": "pypi", "url": url, "default": True}


def _index_table(values: dict[str, object], *, inside: object) -> object:
    table: Any = tomlkit.table() if isinstance(inside, AoT) else tomlkit.inline_table()
    for key, value in values.items():
        table[key] = value
    return table


def _edit_cutoff(uv: Settings, settings: UvSettings, coupled: Collection[str]) -> None:
    if settings.exclude_newer is not None:
        _set(uv, "exclude-newer", settings.exclude_newer)
    per_package = uv.get("exclude-newer-package")
    wanted = dict.fromkeys(settings.without_cutoff, False)
    if per_package is None:
        if wanted:
            uv["exclude-newer-package"] = _inline(wanted)
        return
    for name in list(per_package):
        project = canonicalize_name(name)
        if project in coupled and project not in wanted and _plain(per_package[name]) is False:
            del per_package[name]
    for name in wanted:
        _set(per_package, name, False)  # noqa: FBT003
    if not per_package:
        del uv["exclude-newer-package"]


def _edit_default_groups(uv: Settings, document: TOMLDocument, settings: UvSettings) -> None:
    groups = uv.get("default-groups")
    if groups == "all":
        return
    if settings.group and groups is None:
        defined = _table(document, "dependency-groups") or {}
        uv["default-groups"] = _array([*(["dev"] if "dev" in defined else []), GROUP])
    elif groups is None:
        return
    elif settings.group and GROUP not in groups:
        groups.append(GROUP)
    elif not settings.group and GROUP in groups:
        groups.remove(GROUP)
        if _plain(groups) in ([], ["dev"]):
            del uv["default-groups"]


def _edit_group(document: TOMLDocument, settings: UvSettings) -> None:
    groups = _table(document, "dependency-groups")
    if groups is None:
        return
    if settings.group:
        wanted = list(settings.group)
        if GROUP not in groups or _plain(groups[GROUP]) != wanted:
            groups[GROUP] = _array(wanted)
    elif groups.pop(GROUP, None) is not None and not groups:
        del document["dependency-groups"]
