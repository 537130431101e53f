"""Reading the fact files, and the wording of where a fact comes from."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DATE = "2026-11-29"
_MOST_SOURCES = 3
# What only the collector of the facts could look up: the public place is named beside it.
_PRIVATE = re.compile(
    r"[,;]? ?\(?(find_string/)?(read_file|find_string|read) ids? [\d, ]+\)?"
    r"|,? ?\(ids [\d, ]+\)"
    r"|\((docs|pages|code) corpus;[^)]*\)"
    r"|stored file \d+"
    r"|; names from the package list \S+"
)


def read_facts(folder: Path, name: str) -> Any:  # noqa: ANN401  (the shape of each file differs)
    """Return one fact file as plain values."""
    return json.loads((folder / name).read_text(encoding="utf-8"))


def clean(text: str) -> str:
    """Return a source without what only its collector could look up."""
    return re.sub(r"\s+", " ", _PRIVATE.sub("", text)).replace(" )", ")").strip()


def sources(names: Iterable[str]) -> str:
    """Return the first few sources, sorted, and how many more there are."""
    unique = sorted({clean(name) for name in names} - {""})
    more = f" and {len(unique) - _MOST_SOURCES} more" if len(unique) > _MOST_SOURCES else ""
    return ", ".join(unique[:_MOST_SOURCES]) + more


def origin(*, observed: bool, kinds: Iterable[str], names: Iterable[str], requires: str) -> str:
    """Return the sentence that tells where a wheel's facts come from."""
    seen = " and ".join(sorted(set(kinds) - {"inferred"}))
    found = f"{seen} ({sources(names)})" if seen else sources(names)
    tail = f"; requirements: {clean(requires)}" if requires else ""
    return f"{'observed' if observed else 'inferred'}: {found}{tail}"
