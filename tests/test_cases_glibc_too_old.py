"""Kind glibc-too-old: a module that asks for a newer C or C++ library than there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casedoctor import NEW_ERROR, SYSTEM, image, library, put, torch_env
from elfmaker import make_elf

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

CXX = "libstdc++.so.6"


def libstdcxx(newest: int) -> bytes:
    return library(CXX, *(f"g{number}@@GLIBCXX_3.4.{number}" for number in range(9, newest + 1)))


def flash_attn(env: MadeEnv, glibc: str) -> MadeEnv:
    torch_env(env, "2.7.1+cu126", python="3.12")
    path = "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so"
    data = make_elf(
        needed=("libc10.so", "libtorch_cpu.so", "libc.so.6"),
        wants=(NEW_ERROR, f"f{glibc}@GLIBC_2.{glibc}=libc.so.6"),
        defines=("PyInit_flash_attn_2_cuda",),
    )
    files = {"flash_attn/__init__.py": "import flash_attn_2_cuda\n", path: data}
    tag = "cp312-cp312-linux_x86_64"
    return env.install("flash-attn", "2.8.0.post2", files=files, requires=["torch"], tag=tag)


def test_glc_h1_a_wheel_that_promises_nothing(doctor: Doctor, tmp_path: Path) -> None:
    env = flash_attn(image(tmp_path, glibc=31).venv(python="3.12"), "32")
    answer = doctor(env.inside(), "--root", tmp_path)
    assert answer.code == 1
    assert answer.first == (
        "error EB303: flash-attn 2.8.0.post2 needs GLIBC_2.32, `/lib/x86_64-linux-gnu/libc.so.6`"
        " has at most GLIBC_2.31"
    )
    assert "flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so needs GLIBC_2.32" in answer.effects
    assert "use a system with glibc 2.32" in answer.repair
    assert "or build flash-attn 2.8.0.post2 on this one" in answer.repair


def test_glc_h1_trap_a_system_that_has_it(doctor: Doctor, tmp_path: Path) -> None:
    env = flash_attn(image(tmp_path, glibc=32).venv(python="3.12"), "32")
    answer = doctor(env.inside(), "--root", tmp_path, "--fail-on", "note")
    assert answer.code == 0, answer.out


def test_glc_h2_conda_has_an_older_libstdcxx(doctor: Doctor, tmp_path: Path) -> None:
    """The interpreter of conda has an RPATH, so that its own copy wins over the system's."""
    env = image(tmp_path, glibc=39).conda(python="3.8")
    put(tmp_path, f"{SYSTEM}/{CXX}", libstdcxx(33))
    put(tmp_path, f"conda/lib/{CXX}.0.29", libstdcxx(29))
    (tmp_path / "conda" / "lib" / CXX).symlink_to(f"{CXX}.0.29")
    python = make_elf(rpath="$ORIGIN/../lib", needed=("libc.so.6",))
    put(tmp_path, "conda/bin/python3.8", python)
    torch_env(env, "2.4.1+cu121", python="3.8", new_abi=False)
    module = make_elf(
        needed=(CXX, "libc.so.6"),
        wants=(f"g32@GLIBCXX_3.4.32={CXX}",),
        defines=("PyInit_gymtorch",),
    )
    files = {"isaacgym/__init__.py": "from . import gymtorch\n", "isaacgym/gymtorch.so": module}
    env.install("isaacgym", "1.0", files=files, tag="cp38-cp38-linux_x86_64")
    answer = doctor(env.inside(), "--root", tmp_path)
    assert answer.code == 1
    assert answer.first == (
        "error EB303: isaacgym 1.0 needs GLIBCXX_3.4.32, `/conda/lib/libstdc++.so.6` has at most"
        " GLIBCXX_3.4.29"
    )
    assert "isaacgym/gymtorch.so needs GLIBCXX_3.4.32" in answer.effects
    assert "conda install" in answer.repair
    assert "libstdcxx-ng>=13" in answer.repair


def test_glc_h3_the_libstdcxx_that_is_loaded_first_wins(doctor: Doctor, tmp_path: Path) -> None:
    env = image(tmp_path, glibc=17).venv(python="3.10")
    put(tmp_path, f"{SYSTEM}/{CXX}", libstdcxx(19))
    put(tmp_path, f"opt/gcc/{CXX}", libstdcxx(28))
    torch_env(env, "2.1.0+cu118", python="3.10", new_abi=False, needs=(CXX,))
    name = "_youtokentome_cython.cpython-310-x86_64-linux-gnu.so"
    module = make_elf(
        needed=(CXX,),
        rpath="/opt/gcc",
        wants=(f"g20@GLIBCXX_3.4.20={CXX}",),
        defines=("PyInit__youtokentome_cython",),
    )
    files = {"youtokentome/__init__.py": "import _youtokentome_cython\n", name: module}
    env.install("youtokentome", "1.0.6", files=files, tag="cp310-cp310-linux_x86_64")
    answer = doctor(env.inside(), "--root", tmp_path)
    assert answer.code == 1
    assert answer.first == (
        "error EB303: youtokentome 1.0.6 needs GLIBCXX_3.4.20,"
        " `/lib/x86_64-linux-gnu/libstdc++.so.6` has at most GLIBCXX_3.4.19"
    )
    assert "use a libstdc++ of GCC 4.9 or later" in answer.repair


def test_glc_h3_trap_two_copies_of_which_each_will_do(doctor: Doctor, tmp_path: Path) -> None:
    env = image(tmp_path, glibc=17).venv(python="3.10")
    put(tmp_path, f"{SYSTEM}/{CXX}", libstdcxx(28))
    torch_env(env, "2.1.0+cu118", python="3.10", new_abi=False, needs=(CXX,))
    answer = doctor(env.inside(), "--root", tmp_path, "--fail-on", "note")
    assert answer.code == 0, answer.out
