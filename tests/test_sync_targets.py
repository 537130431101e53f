"""A target that is not the one of uv.lock: what `uv run` then does, and that it is said before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lockrun import snapshot
from lockworld import PYTHON, pyproject
from scriptworld import make_script, run_script, versions
from test_commands_sync import start

if TYPE_CHECKING:
    from lockworld import World

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs Python 3.11")

OTHER = """
[tool.envbuild.targets.other]
python = "3.11"
cuda = "cpu"
torch = "2.8.0"
"""
SHOW = ("python", "-B", "-c", "import importlib.metadata as m; print(m.version('torch'))")


@pytest.fixture(name="two")
def a_project_with_two_targets(world: World) -> World:
    """Return one that is locked; the default is `cu128`."""
    world.write(pyproject("torch") + OTHER)
    world.changes["ENVBUILD_CACHE_DIR"] = str(world.root.parent / "envbuild-cache")
    world.lock()
    return world


def sync(world: World, *arguments: str) -> tuple[int, str]:
    done = start(world, *arguments)
    out, err = done.communicate(timeout=120)
    return done.returncode, out + err


def test_that_uv_run_undoes_it_is_said_and_true(two: World) -> None:
    code, said = sync(two, "--target", "other")
    assert versions(two.root / ".venv")["torch"] == "2.8.0+cpu"
    assert code == 1, said
    assert "the next `uv run` brings it back to target `cu128`" in " ".join(said.split())
    assert "EB501: the next `uv run` will replace torch 2.8.0+cpu by 2.7.0+cu128" in said
    assert two.uv("run", "--no-sync", *SHOW).stdout == "2.8.0+cpu\n"
    assert two.uv("run", *SHOW).stdout == "2.7.0+cu128\n"


def test_beside_the_projects_environment_nothing_undoes_it(two: World) -> None:
    code, said = sync(two, "--target", "other", "--venv", ".venv-other")
    assert code == 0, said
    assert "uv run" not in said
    assert "healthy" in said
    before = snapshot(two.root / ".venv-other")
    assert two.uv("run", *SHOW).stdout == "2.7.0+cu128\n"
    assert snapshot(two.root / ".venv-other") == before


def test_the_script_says_so_too(two: World) -> None:
    path = "scripts/install-other.sh"
    make_script(two, target="other")
    ended = run_script(two, path=path)
    assert ended.returncode == 0, ended.stderr
    assert "the next `uv run` brings it back to target `cu128`" in ended.stderr
    beside = run_script(two, "--venv", str(Path(".venv-other")), path=path)
    assert beside.returncode == 0, beside.stderr
    assert "uv run" not in beside.stderr
