"""Kind noninteractive-script: nothing that envbuild writes ever asks, whatever stdin is."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from lockworld import pyproject
from scriptworld import SCRIPT, SHELL, SHELLS, bare, make_script
from test_core_dockerfile import BUILT, source
from test_core_plan import LOCK, pinned, plan

from envbuild.core.script.dockerfile import render_dockerfile
from envbuild.core.script.install import ScriptSource, render_script

if TYPE_CHECKING:
    from pathlib import Path

    from lockworld import World

ASKING = re.compile(
    r"^\s*(?:read(?!\s+-r\s+\S+(?:\s+\S+)*\s+<)|select|whiptail|dialog)\b"
    r"|\bread -p\b|/dev/tty|\$\{?PS3"
)
"""What asks in a shell: INT-H1's `read -p`, INT-H3's menus."""

LOCKS = {
    "without builds": LOCK,
    "with a build": BUILT,
    "incomplete": replace(
        LOCK,
        packages=tuple(
            replace(one, artifacts=(replace(one.artifacts[0], sha256=None),))
            for one in LOCK.packages
        ),
    ),
}


def lines_that_ask(text: str) -> list[str]:
    text = text.replace("; then read", "\nread")
    return [line for line in text.splitlines() if ASKING.search(line)]


@pytest.mark.parametrize(
    "line", ["read -p 'Install? [y/N] ' a", "  read answer", "select x in 1 2"]
)
def test_int_h3_what_asks_is_known(line: str) -> None:
    assert lines_that_ask(line)


@pytest.mark.parametrize("name", sorted(LOCKS))
def test_int_h3_no_script_asks(name: str) -> None:
    lock = LOCKS[name]
    shell = render_script(ScriptSource(plan=plan(lock), lock=lock)).partition("write_programs() {")
    assert lines_that_ask(shell[0]) == []


@pytest.mark.parametrize("name", sorted(LOCKS))
def test_int_h2_every_apt_of_a_dockerfile_is_told_not_to_ask(name: str) -> None:
    lock = replace(LOCKS[name], packages=(*LOCKS[name].packages, pinned("triton", "3.3.0")))
    text = render_dockerfile(source(lock)).replace("\\\n", " ")
    installs = [line for line in text.splitlines() if "apt-get install" in line]
    assert len(installs) == 2
    for line in installs:
        assert re.search(r"DEBIAN_FRONTEND=noninteractive TZ=\S+ apt-get install +-y", line)


@pytest.fixture(name="project")
def a_script(world: World) -> World:
    world.write(pyproject("six", layer="pip"))
    world.lock()
    make_script(world)
    return world


@pytest.mark.parametrize("shell", SHELLS)
def test_int_h1_a_build_without_a_terminal_ends(project: World, shell: str) -> None:
    """INT-H1: an open pipe that nobody writes to, in a session without a terminal."""
    ours, theirs = os.pipe()
    try:
        ended = subprocess.run(
            [shell, str(project.root / SCRIPT)],
            env=bare(project),
            stdin=ours,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            start_new_session=True,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert ended.returncode == 0, ended.stderr


def test_int_h1_whoever_fails_says_so(project: World, tmp_path: Path) -> None:
    """INT-H1's other half: no silent end with 1."""
    ended = subprocess.run(
        [SHELL, str(project.root / SCRIPT), "--project", str(tmp_path)],
        env=bare(project),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 20
    assert ended.stderr.startswith("error: ")
    assert "\n\nhint: " in ended.stderr


def test_git_and_pip_are_told_not_to_ask(project: World) -> None:
    text = project.read(SCRIPT)
    for setting in ("GIT_TERMINAL_PROMPT=0", "BatchMode=yes", "PIP_NO_INPUT=1"):
        assert setting in text
