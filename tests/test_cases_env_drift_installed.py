"""Kind env-drift, after the fact: what doctor says of an environment that a command swapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casedoctor import ANY_LINUX, extension, torch_env, torch_files
from envmaker import EnvMaker
from lockworld import pyproject
from test_cases_env_drift import CONFLICTS, PER_EXTRA, PYTHON, swap_by_hand

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv
    from lockworld import World

PROJECT = """\
[project]
name = "demo"
version = "0.1"
requires-python = "==3.11.*"
dependencies = ["peft"]
{extras}
[tool.uv]
package = false
torch-backend = "auto"
{conflicts}
"""
INDEX = '[[tool.uv.index]]\nname = "{name}"\nurl = "{url}"\n{how} = true\n'
CUDA = ("nvidia-cublas-cu12==12.4.5.8", "nvidia-cudnn-cu12==9.1.0.70")
LOCK = """\
version = 1
revision = 3
requires-python = ">=3.11"

[[package]]
name = "x"
version = "0"
source = { virtual = "." }
dependencies = [{ name = "torch" }]

[[package]]
name = "torch"
version = "2.6.0"
source = { registry = "https://pypi.org/simple" }
"""


def write_project(world: World, extras: str = "", conflicts: str = "") -> None:
    """Write a project as users do, which names the indexes of torch and binds none."""
    pytorch = str(world.index.urls.pytorch)
    text = PROJECT.format(extras=extras, conflicts=conflicts)
    for name in ("cpu", "cu128"):
        text += INDEX.format(name=f"pytorch-{name}", url=f"{pytorch}/{name}", how="explicit")
    world.write(text + INDEX.format(name="pypi", url=world.index.urls.pypi, how="default"))


def test_drf_h1_an_extra_that_a_plain_uv_run_forgets(world: World, doctor: Doctor) -> None:
    write_project(world, PER_EXTRA, CONFLICTS)
    world.uv("lock", *PYTHON)
    world.uv("sync", *PYTHON, "--extra", "cu128")
    answer = doctor(world.root)
    assert answer.first == (
        "warning EB501: a plain `uv run` will replace torch 2.7.0+cu128 by 2.8.0,"
        " `uv run --extra cu128` keeps it"
    )
    assert "always say --extra cu128, or set UV_NO_SYNC=1" in answer.out
    assert '`torch-backend = "auto"`, which only `uv pip` obeys' in answer.out


def test_drf_h1_the_cuda_wheel_of_uv_pip(world: World, doctor: Doctor) -> None:
    """What the wheel of another release then lacks is the same swap, and no work for uv lock."""
    write_project(world)
    world.uv("lock", *PYTHON)
    world.uv("sync", *PYTHON)
    index = f"{world.index.urls.pytorch}/cu128"
    by_hand = ("pip", "install", "--no-config", "--no-deps", "--reinstall", "--index-url", index)
    world.uv(*by_hand, "torch==2.7.0")
    answer = doctor(world.root)
    assert answer.code == 1
    assert answer.first == (
        "error EB501: the next `uv run` will replace torch 2.7.0+cu128 by 2.8.0"
    )
    assert "torch 2.7.0+cu128 has 15 requirements that are not satisfied" in answer.effects
    assert "other problems" not in answer.out
    assert "--upgrade-package" not in answer.repair
    assert answer.repair.endswith(
        "uv lock && uv sync, with the versions that are meant in pyproject.toml"
    )


def test_drf_h1_trap_the_locked_build_is_there(world: World, doctor: Doctor) -> None:
    world.write(pyproject("torch"))
    world.lock()
    world.uv("sync", *PYTHON)
    answer = doctor(world.root)
    assert answer.first.startswith("healthy: "), answer.out


def test_loc_h2_the_build_of_pypi_under_a_lock_that_names_another(
    world: World, doctor: Doctor
) -> None:
    world.write(pyproject("torch"))
    world.lock()
    world.uv("sync", *PYTHON)
    swap_by_hand(world)
    answer = doctor(world.root)
    assert answer.code == 1
    assert answer.first == (
        "error EB501: the next `uv run` will replace torch 2.7.0 by 2.7.0+cu128"
    )
    assert "other problems" not in answer.out
    assert answer.repair.splitlines()[-1].endswith("--reinstall-package torch")
    assert "uv sync --directory" in answer.repair


def of_pypi(folder: Path) -> MadeEnv:
    """Make torch 2.6.0 in a project whose lock is that of a torch without CUDA."""
    env = torch_env(
        folder, "2.6.0+cu124", metadata="2.6.0", new_abi=False, requires=[*CUDA, "triton==3.2.0"]
    )
    for requirement in (*CUDA, "triton==3.2.0"):
        name, _, version = requirement.partition("==")
        env.install(name, version, tag=ANY_LINUX)
    manifest = '[project]\nname = "x"\nversion = "0"\ndependencies = ["torch==2.6.0"]\n'
    (folder / "pyproject.toml").write_text(manifest, "utf-8")
    (folder / "uv.lock").write_text(LOCK, "utf-8")
    return env


def test_drf_h2_a_sync_would_take_the_cuda_libraries_away(doctor: Doctor, tmp_path: Path) -> None:
    of_pypi(tmp_path)
    answer = doctor(tmp_path)
    assert answer.code == 1
    assert answer.first == (
        "error EB504: `uv sync` would remove 3 packages that torch 2.6.0 needs: uv.lock does not"
        " hold them"
    )
    for name in ("nvidia-cublas-cu12", "nvidia-cudnn-cu12", "triton"):
        assert f"  {name}\n" in answer.effects
    assert "uv lock" in answer.repair
    assert "--inexact" in answer.repair


def test_drf_h2_a_sync_took_them_away(doctor: Doctor, tmp_path: Path) -> None:
    env = of_pypi(tmp_path)
    for requirement in (*CUDA, "triton==3.2.0"):
        env.uninstall(*requirement.split("=="))
    answer = doctor(tmp_path)
    assert answer.code == 1
    assert answer.first == (
        "error EB504: uv.lock does not hold 2 packages that torch 2.6.0 needs and that are not"
        " installed: another `uv sync` will not bring them"
    )
    assert "EB106: torch 2.6.0 requires 3 packages that are not installed" in answer.effects
    assert "lead torch to the index of its CUDA in [tool.uv.sources]" in answer.repair
    assert "uv add" not in answer.repair


def test_drf_h3_pip_over_conda(doctor: Doctor, tmp_path: Path) -> None:
    env = EnvMaker(tmp_path).conda(python="3.10")
    env.conda_package("pytorch", "1.13.1")
    env.conda_package("torchvision", "0.14.1")
    env.install(
        "torch",
        "2.6.0",
        installer="pip",
        files={
            "torch/__init__.py": "",
            "torch/version.py": "__version__ = '2.6.0+cu124'\ncuda = '12.4'\n",
            **torch_files(new_abi=False, python="310"),
        },
        tag="cp310-cp310-manylinux1_x86_64",
    )
    files = {"torchvision/__init__.py": "", **extension("torchvision/_C.so", "_ZN2at3oldEv")}
    env.install("torchvision", "0.14.1", installer="conda", files=files, requires=["torch==1.13.1"])
    answer = doctor(env)
    assert answer.code == 1
    assert answer.first == "error EB110: torch 2.6.0 came by pip over conda's pytorch 1.13.1"
    assert "torchvision 0.14.1 is built for torch 1.13.1" in answer.effects
    remove, companion, back = [
        line.strip() for line in answer.repair.splitlines() if not line.startswith("  #")
    ]
    assert remove.startswith("conda remove "), "first: it takes the files of both"
    assert remove.endswith("--force pytorch torchvision")
    assert companion.endswith(" torchvision==0.21.0")
    assert back.endswith("--reinstall-package torch --no-deps torch==2.6.0")
