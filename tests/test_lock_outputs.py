"""The files of a lock: one set, true hashes, real addresses, and uv and pip take them."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import jsonschema
import pytest
from artefacts import addresses, exported, installed, pylocked, required, versions
from lockworld import World, pyproject

from envbuild.model.report import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from index import LocalIndex

    from envbuild.catalog.reader import Catalog

FULL = ("torch", "peft>=0.19", "torch-scatter", "torch-sparse", "spconv", "flash-attn", "timm")
WRITTEN = (
    "lockfiles/pylock.cu128.toml",
    "lockfiles/requirements.cu128.txt",
    "pyproject.toml",
    "uv.lock",
)
COMMENTED = """\
# what we train with
[project]
name = "demo"  # the name
version = "0.1"
requires-python = "==3.11.*"
dependencies = [
    "torch",   # the heart
    # the rest
    "peft>=0.19", "spconv",
]

[tool.other]
z = 1
a = [1,2,
  3]

[tool.uv]   # ours
package = false

[tool.envbuild.targets.cu128]
python = "3.11"
gpus = ["B200"]
torch = "2.7.0"
# the end"""


@pytest.fixture(name="locked", scope="module")
def a_locked_world(
    shared_index: LocalIndex,
    shared_cache: Path,
    catalog: Catalog,
    tmp_path_factory: pytest.TempPathFactory,
) -> World:
    """Return a project with everything in it, locked; no test changes its files."""
    world = World(
        index=shared_index,
        root=tmp_path_factory.mktemp("locked"),
        cache=shared_cache,
        catalog=catalog,
    )
    world.write(pyproject(*FULL))
    assert world.lock().outcome is Outcome.WRITTEN
    return world


@pytest.fixture(name="synced", scope="module")
def a_synced_world(locked: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return the locked project in a folder where `uv sync --locked` was run."""
    world = replace(locked, root=tmp_path_factory.mktemp("synced"))
    for path, text in locked.files().items():
        world.write(text, path)
    world.uv("sync", "--locked")
    return world


def test_a_lock_writes_four_files(locked: World) -> None:
    assert tuple(locked.files()) == WRITTEN


def test_the_three_artefacts_hold_one_set(locked: World) -> None:
    pylock = pylocked(locked.read("lockfiles/pylock.cu128.toml"))
    requirements = required(locked.read("lockfiles/requirements.cu128.txt"))
    assert requirements == pylock
    assert versions(exported(locked)) == versions(pylock)
    assert {name: pin.hashes for name, pin in exported(locked).items()} == {
        name: pin.hashes for name, pin in pylock.items()
    }
    assert pylock.keys() >= {"torch", "torch-scatter", "spconv-cu126", "cumm-cu126", "triton"}
    assert "spconv" not in pylock


def test_the_set_is_that_of_the_target(locked: World) -> None:
    pins = versions(pylocked(locked.read("lockfiles/pylock.cu128.toml")))
    assert pins["torch"] == "2.7.0+cu128"
    assert pins["torchvision"] == "0.22.0+cu128"
    assert pins["torch-scatter"] == "2.1.2+pt27cu128"
    assert pins["flash-attn"] == "2.8.3+cu12torch2.7cxx11abitrue"
    assert pins["nvidia-nccl-cu12"] == "2.26.2"


def test_a_renamed_wheel_is_taken_by_its_address(locked: World) -> None:
    for pins in (
        pylocked(locked.read("lockfiles/pylock.cu128.toml")),
        required(locked.read("lockfiles/requirements.cu128.txt")),
    ):
        by_address = {name: pin.address for name, pin in pins.items() if pin.address}
        assert list(by_address) == ["flash-attn"]
        assert by_address["flash-attn"].startswith(f"{locked.index.base}/flash-attn/download/v")


def test_every_hash_is_that_of_the_bytes_served(locked: World) -> None:
    for path in ("uv.lock", "lockfiles/pylock.cu128.toml"):
        files = addresses(locked.read(path))
        assert len(files) >= 40
        for address, digest in files.items():
            served = locked.index.resources[unquote(urlsplit(address).path)].body
            assert hashlib.sha256(served).hexdigest() == digest, address


def test_only_the_addresses_of_the_real_index_stand_in_the_files(locked: World) -> None:
    for path, text in locked.files().items():
        assert "file://" not in text, path
        assert "@SCRATCH@" not in text, path
        assert "envbuild-" not in text.replace("envbuild-tests", ""), path
        assert str(locked.root) not in text, path
        places = {word.split("/")[2] for word in text.split('"') if "://" in word[:8]}
        assert places <= {urlsplit(locked.index.base).netloc}, path


def test_a_second_lock_changes_nothing(locked: World) -> None:
    before = locked.state()
    assert locked.lock().outcome is Outcome.UNCHANGED
    after = locked.state()
    assert {path: after[path] for path in WRITTEN} == {path: before[path] for path in WRITTEN}


def test_a_lock_from_scratch_elsewhere_is_the_same(locked: World, world: World) -> None:
    world.write(pyproject(*FULL))
    world.lock()
    assert world.files() == locked.files()


def test_uv_accepts_its_lock(locked: World) -> None:
    before = locked.files()
    locked.uv("lock", "--check")
    locked.uv("lock", "--check", "--offline")
    locked.uv("sync", "--locked", "--dry-run")
    assert locked.files() == before


@pytest.mark.parametrize(
    "words",
    [
        ("sync", "--locked"),
        ("pip", "sync", "lockfiles/pylock.cu128.toml"),
        ("pip", "sync", "--require-hashes", "lockfiles/requirements.cu128.txt"),
    ],
    ids=["sync", "pylock", "requirements"],
)
def test_after_a_sync_every_file_agrees_with_the_environment(
    synced: World, words: tuple[str, ...]
) -> None:
    """The renamed wheel alone may be put in anew: its own metadata states another version."""
    said = synced.uv(*words, "--dry-run").stderr.splitlines()
    changes = [line for line in said if line.startswith((" - ", " + ", " ~ "))]
    assert all(line[3:].startswith("flash-attn") for line in changes), changes


def test_uv_sync_installs_the_set(synced: World) -> None:
    assert installed(synced.root / ".venv") == expected(synced)


@pytest.mark.parametrize("options", [(), ("--require-hashes",)], ids=["pylock", "requirements"])
def test_uv_pip_sync_installs_the_set(
    locked: World, tmp_path: Path, options: tuple[str, ...]
) -> None:
    file = "requirements.cu128.txt" if options else "pylock.cu128.toml"
    locked.uv("venv", str(tmp_path / "venv"))
    python = str(tmp_path / "venv/bin/python")
    locked.uv("pip", "sync", "--python", python, *options, f"lockfiles/{file}")
    assert installed(tmp_path / "venv") == expected(locked)


@pytest.mark.parametrize(
    "words",
    [
        ("-r", "pylock.cu128.toml"),
        ("--require-hashes", "--no-deps", "-r", "requirements.cu128.txt"),
    ],
    ids=["pylock", "requirements"],
)
def test_pip_installs_the_set(locked: World, tmp_path: Path, words: tuple[str, ...]) -> None:
    locked.uv("venv", str(tmp_path / "venv"))
    python = str(tmp_path / "venv/bin/python")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", *words],
        cwd=locked.root / "lockfiles",
        env={**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert installed(tmp_path / "venv") == expected(locked)


def expected(world: World) -> dict[str, str]:
    """Return what an installation of the lock holds: each version as the metadata states it."""
    pins = pylocked(world.read("lockfiles/pylock.cu128.toml"))
    return {
        name: pin.version.partition("+")[0] if pin.address else pin.version
        for name, pin in pins.items()
    }


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_comments_and_order_of_the_pyproject_stay(world: World, layer: str) -> None:
    before = COMMENTED.replace(
        "[tool.envbuild.", f'[tool.envbuild]\nlayer = "{layer}"\n\n[tool.envbuild.'
    )
    world.write(before)
    world.lock()
    after = world.read("pyproject.toml").splitlines()
    removed = [line for line in difflib.ndiff(before.splitlines(), after) if line.startswith("- ")]
    assert removed == []
    assert len(after) > len(before.splitlines())


def test_the_command_line_locks_and_checks(world: World) -> None:
    world.write(pyproject("torch", "peft", "torch-scatter"))
    done = envbuild(world, "lock", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.isascii()
    answer = json.loads(done.stdout)
    schema = resources.files("envbuild.render") / "data" / "lock.schema.json"
    jsonschema.validate(answer, json.loads(schema.read_text("utf-8")))
    assert tuple(answer["files"]) == WRITTEN
    assert tuple(world.files()) == WRITTEN
    before = world.state()
    assert envbuild(world, "lock", "--check", "--quiet").returncode == 0
    assert world.state() == before
    world.uv("lock", "--check")


def test_the_command_line_says_what_is_stale(world: World) -> None:
    world.write(pyproject("torch"))
    envbuild(world, "lock")
    (world.root / "lockfiles/requirements.cu128.txt").unlink()
    done = envbuild(world, "lock", "--check")
    assert done.returncode == 1
    assert "lockfiles/requirements.cu128.txt" in done.stdout


def envbuild(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envbuild", *words],
        cwd=world.root,
        env={**world.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
