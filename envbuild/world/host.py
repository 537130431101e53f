"""Read the machine, or the image, that an environment runs on; no program of it is started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from envbuild.core.drivertext import SmiText, parse_nvidia_smi, parse_tegra_release
from envbuild.core.limitstext import MemoryText, parse_meminfo
from envbuild.core.osrelease import parse_os_release
from envbuild.core.redact import redact_text
from envbuild.model.host import Host
from envbuild.world.limits import memory_limit, usable_cores
from envbuild.world.nvidiadriver import compat_driver, gpu_models, read_driver
from envbuild.world.rootfs import Root
from envbuild.world.systemlibs import read_glibc, read_libstdcxx
from envbuild.world.toolchain import conda_prefixes, read_compilers, read_toolkits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.installed import Installed
    from envbuild.model.target import Gpu

VARIABLES = (
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONNOUSERSITE",
    "PYTHONUSERBASE",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "CUDA_FORCE_PTX_JIT",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_DISABLE_REQUIRE",
    "CC",
    "CXX",
    "CUDAHOSTCXX",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "TORCH_CUDA_ARCH_LIST",
    "CUMM_CUDA_ARCH_LIST",
    "FLASH_ATTN_CUDA_ARCHS",
    "FLASH_ATTENTION_SKIP_CUDA_BUILD",
    "FLASH_ATTENTION_FORCE_BUILD",
    "FORCE_CUDA",
    "MAX_JOBS",
    "NVCC_THREADS",
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "NCCL_DEBUG",
    "UV_NO_SYNC",
    "UV_FROZEN",
    "UV_LOCKED",
    "UV_TORCH_BACKEND",
    "UV_INDEX",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX_STRATEGY",
    "UV_FIND_LINKS",
    "UV_PROJECT_ENVIRONMENT",
    "UV_LINK_MODE",
    "UV_NO_BUILD_ISOLATION",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_TARGET",
    "PIP_USER",
    "PIP_NO_BUILD_ISOLATION",
    "PIP_REQUIRE_VIRTUALENV",
)
_MOST_VALUE = 8192


def read_host(
    *,
    root: str = "/",
    environ: Mapping[str, str],
    installed: Installed | None = None,
    nvidia_smi: str | None = None,
) -> Host:
    """Read a host; what cannot be read is None or empty.

    ``installed`` adds the toolkits and C++ libraries that an environment brings; ``nvidia_smi``
    is the output of that program where somebody has it at hand.
    """
    folder = Root(root)
    machine = installed.machine if installed is not None else os.uname().machine
    smi = parse_nvidia_smi(nvidia_smi) if nvidia_smi else SmiText()
    seen = () if folder.is_image else gpu_models(root=folder)
    gpus, unknown = _gpus(seen or smi.gpus)
    toolkits = read_toolkits(root=folder, environ=environ, installed=installed)
    memory = MemoryText() if folder.is_image else parse_meminfo(folder.text("/proc/meminfo") or "")
    prefixes = conda_prefixes(environ, installed)
    system, version = read_system(folder)
    return Host(
        machine=machine,
        glibc=read_glibc(machine, root=folder),
        libstdcxx=read_libstdcxx(machine, prefixes, root=folder),
        driver=smi.driver or (None if folder.is_image else read_driver(machine, root=folder)),
        gpus=gpus,
        tegra=parse_tegra_release(folder.text("/etc/nv_tegra_release") or ""),
        compilers=read_compilers(root=folder, environ=environ),
        toolkits=toolkits,
        memory_bytes=memory.total,
        memory_limit_bytes=None if folder.is_image else memory_limit(root=folder),
        cores=None if folder.is_image else usable_cores(root=folder),
        environment=_variables(environ),
        is_image=folder.is_image,
        compat_driver=compat_driver((one.path for one in toolkits), root=folder),
        unknown_gpus=unknown,
        swap_bytes=memory.swap,
        shm_bytes=None if folder.is_image else _shm_bytes(),
        system=system,
        system_version=version,
    )


def read_system(root: Root) -> tuple[tuple[str, ...], str]:
    """Return the names of a root's distribution, and its version."""
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = root.text(path)
        if text is not None:
            return parse_os_release(text)
    return (), ""


def _gpus(names: tuple[str, ...]) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    found = [(name, _gpu(name)) for name in names]
    known = tuple(gpu for _, gpu in found if gpu is not None)
    return known, tuple(name for name, gpu in found if gpu is None)


def _gpu(name: str) -> Gpu | None:
    from envbuild.core.gpus import UnknownGpuError, find_gpu  # noqa: PLC0415 - a table of them

    try:
        return find_gpu(name)
    except UnknownGpuError:
        return None


def _variables(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Keep the variables that change what is loaded or built, without credentials."""
    return tuple(
        (name, redact_text(environ[name])[:_MOST_VALUE]) for name in VARIABLES if name in environ
    )


def _shm_bytes() -> int | None:
    try:
        status = os.statvfs("/dev/shm")  # noqa: S108
    except OSError:
        return None
    return status.f_frsize * status.f_blocks
