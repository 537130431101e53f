"""All files of a lock are written, or none, whatever ends the process."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from envbuild.errors import InputError, WorldError
from envbuild.world.projectfiles import ProjectFiles

if TYPE_CHECKING:
    from pathlib import Path

OLD = {"pyproject.toml": "old", "uv.lock": "old", "lockfiles/pylock.a.toml": "old"}
NEW = dict.fromkeys(OLD, "new")


def held(root: Path) -> dict[str, str]:
    return {path: (root / path).read_text() for path in OLD}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def ready(stage: Path) -> None:
    before = dict.fromkeys(OLD, sha256("old"))
    plan = {"written": sorted(NEW), "removed": [], "before": before}
    (stage / "ready.json").write_text(json.dumps(plan))


@pytest.fixture
def project(tmp_path: Path) -> ProjectFiles:
    files = ProjectFiles(tmp_path)
    files.write_all(OLD)
    return files


def test_all_files_are_written_and_nothing_else_is_left(project: ProjectFiles) -> None:
    project.write_all(NEW)
    assert held(project.root) == NEW
    assert sorted(p.name for p in project.root.iterdir()) == [
        "lockfiles",
        "pyproject.toml",
        "uv.lock",
    ]


def test_a_file_without_a_text_is_removed(project: ProjectFiles) -> None:
    project.write_all({"pyproject.toml": "new", "uv.lock": None})
    assert project.read("pyproject.toml") == "new"
    assert not project.exists("uv.lock")


def test_a_process_killed_before_it_removed_a_file_is_finished(project: ProjectFiles) -> None:
    stage = project.root / ".envbuild-stage"
    stage.mkdir()
    before = {"uv.lock": sha256("old")}
    plan = {"written": [], "removed": ["uv.lock"], "before": before}
    (stage / "ready.json").write_text(json.dumps(plan))
    project.recover()
    assert not project.exists("uv.lock")


def test_the_mode_of_a_file_stays(project: ProjectFiles) -> None:
    (project.root / "uv.lock").chmod(0o640)
    project.write_all(NEW)
    assert (project.root / "uv.lock").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(project: ProjectFiles, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.lock"
    real.write_text("old")
    (project.root / "uv.lock").unlink()
    (project.root / "uv.lock").symlink_to(real)
    project.write_all(NEW)
    assert (project.root / "uv.lock").is_symlink()
    assert real.read_text() == "new"


def test_a_goal_that_is_a_folder_leaves_the_old_files(project: ProjectFiles) -> None:
    texts = {**NEW, "lockfiles/pylock.a.toml/x": "new"}
    with pytest.raises(WorldError, match="cannot be written to"):
        project.write_all(texts)
    assert held(project.root) == OLD


def test_a_process_killed_after_the_stage_was_complete_is_finished(project: ProjectFiles) -> None:
    stage = project.root / ".envbuild-stage"
    (stage / "lockfiles").mkdir(parents=True)
    for path, text in NEW.items():
        (stage / path).write_text(text)
    ready(stage)
    (stage / "pyproject.toml").replace(project.root / "pyproject.toml")
    project.recover()
    assert held(project.root) == NEW
    assert not stage.exists()


def test_what_the_user_changed_after_a_kill_stays(project: ProjectFiles) -> None:
    stage = project.root / ".envbuild-stage"
    (stage / "lockfiles").mkdir(parents=True)
    for path, text in NEW.items():
        (stage / path).write_text(text)
    ready(stage)
    (project.root / "pyproject.toml").write_text("mine")
    project.recover()
    assert held(project.root) == {**NEW, "pyproject.toml": "mine"}
    assert not stage.exists()


def test_a_file_in_the_place_of_a_folder_leaves_the_old_files(project: ProjectFiles) -> None:
    (project.root / "scripts").write_text("mine")
    with pytest.raises(WorldError, match="cannot be written to: Not a directory"):
        project.write_all({**NEW, "scripts/x": "new"})
    assert held(project.root) == OLD
    assert not (project.root / ".envbuild-stage").exists()


def test_a_process_killed_before_the_stage_was_complete_is_undone(project: ProjectFiles) -> None:
    stage = project.root / ".envbuild-stage"
    stage.mkdir()
    (stage / "uv.lock").write_text("half")
    project.recover()
    assert held(project.root) == OLD
    assert not stage.exists()


WRITER = """
import sys
from pathlib import Path
from envbuild.world.projectfiles import ProjectFiles
files = ProjectFiles(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(100000):
    text = f"{number}" * 200
    files.write_all(dict.fromkeys(["pyproject.toml", "uv.lock", "lockfiles/pylock.a.toml"], text))
"""


@pytest.mark.parametrize("delay", [0.005 * step for step in range(1, 13)])
def test_kill_9_leaves_one_generation_of_files(project: ProjectFiles, delay: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(project.root)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    project.recover()
    assert len(set(held(project.root).values())) == 1


def test_two_locks_at_once_are_refused(project: ProjectFiles) -> None:
    with (
        project.locked(),
        pytest.raises(WorldError, match="another `envbuild lock`"),
        ProjectFiles(project.root).locked(),
    ):
        pass
    with project.locked():
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_refused(project: ProjectFiles) -> None:
    project.root.chmod(0o555)
    try:
        with pytest.raises(WorldError, match="cannot be written to"):
            project.check_writable()
    finally:
        project.root.chmod(0o755)


def test_text_that_is_not_utf_8_is_the_users_problem(project: ProjectFiles) -> None:
    (project.root / "pyproject.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="no UTF-8"):
        project.read("pyproject.toml")


def test_a_file_that_is_not_there_is_none(project: ProjectFiles) -> None:
    assert project.read("requirements.txt") is None
    assert project.read("uv.lock/x") is None


def test_a_file_with_the_line_ends_of_windows_keeps_them(project: ProjectFiles) -> None:
    (project.root / "pyproject.toml").write_bytes(b"a\r\nb\r\n")
    project.write_all({"pyproject.toml": "a\nc\n", "uv.lock": "a\nc\n"})
    assert (project.root / "pyproject.toml").read_bytes() == b"a\r\nc\r\n"
    assert (project.root / "uv.lock").read_bytes() == b"a\nc\n"
