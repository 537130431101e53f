"""Kind lib-shadow: a library from outside that wins over the wheel's, or loses to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from casedoctor import ANY_LINUX, PLAIN, RPATH, SYSTEM, image, library, put, told, torch_env
from elfmaker import make_elf
from imagemaker import NEW_TORCH, OLD_TORCH

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Answer, Doctor
    from envmaker import MadeEnv

JITLINK = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
SPARSE = "nvidia/cusparse/lib/libcusparse.so.12"
RUNTIME = "nvidia/cuda_runtime/lib/libcudart.so.12"
DEPS = "libtorch_global_deps.so"
ADD = "__nvJitLinkAddData_12_{}"
CUDNN = ("libcudnn.so.9", "libcudnn_ops.so.9", "libcudnn_graph.so.9")


def jitlink(*minors: int) -> bytes:
    soname = "libnvJitLink.so.12"
    return library(soname, *(f"{ADD.format(minor)}@@{soname}" for minor in minors))


def on_path(
    doctor: Doctor, env: MadeEnv, folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str
) -> Answer:
    value = f"{folder}:"
    monkeypatch.setenv("LD_LIBRARY_PATH", value)
    return doctor(env, *words, host=told(PLAIN, LD_LIBRARY_PATH=value))


def with_toolkit(folder: Path, version: str, text: str) -> MadeEnv:
    """Make a torch whose cuSPARSE looks for nvJitLink by RUNPATH, and a toolkit of CUDA 12.1."""
    env = torch_env(
        folder,
        f"{version}+cu124",
        metadata=version,
        new_abi=False,
        needs=("libcusparse.so.12", "libcudart.so.12"),
    )
    env.write("torch/__init__.py", text)
    opened = make_elf(soname=DEPS, needed=("libcudart.so.12",), rpath=RPATH)
    env.write(f"torch/lib/{DEPS}", opened)
    soname = "libnvJitLink.so.12"
    sparse = make_elf(
        soname="libcusparse.so.12",
        needed=(soname,),
        runpath="$ORIGIN/../../nvjitlink/lib",
        wants=(f"{ADD.format(1)}@{soname}={soname}",),
    )
    env.install("nvidia-nvjitlink-cu12", "12.4.127", files={JITLINK: jitlink(1, 4)}, tag=ANY_LINUX)
    env.install("nvidia-cusparse-cu12", "12.3.1.170", files={SPARSE: sparse}, tag=ANY_LINUX)
    runtime = {RUNTIME: library("libcudart.so.12")}
    env.install("nvidia-cuda-runtime-cu12", "12.4.127", files=runtime, tag=ANY_LINUX)
    put(folder, f"cuda-12.1/lib64/{soname}", jitlink(0))
    return env


def test_shd_h1_an_old_nvjitlink_on_the_path(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = with_toolkit(tmp_path, "2.5.1", OLD_TORCH)
    folder = tmp_path / "cuda-12.1" / "lib64"
    answer = on_path(doctor, env, folder, monkeypatch)
    assert answer.code == 1
    assert answer.first == (
        f"error EB701: LD_LIBRARY_PATH puts `{folder}/libnvJitLink.so.12` (12.1) before the copy of"
        " nvidia-nvjitlink-cu12 12.4.127"
    )
    assert "__nvJitLinkAddData_12_1" in answer.effects
    assert answer.repair.endswith("unset LD_LIBRARY_PATH")


def test_shd_h1_trap_a_torch_that_opens_its_own_first(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = with_toolkit(tmp_path, "2.6.0", NEW_TORCH)
    folder = tmp_path / "cuda-12.1" / "lib64"
    answer = on_path(doctor, env, folder, monkeypatch, "--fail-on", "note")
    assert answer.code == 0, answer.out
    assert answer.first.startswith("healthy: ")


def test_shd_h1_trap_a_library_that_comes_by_rpath(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nccl = "nvidia/nccl/lib/libnccl.so.2"
    env = torch_env(tmp_path, "2.8.0+cu128", metadata="2.8.0", nccl=("ncclAllReduce",))
    files = {nccl: library("libnccl.so.2", "ncclAllReduce")}
    env.install("nvidia-nccl-cu12", "2.27.3", files=files, tag=ANY_LINUX)
    put(tmp_path, "old/libnccl.so.2", library("libnccl.so.2"))
    answer = on_path(doctor, env, tmp_path / "old", monkeypatch, "--fail-on", "note")
    assert answer.code == 0, answer.out


def test_shd_h2_an_older_cudnn_on_the_path(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = torch_env(
        tmp_path,
        "2.8.0+cu128",
        metadata="2.8.0",
        needs=CUDNN[:1],
        requires=["nvidia-cudnn-cu12==9.10.2.21"],
    )
    files = {f"nvidia/cudnn/lib/{name}": library(name) for name in CUDNN}
    env.install("nvidia-cudnn-cu12", "9.10.2.21", files=files, tag=ANY_LINUX)
    folder = tmp_path / "old"
    for name in CUDNN:
        put(folder, f"{name}.1.0", library(name, padding=8))
        (folder / name).symlink_to(f"{name}.1.0")
    answer = on_path(doctor, env, folder, monkeypatch)
    assert answer.code == 1
    assert answer.first.startswith(f"error EB701: LD_LIBRARY_PATH puts `{folder}/libcudnn_")
    assert "(9.1.0) before the copy of nvidia-cudnn-cu12 9.10.2.21" in answer.first
    assert answer.repair.endswith("unset LD_LIBRARY_PATH")


@pytest.mark.parametrize("there", [True, False])
def test_shd_h3_a_cudnn_of_the_system_fills_a_hole(
    doctor: Doctor, tmp_path: Path, *, there: bool
) -> None:
    env = image(tmp_path).venv()
    wanted = ["nvidia-cudnn-cu13==9.20.0.48"]
    torch_env(env, "2.12.1+cu132", needs=CUDNN[:1], requires=wanted)
    part = "libcudnn_engines_tensor_ir.so.9"
    files = {f"nvidia/cudnn/lib/{name}": library(name) for name in CUDNN}
    names = b"\0" + b"\0".join(name.encode() for name in (*CUDNN[1:], part)) + b"\0"
    main = library(CUDNN[0], sections={".rodata": names})
    files["nvidia/cudnn/lib/libcudnn.so.9"] = main
    env.install("nvidia-cudnn-cu13", "9.20.0.48", files=files, tag=ANY_LINUX)
    if there:
        put(tmp_path, f"{SYSTEM}/{part}.23.2", library(part))
        (tmp_path / SYSTEM / part).symlink_to(f"{part}.23.2")
    answer = doctor("/.venv", "--root", tmp_path)
    assert answer.code == int(there), answer.out
    if there:
        assert answer.first == (
            f"error EB706: `/lib/x86_64-linux-gnu/{part}` (9.23.2) is used with"
            f" nvidia-cudnn-cu13 9.20.0.48, which has no {part}"
        )
        assert "apt-get remove -y 'libcudnn*'" in answer.repair
