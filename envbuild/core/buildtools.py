"""What compilers, architectures and memory a build of a CUDA extension takes, from one table."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from envbuild.core.archs import toolkit_knows
from envbuild.core.packagefile import package_text
from envbuild.core.toolkits import accepted, first_for
from envbuild.model.cuda import CudaVersion

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability

OLD_SETUPTOOLS = "setuptools<82"
"""The bound under which pkg_resources is there: setuptools 82 removed it."""

_FIRST_CLASHING_GLIBC = Version("2.41")
_FIRST_SOUND_CUDA = CudaVersion(major=13, minor=0)
# torch.utils.cpp_extension imports pkg_resources in 1.13.1, 2.0.1 and 2.1.2, not in 2.2.2.
_FIRST_TORCH_WITHOUT_PKG_RESOURCES = Version("2.2")


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(package_text("envbuild.core", "build.toml"))


def torch_since(capability: ComputeCapability) -> str | None:
    """Return the first torch that takes a capability in an arch list, None for the old ones."""
    found: str | None = _table()["torch"].get(_dotted(capability))
    return found


def nvcc_since(capability: ComputeCapability) -> CudaVersion | None:
    """Return the first nvcc that compiles for a capability, None where all known ones do."""
    found = _table()["nvcc"].get(_dotted(capability))
    return first_for(capability) if found is None else CudaVersion.parse(found)


def nvcc_wanted(version: CudaVersion, capability: ComputeCapability) -> str | None:
    """Return which toolkit is wanted in the place of one that does not know a capability.

    None is returned where it compiles for it.
    """
    first = nvcc_since(capability)
    if first is not None and version < first:
        return f"CUDA {first} or newer"
    return None if toolkit_knows(version, capability) else "a toolkit of CUDA 12"


def newest_host_compiler(kind: str, cuda: CudaVersion) -> int | None:
    """Return the newest major of ``gcc`` or ``clang`` that an nvcc accepts, None if not known."""
    limits: dict[str, int] = _table().get(kind, {})
    return accepted(kind, cuda) or limits.get(str(cuda))


def clashes_with_glibc(cuda: CudaVersion, glibc: str) -> bool:
    """Whether the headers of a C library declare functions otherwise than a toolkit does."""
    return Version(glibc) >= _FIRST_CLASHING_GLIBC and cuda < _FIRST_SOUND_CUDA


def gigabytes(project: str) -> int:
    """Return the memory that one nvcc takes at its peak for a package."""
    memory: dict[str, int] = _table()["memory"]
    return memory.get(project, memory["default"])


def imports_pkg_resources(project: str) -> bool:
    """Whether the setup.py of a package imports pkg_resources."""
    return project in _table()["pkg_resources"]["packages"]


def imported_to_build(project: str) -> tuple[str, ...]:
    """Return the packages that a setup.py imports beside the usual ones."""
    return tuple(_table()["imports"].get(project, ()))


def needs_old_setuptools(project: str, torch: str) -> bool:
    """Whether a build imports pkg_resources, by itself or by a torch of this public version."""
    try:
        old = Version(torch) < _FIRST_TORCH_WITHOUT_PKG_RESOURCES
    except InvalidVersion:
        old = False
    return old or imports_pkg_resources(project)


def _dotted(capability: ComputeCapability) -> str:
    return f"{capability.major}.{capability.minor}"
