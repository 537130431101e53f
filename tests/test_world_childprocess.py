"""A program and all that it started end with an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from lockrun import processes_with

from envbuild.world.childprocess import run_to_end

if TYPE_CHECKING:
    from pathlib import Path

CALLER = """
import sys
from envbuild.world.childprocess import run_to_end
run_to_end(["/bin/sh", "-c", sys.argv[1]])
"""
STUBBORN = 'trap "" TERM; sleep 60 & touch "$MARK/started"; sleep 60; sleep 60'
KIND = 'sleep 60 & touch "$MARK/started"; wait'


def test_what_was_printed_and_how_it_ended(tmp_path: Path) -> None:
    body = 'pwd; echo "$MARK" >&2; read answer || echo none; exit 3'
    ended = run_to_end(["/bin/sh", "-c", body], cwd=tmp_path, environ={"MARK": "é"})
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, f"{tmp_path}\nnone\n", "é\n")


def test_bytes_that_are_no_text() -> None:
    assert run_to_end(["/bin/sh", "-c", r"printf '\377'"]).stdout == "\ufffd"


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(OSError, match="No such file"):
        run_to_end(["/nowhere/at/all"])


@pytest.mark.parametrize("body", [KIND, STUBBORN], ids=["kind", "stubborn"])
def test_an_interrupt_ends_the_children_of_the_program_too(tmp_path: Path, body: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CALLER, body],
        env={**os.environ, "MARK": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 30
    while not (tmp_path / "started").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    until = time.monotonic() + 5
    while processes_with(str(tmp_path)):
        assert time.monotonic() < until
        time.sleep(0.02)
