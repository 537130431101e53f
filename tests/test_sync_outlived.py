"""A uv that outlives the run that started it: the next run waits until it has ended."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from lockrun import environ_of
from lockworld import PYTHON, UV
from scriptworld import SCRIPT, SHELLS, bare, make_script
from test_commands_sync import assert_exact, lay_out, sync

if TYPE_CHECKING:
    from pathlib import Path

    from lockworld import World

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs Python 3.11")

WRAPPER = """\
#!/bin/sh
case "$* " in
    *--dry-run*) ;;
    "{words}"*)
        : >'{folder}/begun'
        until [ -e '{folder}/go' ]; do sleep 0.05; done
        '{uv}' "$@"
        : >'{folder}/ended'
        exit ;;
esac
exec '{uv}' "$@"
"""
LAYERS = {"project": "sync --locked", "pip": "pip sync"}


@dataclass(frozen=True, kw_only=True)
class Late:
    """A uv that begins with its work when it is told to."""

    folder: Path

    @property
    def path(self) -> str:
        return str(self.folder / "uv")

    def wait_for(self, name: str) -> None:
        """Wait for a step of it."""
        for _ in range(600):
            if (self.folder / name).exists():
                return
            time.sleep(0.05)
        raise AssertionError(name)

    def let_go(self) -> None:
        (self.folder / "go").touch()


def late_uv(tmp_path: Path, words: str) -> Late:
    """Make a uv that is late where it is given these words; Python's package `uv` leads to it."""
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "uv").write_text(WRAPPER.format(words=words, folder=folder, uv=UV))
    (folder / "uv").chmod(0o755)
    (folder / "uv.py").write_text(f"def find_uv_bin():\n    return {str(folder / 'uv')!r}\n")
    return Late(folder=folder)


def start(words: list[str], world: World, environ: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd=world.root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def start_sync(world: World, late: Late | None = None, **changes: str) -> subprocess.Popen[str]:
    changes |= {"PYTHONPATH": str(late.folder)} if late else {}
    return start([sys.executable, "-m", "envbuild", "sync"], world, environ_of(world, **changes))


def start_script(world: World, shell: str, late: Late | None = None) -> subprocess.Popen[str]:
    changes = {"UV": late.path} if late else {}
    return start([shell, str(world.root / SCRIPT)], world, bare(world, **world.changes, **changes))


def killed_while_late(process: subprocess.Popen[str], late: Late) -> None:
    """Kill a run alone, with its uv at the very beginning."""
    late.wait_for("begun")
    with process:
        process.kill()


def ended_after(process: subprocess.Popen[str], late: Late) -> None:
    """Let the late uv work as soon as the next run waits for it, or has ended."""
    with process:
        said = []
        for line in process.stderr or ():
            said.append(line)
            if "wait for" in line:
                break
        late.let_go()
        said += process.stderr or ()
    late.wait_for("ended")
    assert process.returncode == 0, said


@pytest.mark.parametrize("layer", LAYERS)
def test_sync_waits_for_an_install(world: World, tmp_path: Path, layer: str) -> None:
    lay_out(world, layer)
    sync(world)
    world.uv("pip", "uninstall", "tqdm")
    late = late_uv(tmp_path, LAYERS[layer])
    killed_while_late(start_sync(world, late), late)
    ended_after(start_sync(world), late)
    assert_exact(world)


def test_sync_waits_for_an_environment_that_is_made(world: World, tmp_path: Path) -> None:
    lay_out(world, build=False)
    sync(world)
    config = world.root / ".venv/pyvenv.cfg"
    config.write_text(config.read_text().replace("3.11.", "3.10."))
    late = late_uv(tmp_path, "venv")
    killed_while_late(start_sync(world, late), late)
    ended_after(start_sync(world), late)
    assert_exact(world, build=False)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("layer", LAYERS)
def test_the_script_waits_for_an_install(
    world: World, tmp_path: Path, layer: str, shell: str
) -> None:
    lay_out(world, layer)
    make_script(world)
    late = late_uv(tmp_path, LAYERS[layer])
    killed_while_late(start_script(world, shell, late), late)
    ended_after(start_script(world, shell), late)
    assert_exact(world)


def test_script_and_sync_wait_for_each_other(world: World, tmp_path: Path) -> None:
    lay_out(world)
    make_script(world)
    late = late_uv(tmp_path, LAYERS["project"])
    killed_while_late(start_script(world, "sh", late), late)
    ended_after(start_sync(world), late)
    assert_exact(world)
