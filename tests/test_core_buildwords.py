"""What builds are told, refusals, and the jobs, in Python and in the shell."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.buildjobs import JOBS_FUNCTION, MEMORY_FUNCTIONS, jobs_for
from envbuild.core.buildwords import (
    BY_MACHINE,
    BuildAim,
    arch_list,
    build_refusals,
    built_capabilities,
    common_variables,
    nvcc_refusals,
    oldest_nvcc,
    variables_for,
)
from envbuild.model.cuda import ComputeCapability, CudaVersion

SHELLS = [shell for name in ("sh", "dash", "bash") if (shell := which(name)) is not None]
GIB = 1 << 30


def aim(*capabilities: str, torch: str = "2.7.0", cuda: str | None = "12.8") -> BuildAim:
    return BuildAim(
        torch=torch,
        cuda=None if cuda is None else CudaVersion.parse(cuda),
        capabilities=tuple(ComputeCapability.parse(one) for one in capabilities),
    )


def told(project: str, one: BuildAim) -> dict[str, str]:
    return {v.name: v.value for v in (*common_variables(one), *variables_for(project, one))}


BLACKWELL = aim("12.0", "10.0")


def test_the_gpus_in_the_words_of_everybody() -> None:
    words = told("pointops", BLACKWELL)
    assert words["TORCH_CUDA_ARCH_LIST"] == "10.0;12.0"
    assert words["CUDAARCHS"] == words["CMAKE_CUDA_ARCHITECTURES"] == "100;120"
    assert words["FORCE_CUDA"] == "1"
    assert {name for name, value in words.items() if not value} == set(BY_MACHINE)


@pytest.mark.parametrize(
    ("project", "name", "value"),
    [
        ("flash-attn", "FLASH_ATTN_CUDA_ARCHS", "100;120"),
        ("flash-attn", "FLASH_ATTENTION_FORCE_BUILD", "TRUE"),
        ("spconv-cu128", "CUMM_CUDA_ARCH_LIST", "10.0;12.0"),
        ("cumm", "CUMM_CUDA_VERSION", "12.8"),
        ("cumm", "CUMM_DISABLE_JIT", "1"),
        ("spconv", "SPCONV_DISABLE_JIT", "1"),
        ("transformer-engine", "NVTE_CUDA_ARCHS", "100;120"),
        ("deepspeed", "DS_BUILD_FUSED_ADAM", "1"),
        ("mmcv", "MMCV_WITH_OPS", "1"),
        ("tinycudann", "TCNN_CUDA_ARCHITECTURES", "100;120"),
        ("natten", "NATTEN_CUDA_ARCH", "10.0;12.0"),
    ],
)
def test_the_words_of_a_package(project: str, name: str, value: str) -> None:
    assert told(project, BLACKWELL)[name] == value
    reasons = [one.reason for one in variables_for(project, BLACKWELL)]
    assert all(reason and not reason.endswith(".") for reason in reasons)


def test_ptx_is_added_to_the_newest_where_the_words_have_it() -> None:
    one = replace(BLACKWELL, ptx=True)
    assert arch_list(one) == "10.0;12.0+PTX"
    assert told("cumm", one)["CUMM_CUDA_ARCH_LIST"] == "10.0;12.0+PTX"
    assert told("flash-attn", one)["FLASH_ATTN_CUDA_ARCHS"] == "100;120"


def test_a_package_that_knows_few_is_asked_for_what_runs_on_the_gpu() -> None:
    ada = aim("8.9", "8.6", "12.1", torch="2.8.0")
    assert told("flash-attn", ada)["FLASH_ATTN_CUDA_ARCHS"] == "80;120"
    assert [str(one) for one in built_capabilities("flash-attn", ada)] == ["8.0", "12.0"]
    assert [str(one) for one in built_capabilities("pointops", ada)] == ["8.6", "8.9", "12.1"]


def test_a_cpu_build_is_told_of_no_gpu() -> None:
    assert set(told("flash-attn", aim(cuda=None))) == {"MAX_JOBS", "NVCC_THREADS"}
    assert build_refusals(["flash-attn-3"], aim("12.0", cuda=None)) == ()
    assert built_capabilities("pointops", aim("12.0", cuda=None)) == ()


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (aim("10.0", "12.0"), []),
        (aim("9.0", torch="2.5.1", cuda="12.4"), []),
        (
            aim("12.0", torch="2.5.1"),
            ["torch 2.5.1 does not take 12.0 in TORCH_CUDA_ARCH_LIST, torch 2.7 does"],
        ),
        (
            aim("12.1", torch="2.7.1", cuda="12.8"),
            ["torch 2.7.1 does not take 12.1 in TORCH_CUDA_ARCH_LIST, torch 2.8 does"],
        ),
        (aim("12.1", torch="2.8.0", cuda="12.8"), []),  # nvcc 12.9 builds for torch's 12.8
        (
            aim("11.0", torch="2.9.0", cuda="12.8"),
            ["nvcc of CUDA 12.8 does not compile for 11.0, wanted CUDA 13.0 or newer"],
        ),
        (
            aim("7.0", torch="2.9.0", cuda="13.0"),
            ["nvcc of CUDA 13.0 does not compile for 7.0, wanted a toolkit of CUDA 12"],
        ),
    ],
)
def test_what_cannot_be_built_is_refused_with_the_reason(
    one: BuildAim, expected: list[str]
) -> None:
    assert list(build_refusals(["pointops"], one)) == expected


def test_a_package_that_is_not_written_for_a_gpu_is_refused() -> None:
    (reason,) = build_refusals(["flash-attn-3"], BLACKWELL)[:1]
    assert reason == "flash-attn-3 is not written for 10.0: it compiles for 8.0, 9.0 alone"
    assert build_refusals(["flash-attn-3"], aim("9.0")) == ()
    assert build_refusals([], aim("12.0", torch="2.5.1")) == ()


def test_the_nvcc_of_a_machine_is_judged_by_itself() -> None:
    old, other = CudaVersion.parse("12.4"), CudaVersion.parse("13.0")
    assert len(nvcc_refusals(old, BLACKWELL)) == 2
    assert nvcc_refusals(other, BLACKWELL) == (
        "nvcc is of CUDA 13.0, torch 2.7.0 is built with CUDA 12.8",
    )
    assert nvcc_refusals(CudaVersion.parse("12.9"), BLACKWELL) == ()
    assert str(oldest_nvcc(BLACKWELL)) == "12.8"
    assert str(oldest_nvcc(aim("12.0", "12.1"))) == "12.9"
    assert oldest_nvcc(aim("7.5")) is None


@pytest.mark.parametrize(
    ("memory", "cores", "gigabytes", "jobs", "threads"),
    [
        (24, 2, 5, 2, 2),
        (32, 16, 5, 5, 1),
        (16, 8, 5, 2, 1),
        (128, 32, 5, 23, 1),
        (512, 16, 2, 16, 2),
        (4, 8, 5, 1, 1),
    ],
)
def test_the_jobs(memory: int, cores: int, gigabytes: int, jobs: int, threads: int) -> None:
    found = jobs_for(memory_bytes=memory * GIB, cores=cores, gigabytes=gigabytes)
    assert (found.max_jobs, found.nvcc_threads) == (jobs, threads)


@given(st.integers(1, 1 << 42), st.integers(1, 512), st.integers(1, 8))
def test_the_jobs_fit_into_the_memory(memory: int, cores: int, gigabytes: int) -> None:
    found = jobs_for(memory_bytes=memory, cores=cores, gigabytes=gigabytes)
    assert 1 <= found.max_jobs <= cores
    if found.max_jobs * found.nvcc_threads > 1:
        assert found.max_jobs * found.nvcc_threads * gigabytes * GIB <= memory


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_computes_the_same(shell: str) -> None:
    rows = [
        (memory, cores, gigabytes)
        for memory in (0, 1, 1023, 4096, 7777, 16384, 24105, 32768, 131072, 2000000)
        for cores in (1, 2, 3, 8, 64, 255)
        for gigabytes in (1, 2, 5)
    ]
    calls = "".join(f"build_jobs {a} {b} {c}\n" for a, b, c in rows)
    script = f"set -eu\n{JOBS_FUNCTION}{calls}"
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True)
    expected = [jobs_for(memory_bytes=a << 20, cores=b, gigabytes=c) for a, b, c in rows]
    assert done.stdout.splitlines() == [f"{e.max_jobs} {e.nvcc_threads}" for e in expected]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_reads_the_machine(shell: str) -> None:
    script = f"set -eu\n{MEMORY_FUNCTIONS}build_memory\nbuild_cores\n"
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True)
    memory, cores = map(int, done.stdout.split())
    assert memory > 100
    assert cores >= 1
    assert done.stderr == ""


def test_the_functions_pass_shellcheck() -> None:
    checker = which("shellcheck")
    if checker is None:
        pytest.skip("needs shellcheck")
    script = f"#!/bin/sh\n{JOBS_FUNCTION}{MEMORY_FUNCTIONS}"
    call = 'build_jobs "$(build_memory)" "$(build_cores)" 5\n'
    done = subprocess.run(
        [checker, "-"], input=script + call, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
