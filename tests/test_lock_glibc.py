"""A target whose machines have an older glibc than the newest wheels want."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from artefacts import pylocked, versions
from fakes import target
from index import CP311, LocalIndex, local_wheel, make_sdist
from lockworld import pyproject

from envbuild.commands.locked import read_locked
from envbuild.commands.sync import SyncOptions, sync
from envbuild.core.packagefile import package_text
from envbuild.core.project.manifest import parse_project
from envbuild.core.script.install import ScriptSource, render_script
from envbuild.core.wheeltags import fits
from envbuild.errors import InputError, RefusedError
from envbuild.model.report import Outcome
from envbuild.render.progress import Silent
from envbuild.world.projectfiles import ProjectFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lockworld import World

PYLOCK = "lockfiles/pylock.cu128.toml"
OLD, NEW = "cp311-cp311-manylinux_2_31_x86_64", "cp311-cp311-manylinux_2_35_x86_64"
TARGET = '[project]\nname = "x"\n[tool.envbuild.targets.t]\npython = "3.11"\ncuda = "12.8"\n'


@pytest.fixture(name="bare")
def a_bare_world(own_world: World) -> Iterator[World]:
    with LocalIndex() as index:
        index.add_pytorch("cu128", local_wheel("torch", "2.10.0+cu128", CP311))
        index.add_pypi(
            *(local_wheel("open3d", *one) for one in (("0.19", OLD), ("0.20", NEW))),
            local_wheel("both", "1.0", OLD),
            local_wheel("both", "1.0", NEW, build="1"),
            local_wheel("source", "1.0", NEW),
        )
        index.add_sdist("source", "1.0", make_sdist("source", "1.0"))
        yield replace(own_world, index=index)


def ask(world: World, *names: str, glibc: str | None, more: str = "") -> None:
    key = "" if glibc is None else f'glibc = "{glibc}"\n'
    text = pyproject("torch", *names, torch="2.10.0", more=f"{key}{more}")
    world.write(text)


def locked(world: World) -> dict[str, str]:
    return versions(pylocked(world.read(PYLOCK)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2.35", "2.35"),
        (">=2.35", "2.35"),
        ("manylinux_2_28", "2.28"),
        ("manylinux_2_28_x86_64", "2.28"),
        ("x86_64-manylinux_2_28", "2.28"),
        ("manylinux2014", "2.17"),
        ("manylinux1", "2.5"),
    ],
)
def test_how_a_glibc_is_written(text: str, found: str) -> None:
    assert parse_project(f'{TARGET}glibc = "{text}"\n').targets[0].glibc == found


@pytest.mark.parametrize("text", ["2", "2.0", "3.1", "new", "2014", "1", "musllinux_1_2", "2.310"])
def test_what_is_no_glibc(text: str) -> None:
    with pytest.raises(InputError, match=r"t\.glibc: found `.*`, wanted the oldest glibc") as found:
        parse_project(f'{TARGET}glibc = "{text}"\n')
    assert found.value.message.startswith("pyproject.toml:6: ")
    assert "ldd --version" in (found.value.hint or "")


@pytest.mark.parametrize(
    ("tag", "oldest"),
    [
        ("manylinux_2_35_x86_64", "2.35"),
        ("manylinux_2_27_x86_64.manylinux_2_28_x86_64", "2.27"),
        ("manylinux2014_x86_64", "2.17"),
        ("manylinux2010_x86_64", "2.12"),
        ("manylinux1_x86_64", "2.5"),
    ],
)
def test_the_glibc_that_a_wheel_needs(tag: str, oldest: str) -> None:
    minor = int(oldest.partition(".")[2])
    name = f"a-1-cp311-cp311-{tag}.whl"
    assert fits(name, replace(target(), glibc=None))
    assert fits(name, replace(target(), glibc=oldest))
    assert not fits(name, replace(target(), glibc=f"2.{minor - 1}"))


def test_a_wheel_that_names_no_glibc_fits_every_one() -> None:
    for name in ("a-1-cp311-cp311-linux_x86_64.whl", "a-1-py3-none-any.whl"):
        assert fits(name, replace(target(), glibc="2.17"))


def test_without_the_key_the_newest_is_taken(bare: World) -> None:
    ask(bare, "open3d", "both", glibc=None)
    bare.lock()
    assert locked(bare) == {"torch": "2.10.0+cu128", "open3d": "0.20", "both": "1.0"}
    assert "glibc" not in bare.read(PYLOCK)


def test_a_release_that_is_too_new_is_named(bare: World) -> None:
    ask(bare, "open3d", glibc="2.31")
    before = bare.files()
    with pytest.raises(RefusedError) as caught:
        bare.lock()
    assert caught.value.message == (
        f"`open3d 0.20` needs a newer glibc than 2.31: it has open3d-0.20-{NEW}.whl, and no sdist"
    )
    assert '`constraint-dependencies = ["open3d<0.20"]`' in (caught.value.hint or "")
    assert bare.files() == before
    ask(bare, "open3d<0.20", glibc="2.31")
    bare.lock()
    assert locked(bare)["open3d"] == "0.19"


def test_only_the_files_that_fit_are_locked(bare: World) -> None:
    ask(bare, "both", glibc="2.31")
    bare.lock()
    for path in (PYLOCK, "uv.lock", "lockfiles/requirements.cu128.txt"):
        assert "2_35" not in bare.read(path)
    assert 'glibc = "2.31"' in bare.read(PYLOCK)
    bare.uv("lock", "--check")


def test_another_glibc_makes_the_lock_stale(bare: World) -> None:
    ask(bare, "both", glibc="2.31")
    bare.lock()
    bare.write(bare.read("pyproject.toml").replace('glibc = "2.31"', 'glibc = "2.35"'))
    report = bare.lock(check=True)
    assert report.outcome is Outcome.STALE
    assert "glibc 2.31 -> 2.35" in [change.text for change in report.changes]
    with pytest.raises(RefusedError, match=r"the lock is for glibc 2\.31, the target for glibc"):
        synced(bare, "2.39")


def test_a_sdist_stands_in_for_a_wheel_that_is_too_new(bare: World) -> None:
    ask(bare, "source", glibc="2.31")
    report = bare.lock()
    messages = [finding.message for finding in report.targets[0].findings]
    assert any("source 1.0 has no wheel for glibc 2.31, so its source" in one for one in messages)


def test_the_stack_is_chosen_among_what_fits(bare: World) -> None:
    bare.index.add_pytorch("cu128", local_wheel("torch", "2.11.0+cu128", NEW))
    text = pyproject("torch", torch=">=2.10", more='glibc = "2.31"')
    bare.write(text)
    bare.lock()
    assert locked(bare)["torch"] == "2.10.0+cu128"


class Machine:
    """An installer that tells its glibc, and can do nothing else."""

    def __init__(self, glibc: str | None) -> None:
        self._glibc = glibc

    def glibc(self) -> str | None:
        return self._glibc

    def preview(self, _step: object) -> tuple[str, ...]:
        return ()


def synced(world: World, glibc: str | None) -> object:
    return sync(
        SyncOptions(venv=world.root / ".venv", dry_run=True, environ=world.environ),
        files=ProjectFiles(world.root),
        installer=Machine(glibc),  # type: ignore[arg-type]
        builder=lambda aim: aim,  # type: ignore[arg-type,return-value]
        reporter=Silent(),
    )


def test_sync_refuses_an_older_machine(bare: World) -> None:
    ask(bare, "both", glibc="2.31")
    bare.lock()
    for enough in ("2.31", "2.39", None):
        assert synced(bare, enough)
    with pytest.raises(
        RefusedError, match=r"has glibc 2\.28, the lock is for glibc 2\.31 or newer"
    ):
        synced(bare, "2.28")


def test_the_script_asks_the_machine(bare: World) -> None:
    ask(bare, "both", glibc="2.31")
    bare.lock()
    locked = read_locked(ProjectFiles(bare.root), None, environ=bare.environ)
    script = render_script(ScriptSource(plan=locked.plan(), lock=locked.lock))
    assert "prepare_builds() {\n    require_glibc 2.31\n" in script
    ask(bare, "both", glibc=None)
    bare.lock()
    locked = read_locked(ProjectFiles(bare.root), None, environ=bare.environ)
    assert "glibc" not in render_script(ScriptSource(plan=locked.plan(), lock=locked.lock))


@pytest.mark.parametrize(
    ("said", "code"),
    [("glibc 2.28", 21), ("glibc 2.31", 0), ("glibc 2.100", 0), ("glibc 3.0", 0), ("", 0)],
)
def test_what_the_script_makes_of_the_answer(tmp_path: Path, said: str, code: int) -> None:
    getconf = tmp_path / "getconf"
    getconf.write_text(f"#!/bin/sh\n[ -n '{said}' ] && echo '{said}'\n")
    getconf.chmod(0o755)
    functions = package_text("envbuild.core", "script/install.sh").partition("find_uv() {")[0]
    text = f"set -eu\n{functions}\n{package_text('envbuild.core', 'script/glibc.sh')}\n"
    done = subprocess.run(
        ["/bin/sh", "-c", f"{text}work='{tmp_path}'; require_glibc 2.31"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    if code:
        assert done.stderr == (
            "error: this machine has glibc 2.28, the lock is for glibc 2.31 or newer\n\n"
            'hint: lock a target with `glibc = "2.28"`\n'
        )
