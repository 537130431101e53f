"""Kind cuda-major-ext: a package that is linked to another CUDA major than torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casedoctor import (
    ANY_LINUX,
    NCCL_FILE,
    NEW_ERROR,
    PLAIN,
    extension,
    image,
    library,
    told,
    torch_env,
)

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

SHARED = {
    "nccl": (NCCL_FILE, "2.27.5", "2.28.9"),
    "cusparselt": ("nvidia/cusparselt/lib/libcusparseLt.so.0", "0.7.1", "0.8.0"),
    "nvshmem": ("nvidia/nvshmem/lib/libnvshmem_host.so.3", "3.3.20", "3.4.5"),
}
ABI3 = "cp38-abi3-manylinux_2_31_x86_64"


def vllm(env: MadeEnv, version: str, runtime: str, torch: str) -> MadeEnv:
    files = {"vllm/__init__.py": "from . import _C\n"}
    files |= extension("vllm/_C.abi3.so", NEW_ERROR, needed=(runtime,))  # type: ignore[arg-type]
    return env.install("vllm", version, files=files, requires=[f"torch=={torch}"], tag=ABI3)


def test_maj_h1_leftovers_of_two_majors(doctor: Doctor, tmp_path: Path) -> None:
    pins = [f"nvidia-{name}-cu12=={old}" for name, (_, old, _) in SHARED.items()]
    env = torch_env(tmp_path, "2.9.1+cu128", metadata="2.9.1", requires=[*pins, "triton==3.5.1"])
    for cuda in (12, 13):
        for name, (path, old, new) in SHARED.items():
            files = {path: library(path.rpartition("/")[2], padding=8 * cuda)}
            version = old if cuda == 12 else new
            env.install(f"nvidia-{name}-cu{cuda}", version, files=files, tag=ANY_LINUX)
    env.install("triton", "3.6.0")
    answer = doctor(env)
    assert answer.code == 1
    for name, (_, old, new) in SHARED.items():
        assert (
            f"EB101: `nvidia-{name}-cu12 {old}` and `nvidia-{name}-cu13 {new}` both own 1 path, on"
            f" disk is nvidia-{name}-cu13 {new}'s"
        ) in answer.out
        assert f"nvidia-{name}-cu12=={old}" in answer.repair
    assert "torch 2.9.1 requires `triton==3.5.1`, found 3.6.0" in answer.out
    assert "triton==3.5.1" in answer.repair


def test_maj_h1_the_runtime_that_torch_does_not_bring(doctor: Doctor, tmp_path: Path) -> None:
    env = image(tmp_path).venv()
    torch_env(env, "2.11.0+cu130", metadata="2.11.0")
    answer = doctor(vllm(env, "0.16.0", "libcudart.so.12", "2.9.1").inside(), "--root", tmp_path)
    assert answer.code == 1
    assert "vllm 0.16.0 is linked to CUDA 12 (`libcudart.so.12`)" in answer.effects
    assert "torch 2.11.0+cu130 brings CUDA 13" in answer.effects
    assert "vllm==0." in answer.repair
    assert "nvidia-cuda-runtime-cu12" not in answer.repair, "two runtimes in one process"


def test_maj_h2_a_backend_of_uv_chooses_torch_alone(doctor: Doctor, tmp_path: Path) -> None:
    env = image(tmp_path).venv()
    torch_env(env, "2.11.0+cu129")
    answer = doctor(vllm(env, "0.21.0", "libcudart.so.13", "2.11.0").inside(), "--root", tmp_path)
    assert answer.code == 1
    assert answer.first == (
        "error EB305: vllm 0.21.0 is linked to CUDA 13 (`libcudart.so.13`), torch 2.11.0+cu129"
        " brings CUDA 12"
    )
    assert "vllm/_C.abi3.so needs libcudart.so.13" in answer.effects
    assert "install the build of vllm for CUDA 12, or a torch for CUDA 13" in answer.repair


def bitsandbytes(env: MadeEnv, version: str, *tags: str) -> MadeEnv:
    names = ("cpu", *(f"cuda{tag}" for tag in tags))
    files = {f"bitsandbytes/libbitsandbytes_{name}.so": library(name) for name in names}
    python = {"bitsandbytes/__init__.py": ""}
    return env.install(
        "bitsandbytes",
        version,
        files={**python, **files},
        requires=["torch<3,>=2.2"],
        tag="py3-none-manylinux_2_24_x86_64",
    )


def test_maj_h3_no_library_for_the_cuda_of_torch(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.15.0+cu132", python="3.12")
    answer = doctor(bitsandbytes(env, "0.49.0", "118", "126", "128", "130"))
    assert answer.code == 1
    assert answer.first == (
        "error EB406: bitsandbytes 0.49.0 has no libbitsandbytes_cuda132.so, which torch"
        " 2.15.0+cu132 asks for"
    )
    assert "it has 118, 126, 128, 130" in answer.effects
    assert "bitsandbytes>=0.50.0" in answer.repair


def test_maj_h3_the_nearest_of_the_same_major(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.11.0+cu131", python="3.12")
    env = bitsandbytes(env, "0.50.0", "118", "128", "130")
    assert "export BNB_CUDA_VERSION=130" in doctor(env).repair
    assert doctor(env, host=told(PLAIN, BNB_CUDA_VERSION="130")).code == 0


def test_maj_h3_the_library_of_another_major_is_none(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.11.0+cu130", python="3.12")
    env = bitsandbytes(env, "0.47.0", "118", "128", "129")
    answer = doctor(env, host=told(PLAIN, BNB_CUDA_VERSION="129"))
    assert answer.code == 1
    assert "BNB_CUDA_VERSION=129 names a library of CUDA 12" in answer.first
    assert "bitsandbytes>=0.48.0" in answer.repair
    assert "unset BNB_CUDA_VERSION" in answer.repair


def test_maj_h4_two_nixl_write_one_module(doctor: Doctor, tmp_path: Path) -> None:
    env = image(tmp_path).venv(python="3.12")
    torch_env(env, "2.11.0+cu130", metadata="2.11.0", python="3.12")
    for cuda in (13, 12):
        module = library("nixl_ep_cpp.so", needed=(f"libcudart.so.{cuda}",))
        files = {"nixl_ep/__init__.py": "", "nixl_ep/nixl_ep_cpp.so": module}
        tag = "cp312-cp312-manylinux_2_28_x86_64"
        env.install(f"nixl-cu{cuda}", "1.2.0", files=files, tag=tag)
    env.install("nixl", "1.2.0", requires=["nixl-cu12", "nixl-cu13"])
    answer = doctor(env.inside(), "--root", tmp_path)
    assert answer.first == (
        "error EB111: nixl-cu12 1.2.0 and nixl-cu13 1.2.0 both own `nixl_ep/`, on disk is"
        " nixl-cu12 1.2.0's"
    )
    assert "nixl 1.2.0 requires nixl-cu12" in answer.effects
    assert "nixl>=1.3.0" in answer.effects
    assert "nixl-cu13==1.2.0" in answer.repair
