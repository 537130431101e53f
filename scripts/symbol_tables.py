"""Which release of a library first exported which symbol, from what was read of the releases."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Names = frozenset[str]


def sets_of(releases: tuple[str, ...], read: Callable[[str], Names | None]) -> dict[str, Names]:
    """Return what each release exports, with releases between two equal ones taken as equal.

    ``releases`` are in order. What could not be read (None) is left out.
    """
    found: dict[str, Names] = {}
    known: dict[str, Names | None] = {}

    def at(number: int) -> Names | None:
        release = releases[number]
        if release not in known:
            known[release] = read(release)
        return known[release]

    def between(low: int, high: int) -> None:
        first, last = at(low), at(high)
        if first is not None and first == last:
            found.update(dict.fromkeys(releases[low : high + 1], first))
            return
        for number, names in ((low, first), (high, last)):
            if names is not None:
                found[releases[number]] = names
        if high - low > 1:
            middle = (low + high) // 2
            between(low, middle)
            between(middle, high)

    if releases:
        between(0, len(releases) - 1)
    return {release: found[release] for release in releases if release in found}


def table_of(sets: dict[str, Names]) -> dict[str, Any]:
    """Return the table of one library: what came after its oldest release, and what went.

    ``first`` and ``gone`` go by the release that came with symbols, or without them. Of the
    oldest release there is but the number of its symbols and a hash of their names.
    """
    releases = list(sets)
    oldest, newest = sets[releases[0]], sets[releases[-1]]
    first: dict[str, list[str]] = {}
    gone: dict[str, list[str]] = {}
    for name in sorted(frozenset().union(*sets.values())):
        having = [number for number, release in enumerate(releases) if name in sets[release]]
        if name not in oldest:
            first.setdefault(releases[having[0]], []).append(name)
        if name not in newest:
            gone.setdefault(releases[having[-1] + 1], []).append(name)
    digest = hashlib.sha256("\n".join(sorted(oldest)).encode()).hexdigest()
    return {
        "oldest": {"version": releases[0], "symbols": len(oldest), "sha256": digest[:16]},
        "first": {release: first[release] for release in releases if release in first},
        "gone": {release: gone[release] for release in releases if release in gone},
    }
