"""Find the NVIDIA driver and the GPUs of a machine in procfs, sysfs and file names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.drivertext import (
    library_version,
    newest_driver,
    parse_gpu_information,
    parse_module_version,
)
from envbuild.world.systemlibs import system_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.world.rootfs import Root

_MODULES = ("/proc/driver/nvidia/version", "/sys/module/nvidia/version")
_GPUS = "/proc/driver/nvidia/gpus"
_BOARD = "/proc/device-tree/model"


def read_driver(machine: str, *, root: Root) -> str | None:
    """Ask the kernel module, else the names of the libraries that came with it."""
    texts = (root.text(path) or "" for path in _MODULES)
    said = next((found for text in texts if (found := parse_module_version(text))), None)
    return said or driver_of_libraries(machine, root=root)


def gpu_models(*, root: Root) -> tuple[str, ...]:
    """Return the models that the kernel module names, else the board of a Jetson."""
    texts = (root.text(f"{_GPUS}/{name}/information") or "" for name in root.names(_GPUS))
    models = tuple(model for text in texts if (model := parse_gpu_information(text)))
    board = (root.text(_BOARD) or "").strip("\0 \n")
    return models or ((board,) if "jetson" in board.lower() else ())


def driver_of_libraries(machine: str, *, root: Root) -> str | None:
    """Return the version in the names of the driver's libraries, where it put them."""
    folders = (
        *system_folders(machine),
        "/usr/lib/wsl/drivers",
        "/usr/local/nvidia/lib64",
        "/run/opengl-driver/lib",
        f"/usr/lib/{machine}-linux-gnu/nvidia",
    )
    return newest_driver(tuple(_versions(folders, root=root)))


def compat_driver(toolkits: Iterable[str], *, root: Root) -> str | None:
    """Return the version of the libcuda that toolkits bring for older drivers."""
    return newest_driver(tuple(_versions((f"{one}/compat" for one in toolkits), root=root)))


def _versions(folders: Iterable[str], *, root: Root) -> Iterator[str]:
    for folder in folders:
        for name in root.names(folder):
            version = library_version(name) if ".so." in name else None
            if version is not None:
                yield version
