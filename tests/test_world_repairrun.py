"""Commands of a repair plan are run with a real program in the place of uv."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from envbuild.errors import WorldError
from envbuild.world.repairrun import CommandRunner

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
#!/bin/sh
printf '%s|' "$@" > {log}
for value in "$UV_PROJECT_ENVIRONMENT" "$VIRTUAL_ENV" "$UV_INDEX"; do
    printf '%s|' "${value:-unset}" >> {log}
done
echo said
exit {status}
"""


def program(folder: Path, *, status: int = 0) -> Path:
    script = folder / "uv"
    script.write_text(
        SCRIPT.replace("{log}", str(folder / "log")).replace("{status}", str(status)), "utf-8"
    )
    script.chmod(0o755)
    return script


def test_words_are_passed_as_they_are(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    environ = {**os.environ, "VIRTUAL_ENV": "/x", "UV_PROJECT_ENVIRONMENT": "/y", "UV_INDEX": "i"}
    runner = CommandRunner(environ, uv=program(tmp_path))
    assert runner.run(("uv", "pip", "a b", "$HOME;ls")) == 0
    assert (tmp_path / "log").read_text("utf-8") == "pip|a b|$HOME;ls|unset|unset|i|"
    assert capfd.readouterr() == ("", "said\n")


def test_a_setting_before_the_command(tmp_path: Path) -> None:
    runner = CommandRunner(os.environ, uv=program(tmp_path, status=3))
    assert runner.run(("env", "UV_PROJECT_ENVIRONMENT=/v", "uv", "sync")) == 3
    assert (tmp_path / "log").read_text("utf-8").startswith("sync|/v|")


def test_envbuild_runs_itself() -> None:
    assert CommandRunner(os.environ).run(("envbuild", "--version")) == 0


def test_other_programs_are_not_run(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="found the command `rm` in a plan"):
        CommandRunner(os.environ).run(("rm", "-rf", "/"))
    with pytest.raises(WorldError, match="could not be started"):
        CommandRunner(os.environ, uv=tmp_path / "none").run(("uv", "sync"))


def test_an_interrupt_ends_the_command(tmp_path: Path) -> None:
    script = tmp_path / "uv"
    script.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 30\n", "utf-8")
    script.chmod(0o755)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text("utf-8"):
            time.sleep(0.02)
        time.sleep(0.2)  # so that the command is surely being waited for
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        CommandRunner(os.environ, uv=script).run(("uv", "sync"))
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text("utf-8")), 0)
