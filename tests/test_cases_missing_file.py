"""Kind missing-file: a library that torch needs is gone, not installed, or out of its reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casedoctor import ANY_LINUX, RPATH, library, torch_env, torch_files
from elfmaker import make_elf
from envmaker import EnvMaker

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor

HOST = "nvidia/nvshmem/lib/libnvshmem_host.so.3"
SPARSELT = "nvidia/cusparselt/lib/libcusparseLt.so.0"
USER = {
    "torch/lib/libtorch_nvshmem.so": make_elf(
        soname="libtorch_nvshmem.so", needed=("libnvshmem_host.so.3",), rpath=RPATH
    )
}


def test_mis_h1_a_library_that_torch_pins_was_never_installed(
    doctor: Doctor, tmp_path: Path
) -> None:
    env = torch_env(
        tmp_path,
        "2.8.0+cu128",
        metadata="2.8.0",
        requires=["nvidia-nvshmem-cu12==3.3.20"],
        needs=("libtorch_nvshmem.so",),
        more=USER,
    )
    answer = doctor(env)
    assert answer.code == 1
    assert answer.first == (
        "error EB106: torch 2.8.0 requires `nvidia-nvshmem-cu12==3.3.20`, found none"
    )
    assert "error EB304: torch 2.8.0 needs `libnvshmem_host.so.3`" in answer.effects
    assert "torch pins 3.3.20, and it is not installed" in answer.effects
    assert "torch/lib/libtorch_nvshmem.so" in answer.effects
    assert answer.repair.endswith(" nvidia-nvshmem-cu12==3.3.20")


def test_mis_h2_torch_in_lib64_and_its_libraries_in_lib(doctor: Doctor, tmp_path: Path) -> None:
    """Amazon Linux: platlib and purelib are two folders, and `$ORIGIN/../../nvidia` is in one."""
    env = EnvMaker(tmp_path).venv()
    apart = env.at(env.prefix / "lib64" / "python3.11" / "site-packages")
    apart.torch(
        "2.6.0+cu124",
        metadata="2.6.0",
        requires=["nvidia-cusparselt-cu12==0.6.2"],
        files=torch_files(new_abi=False, needs=("libcusparseLt.so.0",)),
        tag="cp311-cp311-manylinux1_x86_64",
    )
    files = {SPARSELT: library("libcusparseLt.so.0")}
    env.install("nvidia-cusparselt-cu12", "0.6.2", files=files, tag=ANY_LINUX)
    answer = doctor(env)
    assert answer.code == 1
    assert answer.first == (
        "error EB304: torch 2.6.0 needs `libcusparseLt.so.0`, which nvidia-cusparselt-cu12 0.6.2"
        " brings and the loader does not find"
    )
    assert f"it lies in `{env.site}`, where those that need it do not look" in answer.effects
    assert "`uv venv`, whose lib64 is a link to lib" in answer.repair
    assert "--reinstall" not in answer.repair, "they would lie apart again"


def test_mis_h2_trap_lib64_that_leads_to_lib(doctor: Doctor, tmp_path: Path) -> None:
    wanted = ["nvidia-cusparselt-cu12==0.6.2"]
    env = torch_env(
        tmp_path, "2.6.0+cu124", new_abi=False, requires=wanted, needs=("libcusparseLt.so.0",)
    )
    files = {SPARSELT: library("libcusparseLt.so.0")}
    env.install("nvidia-cusparselt-cu12", "0.6.2", files=files, tag=ANY_LINUX)
    (env.prefix / "lib64").symlink_to("lib")
    answer = doctor(env, "--fail-on", "note")
    assert answer.code == 0, answer.out


def test_mis_h3_it_went_with_the_package_of_the_other_cuda(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(
        tmp_path,
        "2.9.0+cu128",
        metadata="2.9.0",
        requires=["nvidia-nvshmem-cu12==3.3.24"],
        needs=("libtorch_nvshmem.so",),
        more=USER,
    )
    for cuda, version in ((12, "3.3.24"), (13, "3.4.5")):
        files = {HOST: library("libnvshmem_host.so.3", padding=8 * cuda)}
        env.install(f"nvidia-nvshmem-cu{cuda}", version, files=files, tag=ANY_LINUX)
    answer = doctor(env.uninstall("nvidia-nvshmem-cu13", "3.4.5"))
    assert answer.first == (
        f"error EB202: nvidia-nvshmem-cu12 3.3.24: {HOST} is gone, as nvidia-nvshmem-cu13 was"
        " removed"
    )
    assert "needs `libnvshmem_host.so.3`" in answer.effects
    assert answer.repair.endswith("--no-deps nvidia-nvshmem-cu12==3.3.24")
