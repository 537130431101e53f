"""What each release of nvcc accepts and compiles for, as its wheels say."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from envbuild.core.packagefile import package_text
from envbuild.model.cuda import CudaVersion

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability


@cache
def toolkits() -> dict[CudaVersion, dict[str, Any]]:
    """Return the table of each release, oldest first."""
    found = tomllib.loads(package_text("envbuild.core", "toolkits.toml"))["toolkits"]
    return {CudaVersion.parse(cuda): table for cuda, table in found.items()}


def accepted(kind: str, cuda: CudaVersion) -> int | None:
    """Return the newest major of ``gcc`` or ``clang`` that an nvcc accepts, None if not known."""
    limit: int | None = toolkits().get(cuda, {}).get(kind)
    return limit


def first_for(capability: ComputeCapability) -> CudaVersion | None:
    """Return the first nvcc that compiles for a capability; the oldest read says nothing."""
    name = f"{capability.major}.{capability.minor}"
    knowing = [cuda for cuda, table in toolkits().items() if name in table["archs"]]
    return min(knowing) if knowing and min(knowing) > min(toolkits()) else None


def isa_of(isa: tuple[int, int]) -> CudaVersion | None:
    """Return the first CUDA that knows a version of PTX; None where none that was read does."""
    known = {tuple(map(int, table["isa"].split("."))): cuda for cuda, table in _newest_first()}
    return min((cuda for number, cuda in known.items() if number >= isa), default=None)


def _newest_first() -> list[tuple[CudaVersion, dict[str, Any]]]:
    return sorted(toolkits().items(), key=lambda one: one[0], reverse=True)
