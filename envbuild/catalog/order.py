"""The order of releases: newest first, local versions by their numbers and not as text."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from packaging.version import Version

    ReleaseKey: TypeAlias = tuple[Version, tuple[tuple[int, int, str], ...]]

_PART = re.compile(r"\d+|[a-z]+")


@cache
def release_key(version: str) -> ReleaseKey:
    """Return a key that sorts versions oldest first, ``pt29`` before ``pt210``.

    PEP 440 compares local versions as text, so ``2.1.2+pt29cu128`` would be the newer one.
    """
    from packaging.version import Version  # noqa: PLC0415  (slow to import, often not needed)

    public, _, local = version.partition("+")
    parts = _PART.findall(local.lower())
    return Version(public), tuple(
        (1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts
    )


def build_number(filename: str) -> int:
    """Return the build number of a wheel's file name, 0 without a build tag."""
    parts = filename.split("-")
    digits = re.match(r"\d+", parts[2]) if len(parts) == 6 else None  # noqa: PLR2004
    return int(digits[0]) if digits else 0
