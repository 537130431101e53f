"""The two layers: in one uv.lock owns the environment, in the other nothing but the lockfiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import tomllib
from artefacts import exported, installed, pylocked, required, versions
from lockworld import World, pyproject

from envbuild.model.report import Outcome

if TYPE_CHECKING:
    from pathlib import Path

PYLOCK = "lockfiles/pylock.cu128.toml"
REQUIREMENTS = "lockfiles/requirements.cu128.txt"
STALE = """\
[project]
name = "demo"
version = "0.1"
requires-python = "==3.11.*"
dependencies = ["torch", "peft"]

[tool.uv]
package = false

[[tool.uv.index]]
name = "pypi"
url = "{pypi}"
default = true
"""
GROUPS = """
[project.optional-dependencies]
vision = ["timm"]
graphs = ["torch-scatter"]

[dependency-groups]
dev = ["iniconfig", "torch-cluster"]
docs = ["einops"]
extra = [{ include-group = "docs" }, "six"]
"""


@pytest.mark.parametrize("requirements", [("torch", "peft"), ("peft",), ("timm",)])
def test_a_bare_uv_run_leaves_the_environment_alone(
    world: World, requirements: tuple[str, ...]
) -> None:
    world.write(pyproject(*requirements))
    world.lock()
    world.uv("sync")
    before = venv_state(world)
    done = world.uv("run", "python", "-c", "pass")
    assert "Installed" not in done.stderr
    assert venv_state(world) == before
    assert installed(world.root / ".venv")["torch"] == "2.7.0+cu128"
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_a_stale_uv_lock_with_another_torch_is_replaced(world: World) -> None:
    world.write(STALE.format(pypi=world.index.urls.pypi))
    world.uv("lock")
    assert versions(exported(world))["torch"] == "2.8.0"
    world.write(pyproject("torch", "peft"))
    report = world.lock()
    assert report.outcome is Outcome.WRITTEN
    assert "torch 2.8.0 -> 2.7.0+cu128" in [c.text for c in report.changes if c.file == "uv.lock"]
    assert versions(exported(world))["torch"] == "2.7.0+cu128"
    world.uv("sync")
    before = venv_state(world)
    world.uv("run", "python", "-c", "pass")
    assert venv_state(world) == before


def test_an_unreadable_uv_lock_is_replaced(world: World) -> None:
    world.write(pyproject("torch"))
    world.lock()
    good = world.files()
    world.write("<<<<<<< ours\n" + good["uv.lock"], "uv.lock")
    assert world.lock(check=True).outcome is Outcome.STALE
    assert world.lock().outcome is Outcome.WRITTEN
    assert world.files() == good


def test_layer_pip_writes_no_uv_lock_and_uv_keeps_its_hands_off(world: World) -> None:
    world.write(pyproject("torch", "peft", layer="pip"))
    world.lock()
    assert sorted(world.files()) == [PYLOCK, REQUIREMENTS, "pyproject.toml"]
    assert tomllib.loads(world.read("pyproject.toml"))["tool"]["uv"] == {
        "package": False,
        "managed": False,
    }
    refused = world.uv("lock", check=False)
    assert refused.returncode != 0
    assert "marked as unmanaged" in refused.stderr
    assert "uv.lock" not in world.files()


def test_layer_pip_keeps_what_was_installed_by_hand(world: World) -> None:
    world.write(pyproject("torch", "peft", layer="pip"))
    world.lock()
    world.uv("venv")
    world.uv("pip", "sync", PYLOCK)
    assert installed(world.root / ".venv") == versions(pylocked(world.read(PYLOCK)))
    index = f"{world.index.base}/whl/cu126"
    world.uv("pip", "install", "--no-deps", "--index", index, "torch==2.8.0+cu126")
    done = world.uv("run", "python", "-c", "import torch; print(torch.__version__)")
    assert done.stdout == "2.8.0+cu126\n"
    assert installed(world.root / ".venv")["torch"] == "2.8.0+cu126"


@pytest.mark.parametrize(("first", "second"), [("project", "pip"), ("pip", "project")])
def test_a_switch_of_the_layer_ends_in_the_files_of_a_fresh_project(
    world: World, tmp_path: Path, first: str, second: str
) -> None:
    wanted = ("torch", "peft", "spconv", "torch-scatter", "flash-attn")
    fresh = World(
        index=world.index, root=tmp_path / "fresh", cache=world.cache, catalog=world.catalog
    )
    fresh.write(pyproject(*wanted, layer=second))
    fresh.lock()
    world.write(pyproject(*wanted, layer=first))
    world.lock()
    switched = world.read("pyproject.toml").replace(f'layer = "{first}"', f'layer = "{second}"')
    world.write(switched)
    assert world.lock(check=True).outcome is Outcome.STALE
    world.lock()
    assert world.files() == fresh.files()


def test_layer_pip_locks_requirements_files_without_a_project_table(world: World) -> None:
    world.write(
        "[tool.envbuild]\n"
        'layer = "pip"\n'
        'requirements = ["requirements.txt"]\n\n'
        "[tool.envbuild.targets.cu128]\n"
        'python = "3.11"\ngpus = ["B200"]\ntorch = "2.7.0"\n'
    )
    world.write("peft>=0.19  # trained with it\n-r more.txt\n", "requirements.txt")
    world.write("torch-scatter\nspconv\n", "more.txt")
    assert world.lock().outcome is Outcome.WRITTEN
    pins = versions(pylocked(world.read(PYLOCK)))
    assert pins["torch"] == "2.7.0+cu128"
    assert pins["torch-scatter"] == "2.1.2+pt27cu128"
    assert pins["spconv-cu126"] == "2.3.8"
    assert "managed = false" in world.read("pyproject.toml")
    assert world.lock(check=True).outcome is Outcome.FRESH
    world.uv("venv")
    world.uv("pip", "sync", PYLOCK)
    assert installed(world.root / ".venv") == pins


@pytest.mark.parametrize(
    ("keys", "options", "present", "absent"),
    [
        ("", (), {"iniconfig", "torch-cluster"}, {"timm", "torch-scatter", "einops", "six"}),
        ('extras = ["vision"]', ("--extra", "vision"), {"timm", "torchvision"}, {"einops"}),
        (
            'extras = ["graphs"]\ngroups = ["extra"]',
            ("--extra", "graphs", "--group", "extra"),
            {"torch-scatter", "einops", "six", "iniconfig", "torch-cluster"},
            {"timm", "torchvision"},
        ),
    ],
    ids=["dev", "extra", "both"],
)
def test_the_pylock_is_what_uv_sync_installs(
    world: World, keys: str, options: tuple[str, ...], present: set[str], absent: set[str]
) -> None:
    world.write(pyproject("torch", more=keys + GROUPS))
    world.lock()
    pins = versions(pylocked(world.read(PYLOCK)))
    assert pins.keys() >= present
    assert not absent & pins.keys()
    assert versions(required(world.read(REQUIREMENTS))) == pins
    assert versions(exported(world, *options)) == pins
    world.uv("sync", "--locked", *options)
    assert installed(world.root / ".venv") == pins


def test_a_coupled_package_named_in_the_dev_group_alone_is_bound(world: World) -> None:
    """`dev` is a default group of uv, so `uv sync` installs it unasked."""
    world.write(
        pyproject("einops", more='[dependency-groups]\ndev = ["torch", "torch-scatter", "spconv"]')
    )
    world.lock()
    pins = versions(pylocked(world.read(PYLOCK)))
    assert pins["torch"] == "2.7.0+cu128"
    assert pins["torch-scatter"] == "2.1.2+pt27cu128"
    assert pins["spconv-cu126"] == "2.3.8"
    world.uv("sync", "--locked")
    assert installed(world.root / ".venv") == pins
    assert world.lock(check=True).outcome is Outcome.FRESH


@pytest.mark.parametrize(
    ("groups", "present"),
    [
        ('default-groups = ["docs"]', {"einops", "torch-scatter"}),
        ('default-groups = "all"', {"einops", "torch-scatter", "iniconfig"}),
        ("default-groups = []", set()),
    ],
    ids=["named", "all", "none"],
)
@pytest.mark.parametrize("layer", ["project", "pip"])
def test_default_groups_are_those_of_uv(
    world: World, layer: str, groups: str, present: set[str]
) -> None:
    text = pyproject(
        "torch",
        "spconv",
        layer=layer,
        more='[dependency-groups]\ndev = ["iniconfig"]\ndocs = ["einops", "torch-scatter"]',
    )
    world.write(text.replace("package = false", f"package = false\n{groups}"))
    world.lock()
    pins = versions(pylocked(world.read(PYLOCK)))
    assert pins.keys() & {"einops", "torch-scatter", "iniconfig"} == present
    assert pins["spconv-cu126"] == "2.3.8"
    if layer == "project":
        world.uv("sync", "--locked")
        assert installed(world.root / ".venv") == pins
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_an_extra_that_no_target_takes_does_not_move_the_set(world: World) -> None:
    """uv.lock also holds the extra, so that `uv sync --extra` finds the coupled build."""
    extra = '[project.optional-dependencies]\ngraphs = ["torch-scatter"]'
    world.write(pyproject("torch", more=extra))
    world.lock()
    assert "torch-scatter" not in pylocked(world.read(PYLOCK))
    assert versions(exported(world, "--extra", "graphs"))["torch-scatter"] == "2.1.2+pt27cu128"


def venv_state(world: World) -> dict[str, int]:
    """Return the time of every file in the environment, bytecode left out."""
    return {
        str(path): path.stat().st_mtime_ns
        for path in (world.root / ".venv").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
