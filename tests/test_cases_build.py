"""Real failures of builds: what is told to a build, chosen, or refused before it begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envbuild.core.buildcheck import BuiltFor, BuiltPackage, judge_build
from envbuild.core.buildsetting import build_variables, refuse_machine, tools_of
from envbuild.core.buildtools import needs_old_setuptools
from envbuild.core.buildwords import BuildAim, build_refusals, common_variables, variables_for
from envbuild.errors import WorldError
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.facts import DeviceCode
from envbuild.model.host import Compiler, Host, Toolkit
from envbuild.model.links import BinaryCode, DeviceCodes, Links, MissingSymbol
from envbuild.model.plan import Compile
from envbuild.model.project import BuildSpec
from envbuild.model.stack import Candidate, SourceBuild
from envbuild.model.wheel import IndexPage, PageKind, WheelFile
from envbuild.providers.interface import requires_for

GIB = 1 << 30


def capability(text: str) -> ComputeCapability:
    return ComputeCapability.parse(text)


def cuda(text: str) -> CudaVersion:
    return CudaVersion.parse(text)


BLACKWELL = BuildAim(
    torch="2.8.0", cuda=cuda("12.8"), capabilities=(capability("10.0"), capability("12.0"))
)
STEP = Compile(
    build=SourceBuild(project="pointops", path="libs/pointops"),
    variables=(),
    capabilities=("10.0", "12.0"),
    reason="",
)


def toolkit(version: str, path: str = "/usr/local/cuda", how: str = "default") -> Toolkit:
    return Toolkit(path=path, version=cuda(version), how=how, nvcc=f"{path}/bin/nvcc")


GOOD = Host(
    glibc="2.39",
    compilers=(Compiler(path="/usr/bin/g++", version="13.3.0"),),
    toolkits=(toolkit("12.8"),),
    memory_bytes=64 * GIB,
    cores=8,
)


def refusal(host: Host, aim: BuildAim = BLACKWELL) -> str:
    """Return why the host is refused, or nothing."""
    try:
        refuse_machine(host, tools_of(host, aim), aim, project="pointops")
    except WorldError as error:
        return error.message
    return ""


def told(host: Host, aim: BuildAim = BLACKWELL, project: str = "pointops") -> dict[str, str]:
    """Return what a build is told on a host."""
    build = replace(STEP.build, project=project)
    step = replace(STEP, build=build, variables=variables_for(project, aim))
    return build_variables(step, common_variables(aim), host=host, tools=tools_of(host, aim))


def test_a_sound_machine_is_not_refused() -> None:
    assert refusal(GOOD) == ""


def test_arc_h1_without_a_gpu_the_architectures_are_named_and_cuda_is_forced() -> None:
    """ARC-H1: in `docker build` torch asked the GPUs, found none, and raised IndexError."""
    assert not GOOD.gpus
    assert told(GOOD)["TORCH_CUDA_ARCH_LIST"] == "10.0;12.0"
    assert told(GOOD)["FORCE_CUDA"] == "1"


def test_arc_h2_a_torch_that_does_not_know_blackwell_is_refused() -> None:
    """ARC-H2: `Unknown CUDA arch (10.0) or GPU not supported`; the list is not shortened."""
    old = replace(BLACKWELL, torch="2.5.1")
    assert "torch 2.5.1 does not take 10.0" in build_refusals(["pointops"], old)[0]
    assert told(GOOD, old)["TORCH_CUDA_ARCH_LIST"] == "10.0;12.0"


def test_arc_h3_an_nvcc_that_does_not_know_the_card_is_refused() -> None:
    """ARC-H3: `nvcc fatal: Unsupported gpu architecture 'compute_120'`."""
    text = refusal(replace(GOOD, toolkits=(toolkit("12.4"),)))
    assert "nvcc of CUDA 12.4 does not compile for 12.0, wanted CUDA 12.8 or newer" in text


def test_arc_h4_a_gb10_is_named_and_not_detected() -> None:
    """ARC-H4: detection made `12.1(2.0)` of it."""
    spark = BuildAim(torch="2.11.0", cuda=cuda("13.0"), capabilities=(capability("12.1"),))
    words = told(replace(GOOD, machine="aarch64", toolkits=(toolkit("13.0"),)), spark)
    assert words["TORCH_CUDA_ARCH_LIST"] == "12.1"
    assert words["CUDAARCHS"] == "121"


def test_the_toolkit_of_torch_goes_before_an_old_nvcc_on_the_path() -> None:
    """TKT-H1: CUDA_HOME was guessed as /usr, with Debian's nvcc 10.1."""
    debian = toolkit("10.1", "/usr", "PATH")
    own = toolkit("12.8", "/usr/local/cuda-12.8")
    assert told(replace(GOOD, toolkits=(debian, own)))["CUDA_HOME"] == "/usr/local/cuda-12.8"
    assert refusal(replace(GOOD, toolkits=(debian, own))) == ""
    assert "nvcc is of CUDA 10.1, torch 2.8.0 is built with CUDA 12.8" in refusal(
        replace(GOOD, toolkits=(debian,))
    )


def test_another_minor_of_the_same_major_builds() -> None:
    """TKT-H1's trap: torch warns of it and no more."""
    assert refusal(replace(GOOD, toolkits=(toolkit("12.9"),))) == ""


def test_no_nvcc_is_said_before_the_build_begins() -> None:
    """TKT-H2: `CUDA_HOME environment variable is not set`, in a runtime image."""
    text = refusal(replace(GOOD, toolkits=()))
    assert text == "`pointops` cannot be compiled here: no nvcc was found"


def test_both_versions_stand_in_the_message() -> None:
    """TKT-H3: torch 2.7 to 2.9 printed `(%s)` in their place."""
    text = refusal(replace(GOOD, toolkits=(toolkit("13.0"),)))
    assert "13.0" in text
    assert "12.8" in text


def test_a_cpu_torch_is_the_cause_and_not_nvcc() -> None:
    """TKT-H4: pointops with a CPU build of torch."""
    text = refusal(GOOD, replace(BLACKWELL, cuda=None))
    assert "the torch of the lock is a CPU build" in text


def test_the_user_s_own_toolkit_is_taken_and_judged() -> None:
    own = toolkit("12.4", "/opt/cuda", "CUDA_HOME")
    host = replace(GOOD, toolkits=(own, toolkit("12.8")))
    assert told(host)["CUDA_HOME"] == "/opt/cuda"
    assert "12.4 does not compile for" in refusal(host)


def test_a_compiler_that_is_too_new_gives_way_to_an_older_one() -> None:
    """GCC-H1: g++ 15 with nvcc 12.8, which accepts 14; torch's own check says nothing."""
    newest = Compiler(path="/usr/bin/g++", version="15.1.0")
    older = Compiler(path="/usr/bin/g++-13", version="13.3.0")
    words = told(replace(GOOD, compilers=(newest, older)))
    assert words["CUDAHOSTCXX"] == words["CXX"] == "/usr/bin/g++-13"
    assert words["CC"] == "/usr/bin/gcc-13"
    assert refusal(replace(GOOD, compilers=(newest, older))) == ""
    text = refusal(replace(GOOD, compilers=(newest,)))
    assert "g++ 15.1.0 is newer than nvcc 12.8 accepts (14 at most)" in text
    assert "CXX" not in told(GOOD), "an accepted compiler is left alone"


def test_the_compiler_that_the_user_names_is_kept() -> None:
    named = Compiler(path="/opt/bin/g++-15", version="15.1.0")
    older = Compiler(path="/usr/bin/g++-13", version="13.3.0")
    environment = (("CXX", "/opt/bin/g++-15"),)
    host = replace(GOOD, compilers=(named, older), environment=environment)
    assert "g++ 15.1.0 is newer" in refusal(host)


def test_a_clash_of_headers_is_not_laid_on_the_compiler() -> None:
    """GCC-H2: glibc 2.41 with CUDA 12.8; an older g++ does not help."""
    assert "headers of glibc 2.41 clash" in refusal(replace(GOOD, glibc="2.41"))
    thirteen = BuildAim(torch="2.11.0", cuda=cuda("13.0"), capabilities=(capability("12.0"),))
    assert refusal(replace(GOOD, glibc="2.41", toolkits=(toolkit("13.0"),)), thirteen) == ""


def test_oom_h1_the_jobs_fit_into_the_memory() -> None:
    """OOM-H1: flash-attn with as many jobs as cores; each nvcc takes about 5 GB."""
    words = told(replace(GOOD, memory_bytes=24 * GIB, cores=2), project="flash-attn")
    assert (words["MAX_JOBS"], words["NVCC_THREADS"]) == ("2", "2")
    words = told(replace(GOOD, memory_bytes=32 * GIB, cores=16), project="flash-attn")
    assert (words["MAX_JOBS"], words["NVCC_THREADS"]) == ("5", "1")


def test_oom_h2_the_limit_of_the_container_counts() -> None:
    """OOM-H2: 128 GB in the machine, 16 GB for the container, exit code 137."""
    host = replace(GOOD, memory_bytes=128 * GIB, memory_limit_bytes=16 * GIB, cores=32)
    assert told(host, project="flash-attn")["MAX_JOBS"] == "2"


def test_jobs_that_the_user_names_are_kept() -> None:
    assert told(replace(GOOD, environment=(("MAX_JOBS", "3"),)))["MAX_JOBS"] == "3"


def candidate(torch: str) -> Candidate:
    page = IndexPage(kind=PageKind.PYTORCH, key="cu118", url="https://x", name="pytorch-cu118")
    name = f"torch-{torch}+cu118-cp311-cp311-linux_x86_64.whl"
    wheel = WheelFile(
        project="torch",
        version=f"{torch}+cu118",
        filename=name,
        url=f"https://x/{name}",
        page=page,
    )
    return Candidate(torch=wheel, cuda=cuda("11.8"))


@pytest.mark.parametrize(
    ("project", "torch", "bound"),
    [
        ("pointops", "2.0.1", True),  # SET-H1
        ("pointops", "2.1.2", True),
        ("pointops", "2.2.0", False),  # the trap: a report claims all before 2.9
        ("pointops", "2.8.0", False),
        ("mmcv", "2.8.0", True),  # SET-H2, ISO-H3
    ],
)
def test_setuptools_is_bound_where_pkg_resources_is_imported(
    project: str, torch: str, *, bound: bool
) -> None:
    requires = requires_for(None, project, candidate(torch))
    assert requires[0] == ("setuptools<82" if bound else "setuptools")
    assert needs_old_setuptools(project, torch) is bound
    own = BuildSpec(name=project, requires=("setuptools==70.0",))
    assert requires_for(own, project, candidate(torch)) == ("setuptools==70.0",)


def test_what_a_setup_imports_is_locked_since_nothing_is_isolated() -> None:
    """ISO-H1: flash-attn imports torch and packaging in its setup.py."""
    requires = requires_for(None, "flash-attn", candidate("2.8.0"))
    assert {"setuptools", "wheel", "ninja", "packaging"} <= set(requires)


def built(*names: str, codes: tuple[BinaryCode, ...] = (), pure: bool = False) -> BuiltPackage:
    return BuiltPackage(
        name="torch-cluster",
        version="1.6.3",
        objects=tuple(f"/s/torch_cluster/{name}" for name in names),
        links=Links(),
        codes=DeviceCodes(binaries=codes),
        pure=pure,
    )


AIM = BuiltFor(capabilities=BLACKWELL.capabilities, torch="2.8.0+cu128")


def code(*sass: str, ptx: tuple[str, ...] = ()) -> BinaryCode:
    found = DeviceCode(sass=tuple(map(capability, sass)), ptx=tuple(map(capability, ptx)))
    return BinaryCode(path="/s/torch_cluster/_knn_cuda.so", code=found)


def test_a_build_with_only_its_cpu_part_is_hollow() -> None:
    """CPU-H1: `Not compiled with CUDA support` from a build on a node without nvcc."""
    (finding,) = judge_build(built("_knn_cpu.so", "_fps_cpu.so"), AIM)
    assert finding.code == "EB109"
    assert "without its CUDA part: it has only *_cpu.so" in finding.message


def test_a_build_without_any_module_is_hollow() -> None:
    """CPU-H2: FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE left a wheel of Python alone."""
    (finding,) = judge_build(built(pure=True), AIM)
    assert finding.message.endswith("without any compiled module (its wheel is `none-any`)")
    words = told(GOOD, project="flash-attn")
    assert words["FLASH_ATTENTION_SKIP_CUDA_BUILD"] == "FALSE"
    assert words["FLASH_ATTENTION_FORCE_BUILD"] == "TRUE"


def test_mmcv_is_told_to_build_its_operators() -> None:
    """CPU-H3: in an isolated build mmcv left them out and succeeded."""
    words = told(GOOD, project="mmcv")
    assert words["MMCV_WITH_OPS"] == words["FORCE_CUDA"] == "1"


def test_a_package_of_python_alone_is_not_hollow() -> None:
    assert judge_build(built(), replace(AIM, compiled=False, cuda=False)) == ()
    assert judge_build(built("_C.so"), replace(AIM, cuda=False)) == ()


@pytest.mark.parametrize(
    ("one", "lost"),
    [
        (code("10.0", "12.0"), ""),
        (code("9.0", ptx=("9.0",)), ""),  # newer GPUs compile the PTX
        (code("10.0"), "sm_120"),
        (code("9.0"), "sm_100 and sm_120"),
        (code("10.0", ptx=("12.1",)), "sm_120"),
    ],
)
def test_each_gpu_has_code_that_it_runs(one: BinaryCode, lost: str) -> None:
    findings = judge_build(built("_knn_cuda.so", codes=(one,)), AIM)
    assert [finding.code for finding in findings] == (["EB401"] if lost else [])
    assert all(f"without code for {lost}:" in finding.message for finding in findings)


def test_a_build_against_another_torch_is_named() -> None:
    name = (
        "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    )
    missing = MissingSymbol(path="/s/torch_cluster/_knn_cuda.so", name=name)
    one = replace(
        built("_knn_cuda.so", codes=(code("10.0", "12.0"),)), links=Links(symbols=(missing,))
    )
    (finding,) = judge_build(one, AIM)
    assert finding.code == "EB302"
    assert "torch 2.8.0+cu128 lacks 1 of its symbols" in finding.message
    assert finding.evidence == (name,)
