"""`envbuild lock` interrupted, killed, or not alone: all files are old or all are new."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from index import Fault, LocalIndex
from lockrun import (
    assert_clear,
    end_of,
    environ_of,
    processes_with,
    run_lock,
    snapshot,
    start_lock,
    temporary,
)
from lockworld import World, populate, pyproject

from envbuild.commands.lock import lock
from envbuild.commands.lockrun import LockOptions
from envbuild.errors import WorldError
from envbuild.render.progress import Silent
from envbuild.world.basereader import DiskBases
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.uv import UvResolver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lockrun import Ended

    from envbuild.catalog.reader import Catalog

BEFORE = pyproject("torch", "six<1.17")
AFTER = pyproject("torch", "torch-scatter", "six", "einops")
SCATTER = "/pyg/torch-2.7.0+cu128/torch_scatter-2.1.2+pt27cu128-cp311-cp311-linux_x86_64.whl"
CHANGED = pyproject("torch", "six", "einops")
HANG = Fault(hang=60)
MOMENTS = {
    "at a page": "/whl/cu128/torch/",
    "while a wheel is hashed": SCATTER,
    "while uv resolves": "/pypi/simple/einops/",
}


@pytest.fixture(scope="module")
def slow_index(catalog: Catalog) -> Iterator[LocalIndex]:
    with LocalIndex() as index:
        populate(index, catalog)
        yield index


@pytest.fixture(scope="module")
def template(
    slow_index: LocalIndex, catalog: Catalog, tmp_path_factory: pytest.TempPathFactory
) -> World:
    """Return a world whose project was locked before its input was changed."""
    folder = tmp_path_factory.mktemp("template")
    root = folder / "project"
    root.mkdir()
    world = World(index=slow_index, root=root, cache=folder / "cache", catalog=catalog)
    world.write(BEFORE)
    world.lock()
    world.write(AFTER)
    return world


def copy_of(template: World, folder: Path, cache: Path) -> World:
    root = folder / "project"
    shutil.copytree(template.root, root)
    return World(index=template.index, root=root, cache=cache, catalog=template.catalog)


@pytest.fixture
def cold(template: World, tmp_path: Path) -> Iterator[World]:
    """Return the project with caches of its own, so that every page is asked for."""
    template.index.forget_requests()
    yield copy_of(template, tmp_path, tmp_path / "cache")
    template.index.heal()


@pytest.fixture
def warm(template: World, tmp_path: Path) -> World:
    """Return the project with the caches of all the others."""
    template.index.forget_requests()
    return copy_of(template, tmp_path, template.cache)


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert process.poll() is None, end_of(process)
        assert time.monotonic() < until
        time.sleep(0.005)


def assert_nothing_is_left(world: World) -> None:
    assert not list(temporary(world).iterdir())
    until = time.monotonic() + 5
    while processes_with(str(temporary(world))):
        assert time.monotonic() < until
        time.sleep(0.02)
    assert not (world.root / ".envbuild-stage").exists()


def assert_interrupted(ended: Ended) -> None:
    assert ended.code == 130, ended
    assert ended.out == ""
    assert ended.err.endswith("interrupted: nothing was written\n"), ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("path", MOMENTS.values(), ids=MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_lock_and_all_it_started(
    cold: World, path: str, number: signal.Signals
) -> None:
    cold.index.fault(path, HANG)
    before = snapshot(cold.root)
    process = start_lock(cold)
    wait_for(lambda: cold.index.requests[path], process)
    if number is signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)  # as `kill` and a job scheduler do
    assert_interrupted(end_of(process))
    assert snapshot(cold.root) == before
    assert_nothing_is_left(cold)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4])
def test_an_interrupt_at_any_moment_leaves_old_files_or_new_ones(
    warm: World, delay: float, number: signal.Signals
) -> None:
    before = snapshot(warm.root)
    process = start_lock(warm)
    wait_for(lambda: warm.index.seen, process)
    time.sleep(delay)
    with suppress(ProcessLookupError):
        process.send_signal(number)
    ended = end_of(process)
    assert "Traceback" not in ended.err
    if ended.code == 130 and ended.err.endswith("interrupted: nothing was written\n"):
        assert snapshot(warm.root) == before
    else:
        assert ended.code in {0, 130, -number}, ended
        assert "einops" in warm.read("uv.lock")
        assert "einops" in warm.read("lockfiles/pylock.cu128.toml")
    assert_nothing_is_left(warm)


KILLED = """
import json, os, signal, sys, time
from pathlib import Path
from envbuild.cli import lockwiring
from envbuild.cli.main import main
from envbuild.world.projectfiles import ProjectFiles

def start(folder):
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1), os.dup2(null, 2)
        os._exit(main(["lock", "--source", "catalog"]))
    return child

def end(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def texts(folder):
    paths = (p for p in sorted(Path(folder).rglob("*")) if p.is_file())
    return {str(p.relative_to(folder)): p.read_text() for p in paths}

first = sys.stdin.readline().strip()
begun = time.monotonic()
code = end(start(first))
took = time.monotonic() - begun
print(json.dumps([code, texts(first)]), flush=True)
for line in sys.stdin:
    folder, share = json.loads(line)
    child = start(folder)
    time.sleep(took * share)
    os.kill(child, signal.SIGKILL)
    end(child)
    files = ProjectFiles(Path(folder))
    with files.locked():
        files.recover()
    after = texts(folder)
    code = end(start(folder))
    print(json.dumps([after, code, texts(folder)]), flush=True)
"""
"""Lock in forked processes, kill each after a while, and tell what lay there then and later."""


@pytest.fixture
def killer(template: World, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    world = copy_of(template, tmp_path, template.cache)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED],
        env=environ_of(world),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    assert process.wait(10) == 0
    process.stdout.close()


def told(process: subprocess.Popen[str], line: str) -> list[object]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    answer: list[object] = json.loads(process.stdout.readline())
    return answer


@pytest.mark.parametrize("moments", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_kill_9_at_any_moment_leaves_one_generation_of_files(
    killer: subprocess.Popen[str], template: World, tmp_path: Path, moments: int
) -> None:
    def project(name: str) -> World:
        world = copy_of(template, tmp_path / name, template.cache)
        world.write(CHANGED)
        return world

    old = project("old").files()
    code, new = told(killer, str(project("new").root))
    assert code == 0
    assert isinstance(new, dict)
    assert old.keys() == new.keys()
    assert not old.items() & new.items()  # the lock changes every file
    for number in range(moments):
        world = project(str(number))
        share = (number / (moments - 1)) ** 0.5  # most are late, where files are written
        after, code, later = told(killer, json.dumps([str(world.root), share]))
        assert after in (old, new), share
        assert code == 0
        assert later == new


def test_two_locks_at_once(cold: World) -> None:
    path = MOMENTS["at a page"]
    cold.index.fault(path, HANG)
    before = snapshot(cold.root)
    first = start_lock(cold)
    wait_for(lambda: cold.index.requests[path], first)
    second = run_lock(cold)
    assert_clear(second, 3)
    assert second.message == f"another `envbuild lock` is at work in `{cold.root}`"
    assert second.hint == "wait for it to end and repeat the command"
    first.send_signal(signal.SIGTERM)
    assert_interrupted(end_of(first))
    assert snapshot(cold.root) == before


class Editor(Silent):
    """Saves the pyproject.toml while the lock is made."""

    def __init__(self, world: World) -> None:
        self._world = world

    def phase(self, what: str) -> None:
        """Save once uv is asked."""
        if "uv" in what:
            self._world.write(CHANGED + "# saved meanwhile\n")


def test_input_that_is_saved_meanwhile_is_not_overwritten(warm: World) -> None:
    warm.write(CHANGED)
    before = warm.files()
    with pytest.raises(WorldError, match="was changed while the lock was made") as caught:
        lock(
            LockOptions(directory=warm.root, environ=warm.environ),
            source=warm.catalog,
            facts=warm.catalog,
            resolver=UvResolver(environ=warm.environ),
            files=ProjectFiles(warm.root),
            reporter=Editor(warm),
            bases=DiskBases({}),
        )
    assert caught.value.hint == "run `envbuild lock` again"
    assert warm.files() == {**before, "pyproject.toml": CHANGED + "# saved meanwhile\n"}
