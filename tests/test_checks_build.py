"""EB6: what a build of CUDA extensions needs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from checkvalues import aim, compiler, dist, env, found, gpu, host, one, toolkit

from envbuild.checks.archlist import arch_list
from envbuild.checks.build import new_compiler, new_glibc
from envbuild.checks.buildparts import no_ninja, no_pkg_resources, too_many_jobs
from envbuild.checks.toolkit import cpu_torch, toolkit_of, wrong_toolkit
from envbuild.model.builds import Builds
from envbuild.model.finding import Severity
from envbuild.model.fix import Export, Install, Manual

BUILDS = Builds(packages=("pointops",), source="[tool.envbuild.build]")
TORCH = env(torch="2.8.0+cu128")
CARD = (gpu("RTX PRO 2000 Blackwell", "12.0"),)


def variables(**changes: str) -> tuple[tuple[str, str], ...]:
    return tuple(changes.items())


def test_nvcc_of_another_major() -> None:
    machine = host(toolkits=(toolkit("10.1"),))
    finding = one(wrong_toolkit, env(torch="2.1.0+cu121"), machine, BUILDS)
    assert finding.message == (
        "nvcc is of CUDA 10.1, torch 2.1.0+cu121 of CUDA 12.1: pointops cannot be built"
    )
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert "cuda-toolkit-12-1" in fix.text


def test_another_toolkit_that_is_there_is_taken() -> None:
    machine = host(toolkits=(toolkit("13.0"), toolkit("12.8", "other"), toolkit("12.6", "other")))
    assert one(wrong_toolkit, TORCH, machine, BUILDS).fixes == (
        Export(variable="CUDA_HOME", value="/usr/local/cuda-12.8"),
    )


def test_nvcc_of_debian_in_front() -> None:
    debian = toolkit("11.8", "PATH", path="/usr", nvcc="/usr/bin/nvcc")
    finding = one(wrong_toolkit, TORCH, host(toolkits=(toolkit("12.8"), debian)), BUILDS)
    assert "/usr/bin/nvcc is of the distribution" in finding.evidence[1]
    assert finding.fixes == (Export(variable="CUDA_HOME", value="/usr/local/cuda-12.8"),)


def test_the_minor_is_only_noted() -> None:
    finding = one(wrong_toolkit, TORCH, host(toolkits=(toolkit("12.6"),)), BUILDS)
    assert finding.severity is Severity.NOTE
    assert found(wrong_toolkit, TORCH, host(toolkits=(toolkit("12.8"),)), BUILDS) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("/usr/local/cuda:/opt/cuda", "CUDA_HOME is a list of folders"),
        ("/usr/local/cuda/bin/nvcc", "wanted the folder above `bin`"),
        ("/usr/local/cuda/bin/", "wanted the folder above `bin`"),
    ],
)
def test_a_malformed_variable(value: str, said: str) -> None:
    machine = host(toolkits=(toolkit("12.8"),), environment=variables(CUDA_HOME=value))
    assert said in one(wrong_toolkit, TORCH, machine, BUILDS).message


def test_no_toolkit_at_all() -> None:
    finding = one(wrong_toolkit, TORCH, host(), BUILDS)
    assert finding.message == "no CUDA toolkit was found: pointops cannot be built"
    gone = toolkit(None, "CUDA_HOME", exists=False, nvcc=None)
    assert "where nothing lies" in one(wrong_toolkit, TORCH, host(toolkits=(gone,)), BUILDS).message
    empty = toolkit("12.8", nvcc=None)
    assert "has no bin/nvcc" in one(wrong_toolkit, TORCH, host(toolkits=(empty,)), BUILDS).message


def test_the_variable_goes_before_path_and_the_default() -> None:
    machine = host(
        toolkits=(toolkit("12.4"), toolkit("12.8", "CUDA_HOME"), toolkit("11.8", "PATH"))
    )
    chosen = toolkit_of(machine)
    assert chosen is not None
    assert chosen.how == "CUDA_HOME"


def test_a_cpu_torch_cannot_be_built_for() -> None:
    cpu = env(torch="2.7.0+cpu")
    assert one(cpu_torch, cpu, host(gpus=CARD), BUILDS).severity is Severity.ERROR
    listed = host(environment=variables(TORCH_CUDA_ARCH_LIST="12.0"))
    assert one(cpu_torch, cpu, listed, BUILDS).severity is Severity.ERROR
    assert one(cpu_torch, cpu, host(), BUILDS).severity is Severity.WARNING
    assert found(cpu_torch, TORCH, host(gpus=CARD), BUILDS) == []
    assert found(wrong_toolkit, cpu, host(), BUILDS) == []


def test_a_compiler_that_nvcc_refuses() -> None:
    machine = host(toolkits=(toolkit("12.8"),), compilers=(compiler("/usr/bin/g++", "15.1.0"),))
    finding = one(new_compiler, machine, BUILDS)
    assert finding.message == "g++ 15.1.0 is newer than nvcc 12.8 accepts (g++ 14 at most)"
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert fix.text.startswith("apt-get install -y g++-14")


def test_an_older_compiler_that_is_there_is_named() -> None:
    machine = host(
        toolkits=(toolkit("12.1"),),
        compilers=(
            compiler("/usr/bin/g++", "14.2.0"),
            compiler("/usr/bin/g++-11", "11.4.0"),
            compiler("/usr/bin/g++-12", "12.3.0"),
            compiler("/usr/bin/gcc-13", "13.1.0"),
        ),
    )
    assert one(new_compiler, machine, BUILDS).fixes == (
        Export(variable="CC", value="/usr/bin/gcc-12"),
        Export(variable="CXX", value="/usr/bin/g++-12"),
        Export(variable="CUDAHOSTCXX", value="/usr/bin/g++-12"),
    )


@pytest.mark.parametrize(
    ("cuda", "path", "number"),
    [
        ("12.8", "/usr/bin/g++", "14.2.0"),
        ("12.8", "/usr/bin/x86_64-linux-gnu-g++-13", "13.3.0"),
        ("13.0", "/usr/bin/g++", "15.1.0"),
        ("12.8", "/usr/bin/clang++", "19.1"),
        ("99.0", "/usr/bin/g++", "40.0"),
        ("12.8", "/usr/bin/g++", ""),
        ("12.8", "/usr/bin/icpx", "2025.1"),
    ],
)
def test_a_compiler_that_nvcc_accepts_or_is_not_known(cuda: str, path: str, number: str) -> None:
    machine = host(toolkits=(toolkit(cuda),), compilers=(compiler(path, number),))
    assert found(new_compiler, machine, BUILDS) == []


def test_a_clang_that_nvcc_refuses() -> None:
    machine = host(
        toolkits=(toolkit("12.4"),), compilers=(compiler("/usr/bin/clang++-18", "18.1"),)
    )
    assert (
        "clang 18.1 is newer than nvcc 12.4 accepts" in one(new_compiler, machine, BUILDS).message
    )


def test_headers_of_a_new_glibc() -> None:
    machine = host(glibc="2.41", toolkits=(toolkit("12.8"),))
    assert "glibc 2.41 clash with those of CUDA 12.8" in one(new_glibc, machine, BUILDS).message


@pytest.mark.parametrize(("glibc", "cuda"), [("2.39", "12.8"), ("2.41", "13.0"), (None, "12.8")])
def test_headers_that_fit(glibc: str | None, cuda: str) -> None:
    assert found(new_glibc, host(glibc=glibc, toolkits=(toolkit(cuda),)), BUILDS) == []


def test_the_list_is_unset_and_there_is_no_gpu() -> None:
    finding = one(arch_list, TORCH, host(), aim("10.0", "12.0"), BUILDS)
    assert finding.severity is Severity.ERROR
    assert "raises IndexError" in finding.message
    assert finding.fixes == (Export(variable="TORCH_CUDA_ARCH_LIST", value="10.0;12.0"),)
    newer = one(arch_list, env(torch="2.11.0+cu130"), host(), aim("12.0"), BUILDS)
    assert newer.severity is Severity.WARNING


def test_the_list_is_judged_where_nobody_says_which_gpus_are_meant() -> None:
    (fix,) = one(arch_list, TORCH, host(), BUILDS).fixes
    assert isinstance(fix, Manual)
    assert fix.text.startswith("export TORCH_CUDA_ARCH_LIST")


def test_the_list_may_be_unset_beside_a_gpu() -> None:
    assert found(arch_list, TORCH, host(gpus=CARD), aim("12.0"), BUILDS) == []
    assert found(arch_list, env(torch="2.8.0+cpu"), host(), aim("12.0"), BUILDS) == []


@pytest.mark.parametrize(
    ("torch", "cuda", "text", "said"),
    [
        ("2.5.1+cu124", None, "10.0", "torch 2.5.1+cu124 does not know 10.0"),
        ("2.7.0+cu128", None, "12.1", "torch 2.7.0+cu128 does not know 12.1"),
        ("2.8.0+cu128", "12.4", "12.0", "nvcc 12.4 does not compile for 12.0"),
        ("2.9.1+cu128", "12.8", "12.1", "nvcc 12.8 does not compile for 12.1"),
        ("2.9.1+cu128", "12.8", "10.3", "nvcc 12.8 does not compile for 10.3"),
        ("2.9.1+cu129", "12.9", "11.0", "nvcc 12.9 does not compile for 11.0"),
        ("2.9.1+cu130", "13.0", "7.0", "nvcc 13.0 does not compile for 7.0"),
        (
            "2.8.0+cu128",
            None,
            "sm-twelve",
            "`sm-twelve` of TORCH_CUDA_ARCH_LIST is no architecture",
        ),
    ],
)
def test_architectures_that_are_not_known(
    torch: str, cuda: str | None, text: str, said: str
) -> None:
    machine = host(
        toolkits=(toolkit(cuda),) if cuda else (),
        environment=variables(TORCH_CUDA_ARCH_LIST=text),
    )
    finding = one(arch_list, env(torch=torch), machine, aim(), BUILDS)
    assert said in finding.message


@pytest.mark.parametrize(
    "text", ["9.0;12.0", "8.0 9.0+PTX", "12.0a", "Hopper;Blackwell", "8.6+PTX"]
)
def test_architectures_that_are_known(text: str) -> None:
    machine = host(toolkits=(toolkit("12.8"),), environment=variables(TORCH_CUDA_ARCH_LIST=text))
    assert found(arch_list, TORCH, machine, aim("12.0"), BUILDS) == []


def test_a_list_without_the_gpu_that_is_meant() -> None:
    machine = host(
        toolkits=(toolkit("12.8"),), environment=variables(TORCH_CUDA_ARCH_LIST="8.6;9.0")
    )
    finding = one(arch_list, TORCH, machine, aim("12.0", "9.0"), BUILDS)
    assert "gives no code for sm_120 (--gpu)" in finding.message


def test_more_jobs_than_memory() -> None:
    flash = Builds(packages=("flash-attn",))
    finding = one(too_many_jobs, host(cores=16, memory_bytes=32 << 30), flash)
    assert finding.message.startswith("16 jobs of about 5 GB each may take 80 GB")
    assert finding.fixes == (Export(variable="MAX_JOBS", value="6"),)


def test_the_limit_of_the_control_group_counts() -> None:
    machine = host(cores=16, memory_bytes=256 << 30, memory_limit_bytes=16 << 30)
    assert one(too_many_jobs, machine, Builds(packages=("flash-attn",))).fixes == (
        Export(variable="MAX_JOBS", value="3"),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"cores": 4, "memory_bytes": 64 << 30},
        {"cores": 64, "memory_bytes": None},
        {"cores": 64, "environment": (("MAX_JOBS", "4"),)},
        {"cores": 64, "memory_bytes": 8 << 30, "is_image": True},
        {"cores": 1, "memory_bytes": 2 << 30},
    ],
)
def test_enough_memory_or_none_known(changes: dict[str, object]) -> None:
    assert found(too_many_jobs, host(**changes), Builds(packages=("flash-attn",))) == []


@pytest.mark.parametrize("torch", ["1.13.1+cu117", "2.0.1+cu117", "2.1.2+cu121"])
def test_old_torch_with_a_new_setuptools(torch: str) -> None:
    installed = env(dist("setuptools 84.2.1"), torch=torch)
    finding = one(no_pkg_resources, installed, BUILDS)
    assert finding.message == (
        f"setuptools 84.2.1 has no pkg_resources, torch {torch} needs it to build"
    )
    assert finding.fixes == (Install(requirements=("setuptools<82",)),)


@pytest.mark.parametrize(
    ("torch", "setuptools"),
    [("2.2.2+cu121", "84.0"), ("2.8.0+cu128", "84.0"), ("2.0.1+cu117", "81.9")],
)
def test_torch_since_2_2_does_not_mind(torch: str, setuptools: str) -> None:
    assert found(no_pkg_resources, env(dist(f"setuptools {setuptools}"), torch=torch), BUILDS) == []


def test_a_package_that_imports_pkg_resources() -> None:
    installed = env(dist("setuptools 84.0"), torch="2.8.0+cu128")
    finding = one(no_pkg_resources, installed, Builds(packages=("mmcv",)))
    assert "mmcv needs it to build" in finding.message


def test_ninja() -> None:
    torch = dist("torch 2.8.0")
    assert one(no_ninja, env(torch), BUILDS).severity is Severity.NOTE
    assert found(no_ninja, env(torch, dist("ninja 1.11")), BUILDS) == []
    assert Builds().named == "CUDA extensions"


def test_without_a_list_nvcc_must_know_the_gpu_that_torch_sees() -> None:
    card = gpu("NVIDIA GeForce RTX 5080", "12.0")
    machine = host(toolkits=(toolkit("12.4"),), gpus=(card,))
    finding = one(arch_list, env(torch="2.8.0+cu128"), machine, aim(), BUILDS)
    assert finding.subject == "/usr/local/cuda-12.4"
    assert "nvcc 12.4 does not compile for 12.0 (NVIDIA GeForce RTX 5080)" in finding.message
    assert "cuda-toolkit-12-8" in str(finding.fixes)
    newer = host(toolkits=(toolkit("12.4"), toolkit("12.8", "conda")), gpus=(card,))
    assert found(arch_list, env(torch="2.8.0+cu128"), newer, aim(), BUILDS) == []
    named = host(toolkits=(toolkit("12.8"), toolkit("12.4", "CUDA_HOME")), gpus=(card,))
    (other,) = found(arch_list, env(torch="2.8.0+cu128"), named, aim(), BUILDS)
    assert other.fixes == (Export(variable="CUDA_HOME", value="/usr/local/cuda-12.8"),)


def test_an_old_torch_builds_for_the_newest_gpu_that_it_knows() -> None:
    machine = host(toolkits=(toolkit("12.4"),), gpus=(gpu("NVIDIA GeForce RTX 5080", "12.0"),))
    assert found(arch_list, env(torch="2.5.1+cu124"), machine, aim(), BUILDS) == []


def test_the_nvcc_of_another_cuda_is_no_fault_of_the_list_or_the_compiler() -> None:
    machine = host(
        toolkits=(toolkit("10.1", "PATH"),),
        compilers=(compiler("/usr/bin/g++", "15.1.0"),),
        environment=variables(TORCH_CUDA_ARCH_LIST="8.0"),
        glibc="2.41",
    )
    installed = env(torch="2.1.0+cu121")
    assert [one.code for one in found(wrong_toolkit, installed, machine, BUILDS)] == ["EB601"]
    for rule in (arch_list, new_compiler, new_glibc):
        assert found(rule, installed, machine, aim(), BUILDS) == []


def test_cmake_takes_a_gb10_for_a_fermi() -> None:
    spark = host(toolkits=(toolkit("13.0"),), gpus=(gpu("NVIDIA GB10", "12.1"),))
    finding = one(arch_list, env(torch="2.10.0+cu130"), spark, aim(), BUILDS)
    assert finding.severity is Severity.WARNING
    assert finding.fixes == (Export(variable="TORCH_CUDA_ARCH_LIST", value="12.1"),)
    told = replace(spark, environment=variables(TORCH_CUDA_ARCH_LIST="12.1"))
    assert found(arch_list, env(torch="2.10.0+cu130"), told, aim("12.1"), BUILDS) == []
