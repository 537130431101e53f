"""Kinds arch-list-build, toolkit-mismatch, host-compiler, setuptools-removal: doctor on a machine.

What the install script makes of them is in test_cases_build.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from casedoctor import PLAIN, card, told, torch_env

from envbuild.model.cuda import CudaVersion
from envbuild.model.host import Compiler, Toolkit

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

    from envbuild.model.host import Host

LIST = {"TORCH_CUDA_ARCH_LIST": "8.6"}
RTX_5080 = (card("NVIDIA GeForce RTX 5080", "12.0"),)


def toolkit(version: str, path: str = "/usr/local/cuda", how: str = "default") -> Toolkit:
    return Toolkit(path=path, version=CudaVersion.parse(version), how=how, nvcc=f"{path}/bin/nvcc")


def machine(cuda: str | None = "12.8", gcc: str = "11.4.0", **changes: object) -> Host:
    toolkits = (toolkit(cuda),) if cuda else ()
    compilers = (Compiler(path="/usr/bin/g++", version=gcc),)
    return replace(PLAIN, toolkits=toolkits, compilers=compilers, **changes)  # type: ignore[arg-type]


def ready(folder: Path, torch: str, setuptools: str = "80.9.0", **parts: object) -> MadeEnv:
    """Make an environment in which nothing but the machine can hinder a build."""
    env = torch_env(folder, torch, **parts)  # type: ignore[arg-type]
    return env.install("ninja", "1.11.1").install("setuptools", setuptools)


def test_a_machine_that_builds_is_not_spoken_of(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.8.0+cu128")
    answer = doctor(env, "--build", "--fail-on", "note", host=told(machine(), **LIST))
    assert answer.first.startswith("healthy: "), answer.out
    assert answer.code == 0


def test_arc_h1_no_list_and_no_gpu(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.8.0+cu128", archs="sm_90 sm_100 sm_120")
    answer = doctor(env, "--build", "--gpu", "B200", "--gpu", "RTX 5090", host=machine())
    assert answer.code == 1
    assert answer.first == (
        "error EB604: TORCH_CUDA_ARCH_LIST is unset and no GPU is visible: torch raises IndexError"
    )
    assert answer.repair.endswith("export TORCH_CUDA_ARCH_LIST='10.0;12.0'")
    assert doctor(env, host=machine()).code == 0, "nothing is built"


@pytest.mark.parametrize("cuda", ["12.4", "12.8"])
def test_arc_h2_a_torch_from_before_the_architecture(
    doctor: Doctor, tmp_path: Path, cuda: str
) -> None:
    env = ready(tmp_path, "2.5.1+cu124", new_abi=False)
    host = told(machine(cuda), TORCH_CUDA_ARCH_LIST="10.0")
    answer = doctor(env, "--build", host=host)
    assert answer.code == 1
    assert answer.first == (
        "error EB604: torch 2.5.1+cu124 does not know 10.0 (TORCH_CUDA_ARCH_LIST), torch 2.7 does"
    )
    assert "install torch 2.7 or newer; do not shorten the list" in answer.repair
    assert "nvcc" not in answer.repair, "which nvcc is needed, that torch decides"


@pytest.mark.parametrize("variables", [{}, {"TORCH_CUDA_ARCH_LIST": "12.0"}])
def test_arc_h3_an_nvcc_from_before_the_card(
    doctor: Doctor, tmp_path: Path, variables: dict[str, str]
) -> None:
    env = ready(tmp_path, "2.8.0+cu128", archs="sm_90 sm_120")
    host = told(machine("12.4", gpus=RTX_5080, driver="570.86.10"), **variables)
    answer = doctor(env, "--build", host=host)
    assert answer.code == 1
    assert answer.first.startswith(
        "error EB604: /usr/local/cuda: nvcc 12.4 does not compile for 12.0 ("
    )
    assert answer.first.endswith(", wanted CUDA 12.8 or newer")
    assert "cuda-toolkit-12-8" in answer.repair
    assert "export CUDA_HOME=/usr/local/cuda-12.8" in answer.repair


def test_arc_h4_cmake_takes_a_gb10_for_another(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.10.0+cu130", archs="sm_90 sm_120")
    gpus = (card("NVIDIA GB10", "12.1"),)
    host = machine("13.0", gpus=gpus, driver="580.95.05")
    answer = doctor(env, "--build", host=host)
    assert answer.code == 0
    assert "warning EB604: TORCH_CUDA_ARCH_LIST is unset and NVIDIA GB10 is 12.1" in answer.first
    assert answer.repair.endswith("export TORCH_CUDA_ARCH_LIST=12.1")
    named = told(host, TORCH_CUDA_ARCH_LIST="12.1")
    assert doctor(env, "--build", "--fail-on", "note", host=named).code == 0


def test_tkt_h1_the_nvcc_of_debian_stands_first(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.1.0+cu121", new_abi=False, python="3.9")
    debian = toolkit("10.1", "/usr", "PATH")
    own = toolkit("12.1", "/usr/local/cuda-12.1")
    host = told(replace(machine(gcc="13.3.0"), toolkits=(debian, own)), **LIST)
    answer = doctor(env, "--build", host=host)
    assert answer.code == 1
    assert answer.first == (
        "error EB601: /usr: nvcc is of CUDA 10.1, torch 2.1.0+cu121 of CUDA 12.1: CUDA extensions"
        " cannot be built"
    )
    assert "/usr/bin/nvcc is of the distribution" in answer.effects
    assert answer.repair.endswith("export CUDA_HOME=/usr/local/cuda-12.1")
    assert "g++" not in answer.out, "what the wrong nvcc takes is no matter"


def test_tkt_h1_trap_another_minor_is_a_note(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.1.0+cu121", new_abi=False, python="3.9")
    host = told(machine("12.4"), **LIST)
    answer = doctor(env, "--build", "--fail-on", "warning", host=host)
    assert answer.code == 0, answer.out
    assert "torch warns and builds" in answer.out


def test_tkt_h2_no_nvcc_at_all(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.7.1+cu128", python="3.12")
    answer = doctor(env, "--build", host=told(machine(None), **LIST))
    assert answer.code == 1
    assert "no CUDA toolkit was found: CUDA extensions cannot be built" in answer.first
    assert "cuda-toolkit-12-8, or a `-devel` image" in answer.repair


def test_tkt_h3_both_versions_are_named(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.8.0+cu128", metadata="2.8.0")
    answer = doctor(env, "--build", host=told(machine("13.0"), **LIST))
    assert answer.code == 1
    assert "nvcc is of CUDA 13.0, torch 2.8.0+cu128 of CUDA 12.8" in answer.first
    assert "export CUDA_HOME=/usr/local/cuda-12.8" in answer.repair


def test_tkt_h4_a_torch_without_cuda(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.8.0+cpu", archs="")
    answer = doctor(env, "--build", host=told(machine(), **LIST))
    assert answer.code == 1
    assert answer.first == (
        "error EB608: torch 2.8.0+cpu is a CPU build (torch.version.cuda is None): CUDA extensions"
        " cannot be built, with any nvcc"
    )
    assert "torch==2.8.0+cu128" in answer.repair
    assert doctor(env, host=machine()).code == 0, "nothing is built"


@pytest.mark.parametrize(
    ("cuda", "gcc", "newest"), [("12.8", "15.1.0", "14"), ("12.3", "13.3.0", "12")]
)
def test_gcc_h1_a_compiler_after_nvcc(
    doctor: Doctor, tmp_path: Path, *, cuda: str, gcc: str, newest: str
) -> None:
    env = ready(tmp_path, "2.8.0+cu128")
    answer = doctor(env, "--build", host=told(machine(cuda, gcc), **LIST))
    assert answer.code == 1
    assert answer.first == (
        f"error EB602: /usr/bin/g++: g++ {gcc} is newer than nvcc {cuda} accepts (g++ {newest} at"
        " most)"
    )
    assert f"apt-get install -y g++-{newest} && export CC=gcc-{newest}" in answer.repair
    assert f"CUDAHOSTCXX=g++-{newest}" in answer.repair


def test_gcc_h2_headers_and_not_the_compiler(doctor: Doctor, tmp_path: Path) -> None:
    env = ready(tmp_path, "2.8.0+cu128")
    answer = doctor(env, "--build", host=told(machine(glibc="2.41"), **LIST))
    assert answer.code == 1
    assert answer.first == (
        "error EB603: /usr/local/cuda: the headers of glibc 2.41 clash with those of CUDA 12.8"
        " (`cospi`, `sinpi`)"
    )
    assert "Ubuntu 24.04, Debian 12" in answer.repair
    assert "CUDA 13" in answer.repair
    assert "EB602" not in answer.out


@pytest.mark.parametrize(("torch", "cuda", "code"), [("2.0.1", "11.7", 1), ("2.2.2", "12.1", 0)])
def test_set_h1_pkg_resources_is_gone(
    doctor: Doctor, tmp_path: Path, *, torch: str, cuda: str, code: int
) -> None:
    """From torch 2.2 on nobody imports it, whatever a report says."""
    tag = "cu" + cuda.replace(".", "")
    env = ready(tmp_path, f"{torch}+{tag}", "84.2.1", new_abi=False, python="3.10")
    answer = doctor(env, "--build", host=told(machine(cuda), **LIST))
    assert answer.code == code, answer.out
    if code:
        assert answer.first == (
            "error EB606: setuptools 84.2.1 has no pkg_resources, torch 2.0.1+cu117 needs it to"
            " build"
        )
        assert answer.repair.endswith("'setuptools<82'")


GB = 1 << 30


@pytest.mark.parametrize(
    ("memory", "jobs"),
    [
        pytest.param({"memory_bytes": 32 * GB}, "6", id="oom_h1"),
        pytest.param({"memory_bytes": 128 * GB, "memory_limit_bytes": 16 * GB}, "3", id="oom_h2"),
    ],
)
def test_more_compilers_than_memory(
    doctor: Doctor, tmp_path: Path, memory: dict[str, int], jobs: str
) -> None:
    """The limit of the container counts, whatever the machine has."""
    env = ready(tmp_path, "2.8.0+cu128")
    (tmp_path / "pyproject.toml").write_text(BUILDS_FLASH_ATTN, "utf-8")
    host = told(machine(cores=16, **memory), TORCH_CUDA_ARCH_LIST="9.0")
    answer = doctor(env, "--build", "--select", "EB605", host=host)
    assert "EB605: 16 jobs of about 5 GB each may take 80 GB to build flash-attn" in answer.first
    assert answer.repair.endswith(f"export MAX_JOBS={jobs}")
    few = told(machine(cores=16, **memory), TORCH_CUDA_ARCH_LIST="9.0", MAX_JOBS=jobs)
    assert doctor(env, "--build", "--fail-on", "note", host=few).code == 0


BUILDS_FLASH_ATTN = """\
[project]
name = "x"
version = "0"
dependencies = []

[tool.envbuild.build]
flash-attn = { prefer = "source" }
"""
