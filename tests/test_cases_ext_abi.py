"""Kind ext-abi: a module that was compiled for another torch, or for the other C++ ABI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casedoctor import NEW_ERROR, OLD_ERROR, extension, torch_env
from elfmaker import make_elf

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

GUARD = "_ZNK3c107SymBool10guard_boolEPKcl"
CASTER = "_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb"
LIBRARY = "_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj"
PYTHON = {"flash_attn/__init__.py": "import flash_attn_2_cuda\n"}


def flash_attn(env: MadeEnv, version: str, tag: str, *wants: str, **parts: object) -> MadeEnv:
    """Install flash-attn; its module has no RPATH, so torch has to be imported before it."""
    data = make_elf(
        needed=("libc10.so", "libtorch_cpu.so", "libtorch_cuda.so"),
        wants=wants,
        defines=("PyInit_flash_attn_2_cuda",),
        **parts,  # type: ignore[arg-type]
    )
    path = f"flash_attn_2_cuda.cpython-{tag}-x86_64-linux-gnu.so"
    where = f"cp{tag}-cp{tag}-linux_x86_64"
    return env.install(
        "flash-attn", version, files={**PYTHON, path: data}, requires=["torch"], tag=where
    )


def test_abi_h1_the_old_abi_under_a_torch_of_the_new(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.7.0+cu128", archs="sm_90 sm_120", python="3.10")
    answer = doctor(flash_attn(env, "2.7.4.post1", "310", OLD_ERROR), "--gpu", "RTX 5090")
    assert answer.code == 1
    assert answer.first == (
        "error EB302: flash-attn 2.7.4.post1 is built for the old C++ ABI (before cxx11), torch has"
        " the new C++ ABI: 1 symbol of torch missing in torch 2.7.0+cu128"
    )
    assert f"{OLD_ERROR} (c10::Error::Error)" in answer.effects
    assert "`cu12torch2.7cxx11abiTRUE`" in answer.repair
    assert "--no-build-isolation" in answer.repair
    assert "torch==" not in answer.repair, "the GPU decides which torch is needed"


def test_abi_h1_trap_a_module_that_finds_torch_only_after_torch(
    doctor: Doctor, tmp_path: Path
) -> None:
    env = torch_env(tmp_path, "2.7.0+cu128", python="3.10")
    answer = doctor(flash_attn(env, "2.8.0.post2", "310", NEW_ERROR), "--fail-on", "note")
    assert answer.first.startswith("healthy: "), answer.out
    assert answer.code == 0


def test_abi_h2_the_new_abi_under_a_torch_of_the_old(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.6.0+cu124", metadata="2.6.0", new_abi=False)
    env.install("vllm", "0.8.4", requires=["torch==2.6.0"])
    answer = doctor(flash_attn(env, "2.8.0.post2", "311", NEW_ERROR))
    assert answer.first == (
        "error EB302: flash-attn 2.8.0.post2 is built for the new C++ ABI (cxx11), torch has the"
        " old C++ ABI: 1 symbol of torch missing in torch 2.6.0+cu124"
    )
    assert "`cu12torch2.6cxx11abiFALSE`" in answer.repair


def test_abi_h3_a_scatter_that_names_another_torch(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "1.13.1+cu117", new_abi=False, python="3.10")
    files = {"torch_scatter/__init__.py": "", **extension("torch_scatter/_scatter_cuda.so", GUARD)}
    env.install("torch-scatter", "2.1.2+pt21cu118", files=files, tag="cp310-cp310-linux_x86_64")
    answer = doctor(env)
    assert answer.first == (
        "error EB103: torch-scatter 2.1.2+pt21cu118 is made for torch 2.1, found torch 1.13.1+cu117"
        " (also cu118 against cu117)"
    )
    assert f"{GUARD} (c10::SymBool::guard_bool)" in answer.effects
    assert "torch-scatter==2.1.1+pt113cu117" in answer.repair
    assert "https://data.pyg.org/whl/torch-1.13.0+cu117.html" in answer.repair


def test_abi_h3_a_scatter_that_names_none(doctor: Doctor, tmp_path: Path) -> None:
    """The table of torch's symbols begins after both, so that it can say `newer` and no more."""
    env = torch_env(tmp_path, "1.13.1+cu117", new_abi=False, python="3.10")
    files = {"torch_scatter/__init__.py": "", **extension("torch_scatter/_scatter_cuda.so", GUARD)}
    env.install("torch-scatter", "2.1.2", files=files, tag="cp310-cp310-linux_x86_64")
    answer = doctor(env)
    assert answer.first.startswith("error EB302: torch-scatter 2.1.2 is built for a newer torch: ")
    assert "torch-scatter==2.1.1+pt113cu117" in answer.repair


def test_abi_h4_an_egg_that_no_metadata_shows(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "1.9.0+cu111", new_abi=False, python="3.7")
    egg, name = (
        "pointops-0.0.0-py3.7-linux-x86_64.egg",
        "pointops_cuda.cpython-37m-x86_64-linux-gnu.so",
    )
    env.write(
        f"{egg}/{name}",
        make_elf(needed=("libc10.so", "libtorch_cpu.so"), wants=(CASTER,), rpath="$ORIGIN"),
    )
    env.write(f"{egg}/EGG-INFO/PKG-INFO", "Metadata-Version: 1.0\nName: pointops\nVersion: 0.0.0\n")
    answer = doctor(env.pth("easy-install", f"./{egg}"))
    assert answer.code == 1
    assert answer.first.startswith(f"error EB302: {name} is built for ")
    assert f"{egg}/{name}" in answer.effects
    assert "(pybind11::detail::type_caster)" in answer.effects
    assert "with its `build` folder and its egg, and build it again" in answer.repair
    assert "--no-build-isolation" in answer.repair


def test_abi_h4_trap_an_egg_for_this_torch(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "1.9.0+cu111", new_abi=False, python="3.7", defines=(CASTER,))
    egg, name = (
        "pointops-0.0.0-py3.7-linux-x86_64.egg",
        "pointops_cuda.cpython-37m-x86_64-linux-gnu.so",
    )
    needed = ("libc10.so", "libtorch_cpu.so")
    env.write(f"{egg}/{name}", make_elf(needed=needed, wants=(CASTER,)))
    answer = doctor(env.pth("easy-install", f"./{egg}"))
    assert answer.code == 0
    assert "note EB204" in answer.out, "still nobody replaces it when torch changes"


def test_abi_h5_an_optional_of_the_standard_library(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.2.2+cu121", metadata="2.2.2", new_abi=False, python="3.8")
    files = {"vllm/__init__.py": "", **extension("vllm/_C.abi3.so", LIBRARY)}
    tag = "cp38-cp38-manylinux1_x86_64"
    env.install("vllm", "0.5.0", files=files, requires=["torch==2.3.0"], tag=tag)
    answer = doctor(env)
    assert answer.first == (
        "error EB103: vllm 0.5.0 is made for torch ==2.3.0, found torch 2.2.2+cu121"
    )
    assert "vllm 0.5.0 is built for torch 2.3.0: 1 symbol of torch missing" in answer.effects
    assert f"{LIBRARY} (torch::Library::Library)" in answer.effects
    assert "install torch 2.3.0, which vllm 0.5.0 is made for" in answer.repair
