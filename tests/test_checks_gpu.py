"""EB4: GPU code, the driver, and what packages bring for one CUDA alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from checkvalues import (
    TORCH_CUDA,
    aim,
    at,
    code,
    codes,
    dist,
    env,
    found,
    gpu,
    host,
    one,
    owned,
    toolkit,
)

from envbuild.checks.driver import highest_cuda, no_driver, old_driver
from envbuild.checks.gpu import jit_only, no_code
from envbuild.checks.gpuparts import no_bitsandbytes, old_ptxas, server_build_on_jetson
from envbuild.model.cuda import CudaVersion
from envbuild.model.finding import Severity
from envbuild.model.fix import Export, Install, Manual
from envbuild.model.links import BrokenBinary

if TYPE_CHECKING:
    from envbuild.model.host import Host

PYPI_27 = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"
BLACKWELL = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
NCCL = "nvidia/nccl/lib/libnccl.so.2"


def test_torch_from_pypi_has_no_code_for_blackwell_and_its_sibling_has() -> None:
    torch, vision = dist("torch 2.7.0", TORCH_CUDA), dist("torchvision 0.22.0", "torchvision/_C.so")
    installed = env(torch, vision, torch="2.7.0+cu126")
    finding = one(
        no_code, installed, owned(torch, vision), codes(code(TORCH_CUDA, PYPI_27)), aim("12.0")
    )
    assert finding.severity is Severity.ERROR
    assert finding.message == "torch 2.7.0 has no code for sm_120"
    assert finding.evidence[0] == "SASS sm_50 … sm_90, no PTX"
    assert finding.fixes == (
        Install(
            requirements=("torch==2.7.0+cu128", "torchvision==0.22.0+cu128"),
            index="https://download.pytorch.org/whl/cu128",
        ),
    )


def test_a_package_with_a_file_that_was_not_read_is_not_known_to_lack_code() -> None:
    torch = dist("torch 2.7.0", TORCH_CUDA, "torch/lib/libtorch_cuda_linalg.so")
    linalg = "torch/lib/libtorch_cuda_linalg.so"
    unread = BrokenBinary(path=at(TORCH_CUDA), reason="there are more than 9 pieces of GPU code")
    given = replace(codes(code(linalg, PYPI_27)), unread=(unread,))
    finding = one(no_code, env(torch, torch="2.7.0+cu126"), owned(torch), given, aim("12.0"))
    assert finding.severity is Severity.UNKNOWN
    assert finding.message == "the GPU code of torch 2.7.0 is not known"
    assert found(jit_only, env(torch), owned(torch), given, aim("12.0")) == []


@pytest.mark.parametrize("capability", ["8.9", "12.0", "12.1", "10.3", "8.6"])
def test_a_newer_gpu_of_the_family_runs_the_code(capability: str) -> None:
    torch = dist("torch 2.9.1+cu130", TORCH_CUDA)
    facts = (env(torch, torch="2.9.1+cu130"), owned(torch), codes(code(TORCH_CUDA, BLACKWELL)))
    assert found(no_code, *facts, aim(capability)) == []
    assert found(jit_only, *facts, aim(capability)) == []


def test_a_package_is_judged_by_all_its_files() -> None:
    vllm = dist("vllm 0.10.0", "vllm/_C.abi3.so", "vllm/_flashmla_C.abi3.so")
    binaries = codes(code("vllm/_C.abi3.so", BLACKWELL), code("vllm/_flashmla_C.abi3.so", "sm_90a"))
    assert found(no_code, env(vllm), owned(vllm), binaries, aim("12.0")) == []


def test_what_is_bundled_and_what_nvidia_brings_is_left_alone() -> None:
    spconv = dist("spconv-cu126 2.3.8", "spconv/core_cc.so", "spconv_cu126.libs/libnvrtc-1.so")
    cufft = dist("nvidia-cufft 12.0", "nvidia/cu13/lib/libcufft.so.12")
    binaries = codes(
        code("spconv/core_cc.so", "sm_90 compute_90"),
        code("spconv_cu126.libs/libnvrtc-1.so", "sm_52"),
        code("nvidia/cu13/lib/libcufft.so.12", "sm_75"),
    )
    assert found(no_code, env(spconv, cufft), owned(spconv, cufft), binaries, aim("12.0")) == []


def test_nccl_is_a_warning() -> None:
    nccl = dist("nvidia-nccl-cu12 2.26.2", NCCL)
    finding = one(no_code, env(nccl), owned(nccl), codes(code(NCCL, "sm_80 sm_90")), aim("12.0"))
    assert finding.severity is Severity.WARNING
    assert "which jobs on more than one GPU need" in finding.message
    assert finding.brings == ()
    assert finding.fixes == ()
    assert finding.hint is not None
    assert "code:torch" in finding.because


@pytest.mark.parametrize(
    ("pin", "said"),
    [
        ("nvidia-nccl-cu12==2.26.2", "torch pins its NCCL"),
        ("nvidia-nccl-cu12==2.27.3; platform_system == 'Linux'", "`nvidia-nccl-cu12==2.27.3`"),
        ("nvidia-nccl-cu13==2.28.9", "`nvidia-nccl-cu13==2.28.9`"),
    ],
)
def test_another_nccl_than_torchs_own_is_no_reason_for_another_torch(pin: str, said: str) -> None:
    nccl, torch = dist("nvidia-nccl-cu12 2.26.2", NCCL), dist("torch 2.8.0", requires=(pin,))
    facts = (env(nccl, torch), owned(nccl), codes(code(NCCL, "sm_80 sm_90")), aim("12.0"))
    hint = one(no_code, *facts).hint or ""
    assert said in hint
    assert ("release of torch" in hint) == ("nvidia-nccl-cu12==2.26.2" in pin)


def test_an_extension_of_nobody_is_built_again() -> None:
    path = "/app/libs/pointops/pointops_cuda.so"
    finding = one(no_code, env(), owned(unowned=(path,)), codes(code(path, "sm_86")), aim("12.0"))
    assert finding.message == "pointops_cuda.so has no code for sm_120"
    first, second = finding.fixes
    assert first == Manual(text="export TORCH_CUDA_ARCH_LIST='12.0'")
    assert isinstance(second, Manual)


def test_an_unknown_package_without_code_is_a_warning() -> None:
    other = dist("onnxruntime-gpu 1.20", "onnxruntime/capi/libonnxruntime_providers_cuda.so")
    path = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
    finding = one(no_code, env(other), owned(other), codes(code(path, "sm_75")), aim("12.0"))
    assert finding.severity is Severity.WARNING


def test_spconv_of_an_older_cuda() -> None:
    spconv = dist("spconv-cu120 2.3.6", "spconv/core_cc.so")
    facts = (env(spconv), owned(spconv), codes(code("spconv/core_cc.so", "sm_52 sm_89 compute_52")))
    finding = one(jit_only, *facts, aim("12.0"))
    assert finding.severity is Severity.WARNING
    assert "NVRTC 12.0" in finding.message


@pytest.fixture
def ptx_of_12_9() -> tuple[object, ...]:
    spconv, torch = dist("spconv-cu126 2.3.8", "spconv/core_cc.so"), dist("torch 2.8.0", TORCH_CUDA)
    binaries = codes(code("spconv/core_cc.so", "sm_90 compute_90", isa=(8, 8)))
    return env(torch, spconv, torch="2.8.0+cu128"), owned(torch, spconv), binaries, aim("12.0")


def test_ptx_needs_a_driver_as_new_as_itself(ptx_of_12_9: tuple[object, ...]) -> None:
    card = (gpu("RTX 5090", "12.0"),)
    old = host(driver="570.124.06", gpus=card)
    assert found(jit_only, *ptx_of_12_9, old) == []
    finding = one(no_code, *ptx_of_12_9, old)
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "spconv-cu126 2.3.8 has only PTX for sm_120, of CUDA 12.9, which driver 570.124.06"
        " (CUDA 12.8) cannot compile"
    )
    assert finding.fixes == (
        Manual(text="update the driver: driver 575.51.03 or newer compiles it"),
    )


@pytest.mark.parametrize(
    "machine",
    [
        host(driver="575.57.08", gpus=(gpu("RTX 5090", "12.0"),)),
        host(driver="570.124.06", gpus=(gpu("RTX 4090", "8.9"),)),  # not the GPU that is meant
        host(driver="570.124.06", compat_driver="575.57.08", gpus=(gpu("RTX 5090", "12.0"),)),
        host(driver="540.4.0", tegra="36.4", gpus=(gpu("Jetson", "12.0"),)),
        host(driver="570.124.06", is_image=True, gpus=(gpu("RTX 5090", "12.0"),)),
        host(gpus=(gpu("RTX 5090", "12.0"),)),
    ],
)
def test_ptx_is_compiled_by_a_driver_of_its_cuda(
    machine: Host, ptx_of_12_9: tuple[object, ...]
) -> None:
    assert found(no_code, *ptx_of_12_9, machine) == []
    finding = one(jit_only, *ptx_of_12_9, machine)
    assert finding.severity is Severity.NOTE
    assert finding.evidence[-1] == (
        "its PTX is of CUDA 12.9: a driver of that or newer compiles it (575.51.03)"
    )


def test_bitsandbytes_is_judged_by_the_library_it_opens() -> None:
    files = [f"bitsandbytes/libbitsandbytes_cuda{tag}.so" for tag in ("118", "128")]
    bits, torch = dist("bitsandbytes 0.48", *files), dist("torch 2.8.0", TORCH_CUDA)
    binaries = codes(code(files[0], "sm_80 sm_90"), code(files[1], BLACKWELL))
    facts = (env(torch, bits, torch="2.8.0+cu128"), owned(torch, bits), binaries, aim("12.0"))
    assert found(no_code, *facts) == []
    other = (env(torch, bits, torch="2.8.0+cu118"), *facts[1:])
    assert one(no_code, *other).subject == "bitsandbytes 0.48"


def test_a_driver_of_another_cuda_major() -> None:
    torch = dist("torch 2.11.0", TORCH_CUDA)
    finding = one(old_driver, env(torch, torch="2.11.0+cu130"), host(driver="570.86.10"))
    assert finding.message == (
        "torch 2.11.0+cu130 (CUDA 13.0) needs driver 580 or newer, found 570.86.10"
    )
    assert finding.evidence == ("the driver is of CUDA 12.8",)
    (fix,) = finding.fixes
    assert isinstance(fix, Install)
    assert fix.requirements[0].startswith("torch==2.11.0+cu12")


def test_a_driver_before_the_major() -> None:
    finding = one(old_driver, env(torch="2.1.0+cu121"), host(driver="470.86"))
    assert "needs driver 525.60.13 or newer, found 470.86" in finding.message


@pytest.mark.parametrize(
    "changes",
    [
        {"driver": "525.60.13"},
        {"driver": "535.183.01"},
        {"driver": "580.82.07"},
        {"driver": None},
        {"driver": "470.86", "compat_driver": "570.86.10"},
        {"driver": "470.86", "is_image": True},
        {"driver": "nonsense"},
    ],
)
def test_minor_versions_are_compatible_within_a_major(changes: dict[str, object]) -> None:
    assert found(old_driver, env(torch="2.7.0+cu128"), host(**changes)) == []


def test_a_cpu_build_needs_no_driver() -> None:
    assert found(old_driver, env(torch="2.7.0+cpu"), host(driver="390.1")) == []


def test_the_cuda_a_driver_came_with() -> None:
    assert highest_cuda(host(driver="570.86.10")) == CudaVersion(major=12, minor=8)
    assert highest_cuda(host(driver="999.1")) is None
    assert highest_cuda(host()) is None


def test_a_gpu_without_a_driver() -> None:
    card = host(gpus=(gpu("RTX 4090", "8.9"),))
    finding = one(no_driver, env(torch="2.8.0+cu128"), card)
    assert finding.message == "RTX 4090 has no NVIDIA driver, torch 2.8.0+cu128 will use the CPU"


@pytest.mark.parametrize(
    ("torch", "changes"),
    [
        ("2.8.0+cu128", {}),
        ("2.8.0+cpu", {"gpus": (gpu("RTX 4090", "8.9"),)}),
        ("2.8.0+cu128", {"gpus": (gpu("RTX 4090", "8.9"),), "driver": "580.1"}),
        ("2.8.0+cu128", {"gpus": (gpu("Orin", "8.7"),), "tegra": "36.4"}),
        ("2.8.0+cu128", {"gpus": (gpu("RTX 4090", "8.9"),), "is_image": True}),
    ],
)
def test_a_machine_without_a_gpu_is_normal(torch: str, changes: dict[str, object]) -> None:
    assert found(no_driver, env(torch=torch), host(**changes)) == []


def test_the_assembler_of_triton_and_the_toolkit_that_is_there() -> None:
    installed = env(dist("triton 3.5.1"), torch="2.9.1+cu130")
    finding = one(old_ptxas, installed, aim("12.1"), host(toolkits=(toolkit("13.0"),)))
    assert finding.severity is Severity.WARNING
    assert finding.fixes == (
        Export(variable="TRITON_PTXAS_PATH", value="/usr/local/cuda-13.0/bin/ptxas"),
    )
    (fix,) = one(old_ptxas, installed, aim("12.1"), host(toolkits=(toolkit("12.4"),))).fixes
    assert isinstance(fix, Manual)


@pytest.mark.parametrize(
    ("triton", "capability", "environment"),
    [
        ("3.5.1", "12.0", ()),
        ("3.7.0", "12.1", ()),
        ("3.5.1", "12.1", (("TRITON_PTXAS_PATH", "/usr/local/cuda/bin/ptxas"),)),
    ],
)
def test_an_assembler_that_knows_the_gpu(
    triton: str, capability: str, environment: tuple[tuple[str, str], ...]
) -> None:
    installed = env(dist(f"triton {triton}"), torch="2.9.1+cu130")
    assert found(old_ptxas, installed, aim(capability), host(environment=environment)) == []


def bitsandbytes(torch: str, *tags: str, version: str = "0.48.0") -> object:
    files = [f"bitsandbytes/libbitsandbytes_cuda{tag}.so" for tag in tags]
    return env(
        dist(f"bitsandbytes {version}", *files, "bitsandbytes/libbitsandbytes_cpu.so"), torch=torch
    )


def test_bitsandbytes_without_a_library_for_this_cuda() -> None:
    finding = one(no_bitsandbytes, bitsandbytes("2.13.0+cu131", "118", "129", "130"))
    assert "has no libbitsandbytes_cuda131.so" in finding.message
    assert finding.fixes == (Export(variable="BNB_CUDA_VERSION", value="130"),)
    finding = one(no_bitsandbytes, bitsandbytes("2.13.0+cu130", "118", "129"))
    assert finding.fixes == (Install(requirements=("bitsandbytes>0.48.0",)),)


def test_the_release_of_bitsandbytes_that_has_the_library() -> None:
    old = bitsandbytes("2.8.0+cu128", "118", "125", version="0.43.3")
    finding = one(no_bitsandbytes, old)
    assert finding.fixes == (Install(requirements=("bitsandbytes>=0.45.3",)),)
    lost = bitsandbytes("2.9.0+cu129", "128", "130", version="0.50.0")
    assert one(no_bitsandbytes, lost).fixes == (
        Install(requirements=("bitsandbytes>=0.46.1,<0.50",)),
    )


def test_bitsandbytes_and_the_variable() -> None:
    forced = host(environment=(("BNB_CUDA_VERSION", "130"),))
    assert found(no_bitsandbytes, bitsandbytes("2.13.0+cu131", "118", "130"), forced) == []
    wrong = host(environment=(("BNB_CUDA_VERSION", "124"),))
    finding = one(no_bitsandbytes, bitsandbytes("2.13.0+cu130", "118", "130"), wrong)
    assert "which BNB_CUDA_VERSION=124 asks for" in finding.message
    assert "env:BNB_CUDA_VERSION" in finding.because
    assert found(no_bitsandbytes, bitsandbytes("2.13.0+cu130", "118", "130")) == []
    assert found(no_bitsandbytes, bitsandbytes("2.13.0+cpu", "118")) == []


def test_a_server_build_on_a_jetson() -> None:
    orin = host(machine="aarch64", tegra="35.4.1")
    torch = env(dist("torch 2.8.0", TORCH_CUDA), torch="2.8.0+cu128", machine="aarch64")
    finding = one(server_build_on_jetson, torch, codes(code(TORCH_CUDA, "sm_80 sm_90")), orin)
    assert finding.severity is Severity.ERROR
    own = codes(code(TORCH_CUDA, "sm_87"))
    assert found(server_build_on_jetson, torch, own, orin) == []
    cpu = env(torch="2.8.0", machine="aarch64")
    assert one(server_build_on_jetson, cpu, codes(), orin).severity is Severity.WARNING


@pytest.mark.parametrize("tegra", [None, "38.2.0"])
def test_a_server_and_a_thor_run_server_builds(tegra: str | None) -> None:
    torch = env(dist("torch 2.11.0", TORCH_CUDA), torch="2.11.0+cu130", machine="aarch64")
    binaries = codes(code(TORCH_CUDA, "sm_80 sm_90 sm_110"))
    assert found(server_build_on_jetson, torch, binaries, host(tegra=tegra)) == []
