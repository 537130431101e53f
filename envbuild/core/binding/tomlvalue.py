"""Values of a TOML document that keeps its comments: read, set, written as people write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tomlkit

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from tomlkit.items import Array

    Settings = MutableMapping[str, Any]


def table_at(document: Settings, *path: str) -> Settings | None:
    """Return the table at a key path, None where there is none."""
    table: Any = document
    for key in path:
        table = table.get(key)
        if table is None:
            return None
    return table  # type: ignore[no-any-return]


def set_value(table: Settings, key: str, value: object) -> None:
    """Set, or remove where the value is None, and leave an equal value as it is written."""
    if value is None:
        table.pop(key, None)
    elif key not in table or plain(table[key]) != value:
        table[key] = value


def plain(item: Any) -> object:  # noqa: ANN401
    """Return a value without what TOML has around it."""
    return item.unwrap() if hasattr(item, "unwrap") else item


def array_of(entries: list[str]) -> Array:
    """Return a list, over several lines where it has several entries."""
    array = tomlkit.array()
    array.extend(entries)
    return array.multiline(len(entries) > 1)


def braces(values: Mapping[str, object]) -> str:
    """Render an inline table."""
    pairs = ", ".join(f"{key} = {tomlkit.item(one).as_string()}" for key, one in values.items())
    return f"{{ {pairs} }}"


def inline(value: Any) -> Any:  # noqa: ANN401
    """Return an inline table written as people write it, with spaces inside the braces."""
    if isinstance(value, tomlkit.items.InlineTable):
        return value
    return tomlkit.parse(f"x = {braces(value)}")["x"]
