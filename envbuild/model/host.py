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
    """A CUDA toolkit: its folder, its version from its own files, and how it was found.

    ``how`` is ``CUDA_HOME``, ``CUDA_PATH``, ``PATH``, ``default``, ``conda`` or ``wheel``.
    ``nvcc`` is the compiler's path, None where the folder has none. What a variable names is
    listed even where nothing lies there; ``exists`` is then False.
    """

    path: str
    version: CudaVersion | None
    how: str
    nvcc: str | None = None
    exists: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A host; fields are None where nothing could be read.

    ``driver`` is the NVIDIA driver's version. ``gpus`` is empty on a machine without one.
    ``memory_bytes`` and ``memory_limit_bytes`` are the machine's and the cgroup's.
    ``environment`` holds only the variables that change what is loaded or built.
    ``is_image`` is True for an unpacked image, whose driver and memory say nothing.
    ``compat_driver`` is the version of the libcuda that a toolkit's ``compat`` folder brings.
    ``unknown_gpus`` are names that mean no known GPU. ``compilers`` come in the order of PATH,
    those that CC, CXX and CUDAHOSTCXX name first. ``cores`` is what this process may use.
    ``system`` are the names of its distribution, the nearest first (``ubuntu``, ``debian``), and
    ``system_version`` is the version of that.
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
    compat_driver: str | None = None
    unknown_gpus: tuple[str, ...] = ()
    swap_bytes: int | None = None
    shm_bytes: int | None = None
    system: tuple[str, ...] = ()
    system_version: str = ""

    def variable(self, name: str) -> str | None:
        """Return an environment variable, or None where it is unset or empty."""
        return next((value for key, value in self.environment if key == name and value), None)
