"""Incident A as files: torch 2.11.0 with CUDA 13 under the NCCL of CUDA 12 and old companions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elfmaker import make_elf
from envmaker import EnvMaker

if TYPE_CHECKING:
    from pathlib import Path

    from envmaker import MadeEnv

LIBRARY = "nvidia/nccl/lib/libnccl.so.2"
HEADER = "nvidia/nccl/include/nccl.h"
OLD = ("ncclAllReduce", "ncclCommInitRank", "ncclCommSplit")
NEW = (
    "ncclAlltoAll",
    "ncclCommShrink",
    "ncclCommWindowDeregister",
    "ncclCommWindowRegister",
    "ncclDevCommCreate",
    "ncclDevCommDestroy",
)
CP311 = "cp311-cp311-manylinux_2_28_x86_64"
ANY_LINUX = "py3-none-manylinux_2_18_x86_64"


def nccl(*names: str) -> bytes:
    """Return a libnccl.so.2 whose functions are weak, as NVIDIA's are."""
    return make_elf(soname="libnccl.so.2", defines=tuple(f"?{name}" for name in names))


def torch_files() -> dict[str, bytes]:
    """Return the shared objects of torch that ask for NCCL."""
    rpath = "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN"
    return {
        "torch/lib/libtorch_cuda.so": make_elf(
            soname="libtorch_cuda.so", needed=("libnccl.so.2",), rpath=rpath, wants=(*OLD, *NEW)
        ),
        "torch/_C.cpython-311-x86_64-linux-gnu.so": make_elf(
            needed=("libtorch_cuda.so",), rpath="$ORIGIN/lib"
        ),
    }


def nccl_files(names: tuple[str, ...], note: str) -> dict[str, bytes]:
    """Return the files of a NCCL package."""
    return {LIBRARY: nccl(*names), HEADER: note.encode()}


def healthy(folder: Path) -> MadeEnv:
    """Make torch 2.11.0 with the NCCL that it asks for, and companions of its own."""
    env = EnvMaker(folder).venv()
    env.torch(
        "2.11.0+cu130",
        metadata="2.11.0",
        requires=["nvidia-nccl-cu13==2.28.9; platform_system == 'Linux'"],
        files=torch_files(),
    )
    env.install("nvidia-nccl-cu13", "2.28.9", files=nccl_files((*OLD, *NEW), "13"), tag=ANY_LINUX)
    return env


def broken(folder: Path) -> MadeEnv:
    """Make the same with what `uv pip install` then laid over it."""
    env = healthy(folder)
    env.install("nvidia-nccl-cu12", "2.26.2", files=nccl_files(OLD, "12"), tag=ANY_LINUX)
    for name, version in (("torchvision", "0.22.0"), ("torchaudio", "2.7.0")):
        files = {f"{name}/__init__.py": b"", f"{name}/_C.so": make_elf(soname="_C.so")}
        env.install(name, version, files=files, requires=["torch==2.7.0"], tag=CP311)
    return env
