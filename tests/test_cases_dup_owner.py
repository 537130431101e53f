"""Kind dup-owner: two distributions that own the same files, of which one wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from casedoctor import ANY_LINUX, NCCL_FILE, SYSTEM, image, library, put, torch_env
from envmaker import EnvMaker

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

FILES = {
    "nccl": NCCL_FILE,
    "cudnn": "nvidia/cudnn/lib/libcudnn.so.9",
    "cusparselt": "nvidia/cusparselt/lib/libcusparseLt.so.0",
    "nvshmem": "nvidia/nvshmem/lib/libnvshmem_host.so.3",
}
NEW = {"nccl": "2.29.7", "cudnn": "9.20.0.48", "cusparselt": "0.8.1", "nvshmem": "3.4.5"}
OLD = {"nccl": "2.27.3", "cudnn": "9.10.2.21", "cusparselt": "0.7.1", "nvshmem": "3.3.20"}
CP311 = "cp311-cp311-manylinux_2_28_x86_64"


def build(env: MadeEnv, family: str, cuda: int, version: str) -> None:
    path = FILES[family]
    files = {path: library(path.rpartition("/")[2], padding=8 * cuda)}
    env.install(f"nvidia-{family}-cu{cuda}", version, files=files, tag=ANY_LINUX)


def cublas(env: MadeEnv) -> MadeEnv:
    """Install both cuBLAS, which lie in folders of their own."""
    new = {"nvidia/cu13/lib/libcublas.so.13": library("libcublas.so.13")}
    old = {"nvidia/cublas/lib/libcublas.so.12": library("libcublas.so.12")}
    env.install("nvidia-cublas", "13.4.0.1", files=new, tag=ANY_LINUX)
    return env.install("nvidia-cublas-cu12", "12.9.1.4", files=old, tag=ANY_LINUX)


def test_dup_h1_a_whole_set_of_the_old_cuda_is_left(doctor: Doctor, tmp_path: Path) -> None:
    requires = [f"nvidia-{name}-cu13=={version}" for name, version in NEW.items()]
    env = torch_env(tmp_path, "2.12.1+cu132", requires=[*requires, "nvidia-cublas==13.4.0.1"])
    for name in FILES:
        build(env, name, 13, NEW[name])
    for name in FILES:
        build(env, name, 12, OLD[name])
    answer = doctor(cublas(env))
    assert answer.code == 1
    found = [line for line in answer.out.splitlines() if line.strip().startswith("error EB101")]
    assert len(found) == 4
    for name in FILES:
        assert f"on disk is nvidia-{name}-cu12 {OLD[name]}'s" in answer.out
    remove, back = [line for line in answer.repair.splitlines() if line.startswith("  uv ")]
    for name in FILES:
        assert f" nvidia-{name}-cu12" in remove
        assert f" nvidia-{name}-cu13=={NEW[name]}" in back
    assert "cublas" not in answer.repair
    assert "harmless: nvidia-cublas-cu12" in answer.out


def test_dup_h1_trap_two_cublas_overwrite_nothing(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.12.1+cu132", requires=["nvidia-cublas==13.4.0.1"])
    answer = doctor(cublas(env), "--fail-on", "warning")
    assert answer.first.startswith("healthy: "), answer.out
    assert answer.code == 0


def test_dup_h2_two_spconv_with_two_cumm(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.1.0+cu121", new_abi=False)
    for cuda in (120, 118):
        for name, version in (("spconv", "2.3.6"), ("cumm", "0.4.11")):
            module = f"{name}/core_cc.cpython-311-x86_64-linux-gnu.so"
            data = library("core_cc.so", "PyInit_core_cc", padding=8 * (cuda + len(name)))
            files = {f"{name}/__init__.py": "", module: data}
            requires = [f"cumm-cu{cuda}"] if name == "spconv" else []
            env.install(f"{name}-cu{cuda}", version, files=files, requires=requires, tag=CP311)
    answer = doctor(env)
    assert answer.code == 1
    for name, version in (("spconv", "2.3.6"), ("cumm", "0.4.11")):
        assert (
            f"error EB111: {name}-cu118 {version} and {name}-cu120 {version} both own `{name}/`,"
            f" on disk is {name}-cu118 {version}'s"
        ) in answer.out
    remove, back = [line for line in answer.repair.splitlines() if line.startswith("  uv ")]
    assert remove.endswith(" cumm-cu118 spconv-cu118")
    assert back.endswith("--no-deps cumm-cu120==0.4.11 spconv-cu120==2.3.6")


def test_dup_h3_the_onnxruntime_of_the_cpu_came_last(doctor: Doctor, tmp_path: Path) -> None:
    env = EnvMaker(tmp_path).venv()
    module = "onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so"
    for padding, name in ((8, "onnxruntime-gpu"), (16, "onnxruntime")):
        files = {"onnxruntime/__init__.py": "", module: library("state.so", padding=padding)}
        env.install(name, "1.23.2", files=files, tag=CP311)
    answer = doctor(env, "--gpu", "T4")
    assert answer.code == 1
    assert answer.first == (
        "error EB111: onnxruntime 1.23.2 and onnxruntime-gpu 1.23.2 both own `onnxruntime/`, on"
        " disk is onnxruntime 1.23.2's"
    )
    assert "`CUDAExecutionProvider` is missing" in answer.effects
    assert "uv pip uninstall" in answer.repair
    assert answer.repair.endswith("--no-deps onnxruntime-gpu==1.23.2")


@pytest.mark.parametrize("windows", [True, False])
def test_dup_h4_opencv_with_windows_over_the_one_without(
    doctor: Doctor, tmp_path: Path, *, windows: bool
) -> None:
    env = image(tmp_path).venv()
    if windows:
        put(tmp_path, f"{SYSTEM}/libGL.so.1", library("libGL.so.1"))
    for name, needed in (("opencv-python-headless", ()), ("opencv-python", ("libGL.so.1",))):
        data = library("cv2.abi3.so", "PyInit_cv2", needed=needed, padding=8 * len(name))
        files = {"cv2/__init__.py": "from .cv2 import *\n", "cv2/cv2.abi3.so": data}
        env.install(name, "4.10.0.84", files=files, tag="cp37-abi3-manylinux_2_17_x86_64")
    answer = doctor("/.venv", "--root", tmp_path)
    assert answer.code == (0 if windows else 1), answer.out
    assert (
        "EB111: opencv-python 4.10.0.84 and opencv-python-headless 4.10.0.84 both own `cv2/`, on"
        " disk is opencv-python 4.10.0.84's"
    ) in answer.first
    assert ("libGL.so.1" in answer.effects) or windows
    assert "uninstall" in answer.repair
    assert answer.repair.endswith("--no-deps opencv-python-headless==4.10.0.84")
