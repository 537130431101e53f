"""Commands that swap or remove torch behind the back of a lock, tried with real uv."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from index import local_wheel
from lockworld import LINUX, pyproject

from envbuild.core.project.manifest import parse_project
from envbuild.core.requirementstxt import parse_requirements
from envbuild.core.uvlock import versions_in
from envbuild.model.report import Outcome

if TYPE_CHECKING:
    from lockworld import World

PYTHON = ("--python", "3.11")
INSTALLED = ("python", "-c", "import torch; print(torch.__version__)")
PER_EXTRA = """
[project.optional-dependencies]
cpu = ["torch==2.7.0"]
cu128 = ["torch==2.7.0"]

[tool.uv.sources]
torch = [
    { index = "pytorch-cpu", extra = "cpu" },
    { index = "pytorch-cu128", extra = "cu128" },
]
"""
CONFLICTS = 'conflicts = [[{ extra = "cpu" }, { extra = "cu128" }]]'


def swap_by_hand(world: World) -> None:
    """Put PyPI's build of the same release in, past the project's constraints."""
    index = str(world.index.urls.pypi)
    by_hand = ("pip", "install", "--no-config", "--no-deps", "--reinstall", "--index-url", index)
    world.uv(*by_hand, "torch==2.7.0")
    assert world.uv("run", "--no-sync", *PYTHON, *INSTALLED).stdout.strip() == "2.7.0"


def newer_torch(world: World) -> None:
    """Let PyPI serve a newer torch, which is built with CUDA 13."""
    tag = "cp311-cp311-manylinux_2_28_x86_64"
    world.index.add_pypi(
        local_wheel("torch", "2.15.0", tag, requires=("nvidia-nccl-cu13==2.30.7",)),
        local_wheel("nvidia-nccl-cu13", "2.30.7", LINUX),
    )


def test_uv_run_and_uv_sync_keep_the_locked_build(world: World) -> None:
    world.write(pyproject("torch", "peft"))
    world.lock()
    assert world.uv("run", *PYTHON, *INSTALLED).stdout.strip() == "2.7.0+cu128"
    world.uv("sync", *PYTHON)
    assert world.uv("run", *PYTHON, *INSTALLED).stdout.strip() == "2.7.0+cu128"
    assert world.uv("sync", "--check", *PYTHON).returncode == 0


def test_drf_h1_uv_run_puts_the_locked_build_back_over_a_swap(world: World) -> None:
    world.write(pyproject("torch"))
    world.lock()
    world.uv("sync", *PYTHON)
    swap_by_hand(world)
    check = world.uv("sync", "--check", *PYTHON, check=False)
    assert check.returncode != 0
    assert "torch==2.7.0+cu128" in check.stderr
    assert world.uv("run", *PYTHON, *INSTALLED).stdout.strip() == "2.7.0+cu128"


def test_drf_h1_a_torch_per_extra_cannot_fall_back_to_the_build_of_pypi(world: World) -> None:
    """Without `--extra` uv took torch through another dependency, from the default index."""
    text = pyproject("peft").replace("package = false", f"package = false\n{CONFLICTS}")
    world.write(text + PER_EXTRA)
    world.lock()
    assert 'torch = { index = "pytorch-cu128" }' in world.read("pyproject.toml")
    assert world.uv("run", *PYTHON, *INSTALLED).stdout.strip() == "2.7.0+cu128"
    extra = world.uv("run", "--extra", "cu128", *PYTHON, *INSTALLED)
    assert extra.stdout.strip() == "2.7.0+cu128"


def test_drf_h1_the_torch_backend_of_uv_is_said_to_bind_nothing(world: World) -> None:
    text = pyproject("torch").replace("package = false", 'package = false\ntorch-backend = "auto"')
    assert any("only `uv pip` obeys" in note for note in parse_project(text).notes)
    world.write(text)
    world.lock()
    assert versions_in(world.read("uv.lock"))["torch"] == "2.7.0+cu128"


def test_drf_h2_uv_sync_removes_nothing_that_torch_needs(world: World) -> None:
    world.write(pyproject("torch"))
    world.lock()
    world.uv("venv", *PYTHON, ".venv")
    world.uv("pip", "sync", "lockfiles/pylock.cu128.toml")
    plan = world.uv("sync", "--dry-run", *PYTHON).stderr
    assert "Would make no changes" in plan, "both layers hold one set"
    held = versions_in(world.read("uv.lock"))
    assert sum(name.startswith("nvidia-") for name in held) >= 13
    assert held["triton"] == "3.3.0"


def test_a_dependency_added_without_a_lock_is_stale_and_not_installed(world: World) -> None:
    world.write(pyproject("torch"))
    world.lock()
    world.write(world.read("pyproject.toml").replace('["torch"]', '["torch", "einops"]'))
    assert world.uv("sync", "--locked", *PYTHON, check=False).returncode != 0
    report = world.lock(check=True)
    assert report.outcome is Outcome.STALE
    assert any(change.text == "einops 0.8.1 added" for change in report.changes)


def test_drf_h3_a_requirements_file_without_a_torch_is_locked_with_its_torch(world: World) -> None:
    world.write("peft>=0.19\ntqdm\n", "requirements.txt")
    world.write(
        '[tool.envbuild]\nlayer = "pip"\nrequirements = ["requirements.txt"]\n'
        '[tool.envbuild.targets.cu128]\npython = "3.11"\ngpus = ["B200"]\ntorch = "2.7.0"\n'
    )
    world.lock()
    text = world.read("lockfiles/requirements.cu128.txt")
    pins = parse_requirements(text)
    assert pins["torch"] == "2.7.0+cu128"
    entries = [line for line in text.splitlines() if line and not line.startswith((" ", "#", "-"))]
    assert all("==" in line and line.endswith("\\") for line in entries), "a hash for each"
    assert text.count("--hash=sha256:") >= len(pins)


def test_in_layer_pip_no_uv_command_touches_the_environment(world: World) -> None:
    world.write(pyproject("peft", layer="pip"))
    world.lock()
    world.uv("venv", *PYTHON, ".venv")
    world.uv("pip", "sync", "lockfiles/requirements.cu128.txt")
    swap_by_hand(world)
    world.uv("run", *PYTHON, *INSTALLED)
    assert world.uv("run", *PYTHON, *INSTALLED).stdout.strip() == "2.7.0", "left as it was"
    assert world.uv("sync", *PYTHON, check=False).returncode != 0


def test_drf_h4_an_open_requirement_does_not_move_torch_to_the_next_cuda(own_world: World) -> None:
    newer_torch(own_world)
    own_world.index.add_pypi(local_wheel("quantizer", "0.47.0", requires=("torch<3,>=2.2",)))
    alone = own_world.root / "alone.in"
    alone.write_text("quantizer==0.47.0\n")
    index = str(own_world.index.urls.pypi)
    plain = own_world.uv("pip", "compile", "--no-config", "--index-url", index, str(alone), *PYTHON)
    assert "torch==2.15.0" in plain.stdout, "what uv takes by itself"

    own_world.write(pyproject("quantizer==0.47.0", torch=">=2", more='driver = ">=570"'))
    own_world.lock()
    held = versions_in(own_world.read("uv.lock"))
    assert held["torch"] == "2.8.0+cu128"
    assert not [name for name in held if name.endswith("-cu13")]
    assert '"torch==2.8.0+cu128"' in own_world.read("pyproject.toml")


def test_uv_lock_upgrade_leaves_torch_where_it_is(own_world: World) -> None:
    own_world.write(pyproject("peft"))
    own_world.lock()
    newer_torch(own_world)
    own_world.index.add_pypi(local_wheel("peft", "0.20.0", requires=("torch>=1.13.0",)))
    own_world.uv("lock", "--upgrade", "--no-cache", *PYTHON)
    held = versions_in(own_world.read("uv.lock"))
    assert held["peft"] == "0.20.0"
    assert held["torch"] == "2.7.0+cu128"


def test_a_dependency_that_needs_another_torch_is_refused_by_uv(own_world: World) -> None:
    own_world.write(pyproject("torch"))
    own_world.lock()
    newer_torch(own_world)
    own_world.index.add_pypi(local_wheel("modern", "1.0", requires=("torch>=2.9",)))
    answer = own_world.uv("add", "modern", *PYTHON, check=False)
    assert answer.returncode != 0
    assert "torch==2.7.0+cu128" in answer.stderr
    assert versions_in(own_world.read("uv.lock"))["torch"] == "2.7.0+cu128"


@pytest.mark.parametrize("command", ["pip", "project"])
def test_a_swapped_torch_is_replaced_by_installing_the_lock(world: World, command: str) -> None:
    world.write(pyproject("torch", "tqdm", layer=command))
    world.lock()
    world.uv("venv", *PYTHON, ".venv")
    world.uv("pip", "sync", "lockfiles/pylock.cu128.toml")
    swap_by_hand(world)
    world.uv("pip", "sync", "lockfiles/pylock.cu128.toml")
    assert world.uv("run", "--no-sync", *PYTHON, *INSTALLED).stdout.strip() == "2.7.0+cu128"
