"""Run `envbuild lock` as a process of its own, and look at what it says and leaves behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockworld import World

QUICK = {"UV_HTTP_RETRIES": "0", "ENVBUILD_HTTP_TIMEOUT": "0.3", "UV_HTTP_TIMEOUT": "1"}
"""Limits with which a host that is silent is given up soon."""

_SCRATCH = re.compile(r"/envbuild-[a-z0-9_]{8}\b|@SCRATCH@")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The error without its hint."""
        return self.err.partition("error: ")[2].partition("\n\nhint: ")[0].strip("\n")

    @property
    def hint(self) -> str:
        """What the user is told to do."""
        return self.err.partition("\n\nhint: ")[2].strip("\n")


def temporary(world: World) -> Path:
    """Return the folder for temporary files of a run, which must be empty afterwards."""
    folder = world.root.parent / "tmp"
    folder.mkdir(exist_ok=True)
    return folder


def environ_of(world: World, **changes: str) -> dict[str, str]:
    """Return the environment of a run."""
    return {**world.environ, "TMPDIR": str(temporary(world)), "NO_COLOR": "1", **changes}


def start_lock(world: World, *arguments: str, **changes: str) -> subprocess.Popen[str]:
    """Start the command line in a group of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, "-m", "envbuild", "lock", *arguments],
        cwd=world.root,
        env=environ_of(world, **changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end_of(process: subprocess.Popen[str]) -> Ended:
    """Wait for a run to end."""
    out, err = process.communicate(timeout=60)
    return Ended(code=process.returncode, out=out, err=err)


def run_lock(world: World, *arguments: str, **changes: str) -> Ended:
    """Run the command line to its end."""
    return end_of(start_lock(world, *arguments, **changes))


def snapshot(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return every file below a folder with its bytes, mode and time of change."""
    return {
        str(path.relative_to(root)): (
            path.read_bytes() if path.is_file() else b"",
            path.stat().st_mode,
            path.stat().st_mtime_ns if path.is_file() else 0,
        )
        for path in sorted(root.rglob("*"))
    }


def assert_clear(ended: Ended, code: int, *, hint: bool = True) -> None:
    """Assert that a run failed as it should: in words, without what only we understand."""
    assert ended.code == code, ended
    assert ended.out == ""
    assert ended.message, ended
    assert "Traceback" not in ended.err
    assert "a bug in envbuild" not in ended.err
    assert not _SCRATCH.search(ended.err), ended.err
    assert not ended.message.endswith("."), ended.message
    assert not ended.hint.rstrip().endswith("."), ended.hint
    if hint:
        assert ended.hint, ended.err


def processes_with(text: str) -> list[int]:
    """Return the processes in whose environment a text stands, this one left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                held = (entry / "environ").read_bytes()
                ended = b"(zombie)" in (entry / "status").read_bytes()
            except OSError:
                continue
            if text.encode() in held and not ended:
                found.append(int(entry.name))
    return found
