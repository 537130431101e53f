"""Kind env-leak: what is imported or loaded from outside of the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from casedoctor import library, torch_env
from envmaker import EnvMaker

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

PROFILER = "iJIT_NotifyEvent"


def of_conda(folder: Path, torch: str, mkl: str) -> MadeEnv:
    """Make conda's torch, which links MKL as a library of its own."""
    env = EnvMaker(folder).conda(python="3.10")
    env.conda_package("pytorch", torch, build="py3.10_cuda12.1_cudnn8.9.2_0")
    env.conda_package("mkl", mkl)
    files = {
        "torch/__init__.py": "",
        "torch/version.py": f"__version__ = '{torch}'\ncuda = '12.1'\n",
        "torch/lib/libtorch_cpu.so": library("libtorch_cpu.so", wants=(PROFILER,)),
    }
    return env.install("torch", torch, installer="conda", files=files)


def test_lek_h1_an_mkl_without_the_profiler(doctor: Doctor, tmp_path: Path) -> None:
    answer = doctor(of_conda(tmp_path, "2.2.2", "2024.1.0"))
    assert answer.code == 1
    assert answer.first == (
        "error EB112: conda's torch 2.2.2 needs MKL before 2024.1, found mkl 2024.1.0"
    )
    assert PROFILER in answer.effects
    assert "conda install 'mkl<2024.1'" in answer.repair


def test_lek_h1_trap_a_wheel_has_its_own_mkl(doctor: Doctor, tmp_path: Path) -> None:
    env = EnvMaker(tmp_path).conda(python="3.10")
    env.conda_package("mkl", "2024.1.0")
    torch_env(env, "2.2.2+cu121", metadata="2.2.2", new_abi=False, python="3.10")
    assert doctor(env, "--fail-on", "warning").code == 0


@pytest.fixture(name="home")
def a_user_site_with_a_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PYTHONNOUSERSITE", raising=False)
    site = tmp_path / "home" / ".local" / "lib" / "python3.10" / "site-packages"
    env = EnvMaker(tmp_path / "other").venv(python="3.10").at(site)
    torch_env(env, "2.6.0+cu124", metadata="2.6.0", new_abi=False, python="3.10")
    env.install("h5py", "3.12.1")
    return site


def test_lek_h2_the_user_site_comes_before_that_of_conda(
    doctor: Doctor, tmp_path: Path, home: Path
) -> None:
    env = torch_env(EnvMaker(tmp_path).conda(python="3.10"), "2.7.0+cu128", python="3.10")
    answer = doctor(env)
    assert answer.code == 1
    assert answer.first == (
        f"error EB702: torch 2.6.0 is imported from `{home}`, the environment has 2.7.0+cu128"
    )
    assert "put in front by the user site" in answer.effects
    assert answer.repair.endswith("export PYTHONNOUSERSITE=1")


@pytest.mark.parametrize("system_site", [False, True])
def test_lek_h2_trap_a_venv_has_none_or_comes_first(
    doctor: Doctor, tmp_path: Path, home: Path, *, system_site: bool
) -> None:
    assert home.is_dir()
    env = EnvMaker(tmp_path).venv(python="3.10", system_site=system_site)
    answer = doctor(torch_env(env, "2.7.0+cu128", python="3.10"), "--fail-on", "note")
    assert answer.code == 0, answer.out
