"""The tables that the rules judge by, each with its source in the file it comes from."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from packaging.version import Version

from envbuild.core.packagefile import package_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def table(name: str) -> dict[str, Any]:
    """Return one of the tables (``libraries``, ``packages``, ``numpy2``)."""
    return tomllib.loads(package_text("envbuild.checks", f"{name}.toml"))


def package_for(library: str, cuda_major: int) -> str | None:
    """Return the package that brings a library, for one CUDA major."""
    found: dict[str, str] = table("libraries").get(f"cuda{cuda_major}", {})
    return found.get(library)


def majors_of(library: str) -> tuple[int, ...]:
    """Return the CUDA majors that have a library of this name."""
    return tuple(major for major in (11, 12, 13) if package_for(library, major))


def first_from(section: str, version: str) -> str | None:
    """Return the entry of the first version that is no older: who has it."""
    entries: dict[str, str] = table("libraries")[section]
    wanted = Version(version)
    return next((text for key, text in entries.items() if Version(key) >= wanted), None)
