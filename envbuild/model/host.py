"""The machine, or the image, that an environment runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.cuda import CudaVersion
    from envbuild.model.target import Gpu


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiler:
    """A compiler that was found: ``path``, and its version from its own files or name."""

    path: str
    version: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolkit:
    """A CUDA toolkit: its folder, its version from version.json, and how it was found."""

    path: str
    version: CudaVersion | None
    how: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A host; fields are None where nothing could be read.

    ``driver`` is the NVIDIA driver's version. ``gpus`` is empty on a machine without one.
    ``memory_bytes`` and ``memory_limit_bytes`` are the machine's and the cgroup's.
    ``environment`` holds only the variables that change what is loaded or built.
    ``is_image`` is True for an unpacked image, whose driver and memory say nothing.
    """

    machine: str = "x86_64"
    glibc: str | None = None
    libstdcxx: tuple[tuple[str, str], ...] = ()
    driver: str | None = None
    gpus: tuple[Gpu, ...] = ()
    tegra: str | None = None
    compilers: tuple[Compiler, ...] = ()
    toolkits: tuple[Toolkit, ...] = ()
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    cores: int | None = None
    environment: tuple[tuple[str, str], ...] = ()
    is_image: bool = False

    def variable(self, name: str) -> str | None:
        """Return an environment variable, or None where it is unset or empty."""
        return next((value for key, value in self.environment if key == name and value), None)
