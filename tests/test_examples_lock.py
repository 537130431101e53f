"""The examples and samples locked for real, with PyPI and the embedded catalog alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.online

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
OUTCOMES: dict[str, str] = tomllib.loads(
    (EXAMPLES / "samples/expected.toml").read_text(encoding="utf-8")
)["outcome"]
# Without git, a host that serves only sources is as far away as one that is not reached.
ENVIRONMENT = {**os.environ, "GIT_ALLOW_PROTOCOL": "none", "NO_COLOR": "1"}


def lock(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envbuild", "lock", ".", "--source", "catalog", *options],
        cwd=project,
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
    )


def copy_of(folder: str, tmp_path: Path) -> Path:
    return shutil.copytree(EXAMPLES / folder, tmp_path / Path(folder).name)


@pytest.mark.parametrize("name", ["ptv3-blackwell", "ptv3-pip", "ptv3-transitive", "three-targets"])
def test_an_example_locks_and_stays_locked(name: str, tmp_path: Path) -> None:
    project = copy_of(name, tmp_path)
    done = lock(project)
    assert done.returncode == 0, done.stderr
    again = lock(project, "--check")
    assert again.returncode == 0, again.stdout + again.stderr


def test_the_readme_shows_what_is_said_of_the_example(tmp_path: Path) -> None:
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("$ scripts/dev lock examples/ptv3-blackwell\n")[2]
    done = lock(copy_of("ptv3-blackwell", tmp_path))
    assert done.stdout.partition("\n\n")[0] == shown.partition("\n\n")[0]


def test_all_of_pointcept_locks_where_a_hash_may_be_missing(tmp_path: Path) -> None:
    project = copy_of("pointcept-blackwell", tmp_path)
    done = lock(project, "--allow-unhashed")
    assert done.returncode == 0, done.stderr
    text = (project / "lockfiles/pylock.cu128.toml").read_text(encoding="utf-8")
    builds = {build["name"] for build in tomllib.loads(text)["tool"]["envbuild"]["builds"]}
    assert {"pointops", "pointgroup-ops", "sharedarray"} <= builds


def test_the_old_lock_with_the_wrong_torch_is_replaced(tmp_path: Path) -> None:
    project = copy_of("ptv3-transitive", tmp_path)
    assert lock(project, "--check").returncode == 1
    assert lock(project).returncode == 0
    locked = tomllib.loads((project / "uv.lock").read_text(encoding="utf-8"))
    (torch,) = (package for package in locked["package"] if package["name"] == "torch")
    assert torch["version"] == "2.7.0+cu128"
    assert torch["source"] == {"registry": "https://download.pytorch.org/whl/cu128"}


@pytest.mark.parametrize("name", sorted(OUTCOMES))
def test_a_sample_locks_or_says_why_not(name: str, tmp_path: Path) -> None:
    project = copy_of(f"samples/{name}", tmp_path)
    done = lock(project)
    if OUTCOMES[name] == "locks":
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode in {1, 2, 3}
        assert re.search(OUTCOMES[name], done.stderr), done.stderr
        assert not (project / "lockfiles").exists()
