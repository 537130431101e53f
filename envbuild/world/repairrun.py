"""Run one command of a repair plan; its output goes to stderr as it comes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from envbuild.errors import WorldError
from envbuild.world.childprocess import end_group
from envbuild.world.interrupts import signals_held
from envbuild.world.uv import find_uv

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# What would send uv to another environment than the one that was examined.
_MISLEADING = (
    "CONDA_PREFIX",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_NO_SYNC",
    "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT",
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "UV_TORCH_BACKEND",
    "UV_WORKING_DIR",
    "VIRTUAL_ENV",
)
_STDERR = 2
_GRACE = 10.0


class CommandRunner:
    """Runs uv and envbuild itself, never through a shell; see `envbuild.ports.RepairRunner`.

    The user's own settings of uv (indexes, cache, credentials) hold.
    """

    def __init__(self, environ: Mapping[str, str], *, uv: Path | None = None) -> None:
        self._environ = {k: v for k, v in environ.items() if k not in _MISLEADING}
        self._uv = uv

    def run(self, command: tuple[str, ...]) -> int:
        """Run a command to its end and return its exit status."""
        variables, words = _split(command)
        arguments = [*self._program(words[0]), *words[1:]]
        process: subprocess.Popen[bytes] | None = None
        try:
            with signals_held():
                process = self._started(arguments, variables)
            return process.wait()
        except BaseException:
            if process is not None:
                end_group(process, grace=_GRACE)
            raise

    def _started(
        self, arguments: list[str], variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                arguments,
                env={**self._environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                start_new_session=True,
            )
        except OSError as error:
            raise WorldError(
                f"`{arguments[0]}` could not be started: {error.strerror}", hint="pip install -U uv"
            ) from error

    def _program(self, name: str) -> list[str]:
        if name == "uv":
            self._uv = self._uv or find_uv()
            return [str(self._uv)]
        if name == "envbuild":
            return [sys.executable, "-m", "envbuild"]
        raise WorldError(f"found the command `{name}` in a plan, wanted `uv` or `envbuild`")


def _split(command: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Take `env NAME=VALUE ...` off the front."""
    if command[0] != "env":
        return {}, command
    settings = [word for word in command[1:3] if "=" in word]
    pairs = (word.partition("=") for word in settings)
    return {name: value for name, _, value in pairs}, command[1 + len(settings) :]
