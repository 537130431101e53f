"""`envbuild lock` where the machine fails: disks, permissions, and uv itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from lockrun import assert_clear, end_of, environ_of, run_lock, snapshot, temporary
from lockworld import pyproject

from envbuild.commands.lock import lock
from envbuild.commands.lockrun import LockOptions
from envbuild.errors import WorldError
from envbuild.render.progress import Silent
from envbuild.world.basereader import DiskBases
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.uv import UvResolver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lockworld import World

BEFORE = pyproject("torch", "six<1.17")
AFTER = pyproject("torch", "six", "einops")


@pytest.fixture
def locked(world: World) -> World:
    """Return a project that was locked before its input was changed."""
    world.write(BEFORE)
    world.lock()
    world.write(AFTER)
    return world


def fails_with(world: World, binary: Path) -> WorldError:
    """Lock with another uv, and assert that it fails and changes nothing."""
    before = snapshot(world.root)
    folder = temporary(world)
    with pytest.raises(WorldError) as caught:
        lock(
            LockOptions(directory=world.root, environ=world.environ),
            source=world.catalog,
            facts=world.catalog,
            resolver=UvResolver(binary, environ={**world.environ, "TMPDIR": str(folder)}),
            files=ProjectFiles(world.root),
            reporter=Silent(),
            bases=DiskBases({}),
        )
    assert snapshot(world.root) == before
    assert caught.value.hint
    assert not caught.value.message.endswith(".")
    return caught.value


def script(folder: Path, body: str, version: str = "0.13.9") -> Path:
    """Make a uv that is none."""
    path = folder / "uv"
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "uv {version}"; exit; fi\n{body}\n'
    )
    path.chmod(0o755)
    return path


def test_no_uv(locked: World, tmp_path: Path) -> None:
    error = fails_with(locked, tmp_path / "nowhere" / "uv")
    assert error.message == (
        f"`{tmp_path}/nowhere/uv` could not be started: No such file or directory"
    )
    assert error.hint == "pip install -U uv"


def test_a_uv_that_may_not_be_run(locked: World, tmp_path: Path) -> None:
    (tmp_path / "uv").write_text("text")
    assert "could not be started: Permission denied" in fails_with(locked, tmp_path / "uv").message


@pytest.mark.parametrize(
    "version", ["0.4.0", pytest.param("0.6.8", id="drf_h5"), "0.12.24", "", "of yesterday"]
)
def test_a_uv_that_is_too_old(locked: World, tmp_path: Path, version: str) -> None:
    error = fails_with(locked, script(tmp_path, "exit 0", version))
    assert f"is `{f'uv {version}'.strip()}`, wanted uv 0.13.0 or newer" in error.message
    assert error.hint == "pip install -U uv"


def test_a_uv_that_crashes(locked: World, tmp_path: Path) -> None:
    body = 'echo "error: it broke at $PWD/uv.lock" >&2\necho "  cause: no idea." >&2\nexit 2'
    error = fails_with(locked, script(tmp_path, body))
    assert error.message == "uv failed: it broke at uv.lock: no idea"
    assert error.hint == "delete `uv.lock` and run `envbuild lock`"


def test_a_uv_that_says_nothing(locked: World, tmp_path: Path) -> None:
    error = fails_with(locked, script(tmp_path, "exit 2"))
    assert error.message == "uv failed: it ended with exit code 2 and said nothing"


def test_a_uv_that_is_killed(locked: World, tmp_path: Path) -> None:
    error = fails_with(locked, script(tmp_path, "kill -9 $$"))
    assert error.message == "uv was ended by SIGKILL"
    assert "memory" in (error.hint or "")


def as_nobody(world: World, *arguments: str) -> list[str]:
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0:
        return [sys.executable, "-m", "envbuild", "lock", *arguments]
    if setpriv is None:
        pytest.skip("root may write anywhere, and there is no setpriv to become another user")
    user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
    command = [setpriv, *user, sys.executable]
    probe = [*command, "-c", "import envbuild.cli.main, os; os.listdir('.')"]
    if subprocess.run(probe, check=False, cwd=world.root, capture_output=True).returncode != 0:
        pytest.skip("another user cannot run this Python or reach this folder")
    return [*command, "-m", "envbuild", "lock", *arguments]


@pytest.fixture
def open_world(locked: World, tmp_path: Path) -> Iterator[World]:
    """Return the project where any user may read it and use the caches."""
    for folder in (*tmp_path.parents, tmp_path):
        if folder.stat().st_uid == os.geteuid() and "pytest" in str(folder):
            folder.chmod(0o755)
    temporary(locked).chmod(0o777)
    locked.root.chmod(0o555)
    (locked.root / "lockfiles").chmod(0o555)
    yield locked
    locked.root.chmod(0o755)
    (locked.root / "lockfiles").chmod(0o755)


def run_as_nobody(world: World, *arguments: str) -> subprocess.Popen[str]:
    cache = temporary(world) / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    return subprocess.Popen(
        as_nobody(world, *arguments),
        cwd=world.root,
        env=environ_of(
            world, ENVBUILD_CACHE_DIR=f"{cache}/e", UV_CACHE_DIR=f"{cache}/u", HOME=str(cache)
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_folder_that_may_not_be_written_to(open_world: World) -> None:
    before = snapshot(open_world.root)
    ended = end_of(run_as_nobody(open_world))
    assert_clear(ended, 3)
    assert ended.message == f"`{open_world.root}` cannot be written to: Permission denied"
    assert ended.hint == "`envbuild lock --check` and `--dry-run` write nothing"
    assert snapshot(open_world.root) == before


def test_a_folder_that_may_not_be_written_to_can_be_checked(open_world: World) -> None:
    before = snapshot(open_world.root)
    ended = end_of(run_as_nobody(open_world, "--check"))
    if "inspect Python interpreter" in ended.err:
        assert_clear(ended, 3)
        pytest.skip("another user cannot run this Python")
    assert ended.code == 1, ended
    assert "einops" in ended.out
    assert snapshot(open_world.root) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a disk of 64 KiB."""
    goal = tmp_path / "disk"
    goal.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or umount is None:
        pytest.skip("only root may mount a small disk")
    command = [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(goal)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield goal
    subprocess.run([umount, str(goal)], check=True)


def test_a_disk_that_is_full(locked: World, small_disk: Path) -> None:
    shutil.copy2(locked.root / "pyproject.toml", small_disk)
    (small_disk / "filler").write_bytes(bytes(48 * 1024))
    locked.root = small_disk
    folder = small_disk.parent / "tmp"
    folder.mkdir(exist_ok=True)
    before = snapshot(small_disk)
    ended = run_lock(locked)
    assert_clear(ended, 3)
    assert ended.message == f"`{small_disk}` cannot be written to: No space left on device"
    assert "nothing was changed; free space" in ended.hint
    assert snapshot(small_disk) == before


def test_a_temporary_folder_that_is_full(locked: World, small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(60 * 1024))
    before = snapshot(locked.root)
    ended = run_lock(locked, TMPDIR=str(small_disk))
    assert_clear(ended, 3)
    assert "No space left on device" in ended.message or "temporary folder" in ended.message
    assert snapshot(locked.root) == before


def test_a_temporary_folder_that_is_not_there(locked: World) -> None:
    assert run_lock(locked, TMPDIR="/nowhere").code == 0  # Python takes another one


def test_a_folder_of_the_kernel(locked: World) -> None:
    ended = run_lock(locked, "/proc/self")
    assert_clear(ended, 2)
    assert "has no pyproject.toml" in ended.message
