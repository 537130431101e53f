"""Kind missing-kernels, as doctor reads it in the files of an environment."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from casedoctor import (
    ANY_LINUX,
    NCCL,
    NCCL_FILE,
    PLAIN,
    card,
    device_code,
    library,
    told,
    torch_env,
)
from elfmaker import PTX, SASS, fat_binary

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

HOPPER = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"
CP311 = "cp311-cp311-manylinux_2_17_x86_64"


def test_krn_h1_a_torch_that_ends_with_hopper(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.7.0+cu126", metadata="2.7.0", archs=HOPPER)
    env.install("torchvision", "0.22.0", requires=["torch==2.7.0"])
    answer = doctor(env, "--gpu", "RTX 5090", "--select", "EB4")
    assert answer.code == 1
    assert answer.first == "error EB401: torch 2.7.0 has no code for sm_120"
    assert "SASS sm_50 … sm_90, no PTX" in answer.effects
    assert "torch==2.7.0+cu128 torchvision==0.22.0+cu128" in answer.repair
    assert answer.repair.endswith("--index https://download.pytorch.org/whl/cu128")


def test_krn_h1_trap_the_files_say_it_and_no_version(doctor: Doctor, tmp_path: Path) -> None:
    """A build for CUDA 12.6 with the code, and one for CUDA 12.8 without."""
    own = torch_env(tmp_path / "own", "2.7.0+cu126", archs=f"{HOPPER} sm_120")
    assert doctor(own, "--gpu", "RTX 5090", "--fail-on", "note").code == 0
    bare = torch_env(tmp_path / "bare", "2.7.0+cu128", archs=HOPPER)
    assert "torch 2.7.0+cu128 has no code for sm_120" in doctor(bare, "--gpu", "RTX 5090").first


def test_krn_h1_no_build_of_the_release_has_it(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.6.0+cu124", metadata="2.6.0", archs=HOPPER, new_abi=False)
    env.install("torchvision", "0.21.0", requires=["torch==2.6.0"])
    gpus = (card("NVIDIA GeForce RTX 5090", "12.0"),)
    host = replace(PLAIN, gpus=gpus, driver="570.86.10")
    answer = doctor(env, "--select", "EB4", host=host)
    assert answer.first == "error EB401: torch 2.6.0 has no code for sm_120"
    assert (
        "uv pip install torch==2.7.0+cu128 torchvision==0.22.0+cu128"
        " --index https://download.pytorch.org/whl/cu128"
    ) in answer.repair
    assert "install or build every extension for that torch" in answer.repair


def test_krn_h2_the_pin_of_a_dependency_keeps_the_release(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.7.1+cu126", metadata="2.7.1", archs=HOPPER)
    env.install("vllm", "0.10.0", requires=["torch==2.7.1"])
    answer = doctor(env, "--gpu", "12.0")
    assert answer.first == "error EB401: torch 2.7.1 has no code for sm_120"
    assert " torch==2.7.1+cu128 " in answer.repair


def test_krn_h2_torch_alone_was_swapped(doctor: Doctor, tmp_path: Path) -> None:
    """Installed with `--no-deps`, the newer torch finds the NCCL of the one before."""
    env = torch_env(
        tmp_path,
        "2.8.0+cu128",
        metadata="2.8.0",
        archs=f"{HOPPER} sm_100 sm_120",
        nccl=(*NCCL, "ncclCommWindowRegister"),
        requires=["nvidia-nccl-cu12==2.27.3"],
    )
    files = {NCCL_FILE: library("libnccl.so.2", *NCCL)}
    env.install("nvidia-nccl-cu12", "2.26.2", files=files, tag=ANY_LINUX)
    env.install("vllm", "0.10.0", requires=["torch==2.7.1"])
    answer = doctor(env, "--gpu", "12.0")
    assert answer.first.startswith("error EB301: torch 2.8.0 needs 1 symbol that `libnccl.so.2`")
    assert "ncclCommWindowRegister (since NCCL 2.27.3)" in answer.effects
    assert "vllm 0.10.0 is made for torch ==2.7.1, found torch 2.8.0+cu128" in answer.out
    assert "nvidia-nccl-cu12==2.27.3" in answer.repair


def spconv(env: MadeEnv) -> MadeEnv:
    """Install spconv for CUDA 12.0, with code up to Ada and PTX of the first Maxwell."""
    entries = [(SASS, number, 0) for number in (52, 60, 70, 75, 80, 86, 89)]
    code = fat_binary(*entries, (PTX, 52, 0), isa=(8, 0))
    data = library("core_cc.so", "PyInit_core_cc", sections={".nv_fatbin": code})
    files = {"spconv/__init__.py": "", "spconv/core_cc.cpython-311-x86_64-linux-gnu.so": data}
    env.install("spconv-cu120", "2.3.6", files=files, requires=["cumm-cu120==0.4.11"], tag=CP311)
    return env.install("cumm-cu120", "0.4.11", tag=CP311)


def test_krn_h3_a_spconv_that_cannot_compile_for_the_card(doctor: Doctor, tmp_path: Path) -> None:
    env = spconv(torch_env(tmp_path, "2.7.0+cu128", archs="sm_80 sm_90 sm_120"))
    answer = doctor(env, "--gpu", "RTX 5080", "--fail-on", "warning")
    assert answer.code == 1
    assert answer.first == (
        "warning EB402: sm_120 runs spconv-cu120 2.3.6 only by compiling its compute_52 code when"
        " it is loaded; it also bundles NVRTC 12.0, which knows no GPU newer than sm_90"
    )
    assert "SASS sm_52 … sm_89, PTX compute_52" in answer.effects
    assert "CUMM_CUDA_ARCH_LIST='12.0' CUMM_CUDA_VERSION='12.8'" in answer.repair
    assert "CUMM_DISABLE_JIT='1' SPCONV_DISABLE_JIT='1'" in answer.repair
    assert "uv pip install --no-build-isolation git+" in answer.repair


def test_krn_h3_trap_a_card_that_it_has_code_for(doctor: Doctor, tmp_path: Path) -> None:
    env = spconv(torch_env(tmp_path, "2.7.0+cu128", archs="sm_80 sm_90"))
    assert doctor(env, "--gpu", "RTX 4090", "--fail-on", "note").code == 0


def test_krn_h4_an_assembler_from_before_the_card(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.9.1+cu130", archs="sm_90 sm_120", requires=["triton==3.5.1"])
    env.install("triton", "3.5.1")
    gpus = (card("NVIDIA GB10", "12.1"),)
    host = replace(PLAIN, gpus=gpus, driver="580.95.05")
    answer = doctor(env, host=host)
    assert answer.first.startswith("warning EB405: the ptxas inside triton 3.5.1 is of CUDA 12.8")
    assert "does not know sm_121" in answer.first
    assert "torch itself runs" in answer.first
    assert "TRITON_PTXAS_PATH" in answer.repair
    named = told(host, TRITON_PTXAS_PATH="/usr/local/cuda-13.0/bin/ptxas")
    assert doctor(env, "--fail-on", "note", host=named).code == 0


@pytest.mark.parametrize("gpu", ["GB10", "12.1"])
def test_krn_h4_trap_sm_121_runs_the_code_of_sm_120(
    doctor: Doctor, tmp_path: Path, gpu: str
) -> None:
    env = torch_env(tmp_path, "2.9.1+cu130", archs="sm_90 sm_120")
    answer = doctor(env, "--gpu", gpu, "--fail-on", "note")
    assert answer.code == 0, answer.out


def test_krn_h5_a_base_from_before_the_card(doctor: Doctor, tmp_path: Path) -> None:
    old = "sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86"
    env = torch_env(tmp_path, "1.13.1+cu116", new_abi=False, python="3.10", archs=old)
    module = library("tpk", sections={".nv_fatbin": device_code("sm_35")})
    files = {"torch_points_kernels/points_cuda.so": module}
    env.install("torch-points-kernels", "0.7.0", files=files, tag="cp310-cp310-linux_x86_64")
    answer = doctor(env, "--gpu", "RTX PRO 6000 Blackwell")
    assert answer.code == 1
    assert answer.first == "error EB401: torch 1.13.1+cu116 has no code for sm_120"
    assert "the first that has is of torch 2.7.0" in answer.repair
    assert "EB401: torch-points-kernels 0.7.0 has no code for sm_120" in answer.out
    assert "SASS sm_35, no PTX" in answer.out
    assert "TORCH_CUDA_ARCH_LIST='12.0'" in answer.repair
