"""Keep two runs from one environment, and wait for a uv that outlived the run that started it.

The lock is on a file of the environment. A uv that changes the environment inherits the open
file, and with it the lock: where the run alone is killed, the lock stays until that uv has ended.
"""

from __future__ import annotations

import fcntl
import math
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from envbuild.errors import InputError, WorldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

LOCK = ".envbuild-lock"
"""The locked file in an environment; the install script locks the same one."""

LOCK_OF_UV = ".lock"
PATIENCE = "ENVBUILD_LOCK_TIMEOUT"
_USUAL = 300.0
_PAUSE = 0.05


def patience_of(environ: Mapping[str, str]) -> float:
    """Return for how many seconds another run is waited for."""
    text = environ.get(PATIENCE, "").strip()
    try:
        seconds = float(text or _USUAL)
    except ValueError:
        seconds = math.nan
    if 0 <= seconds < math.inf:
        return seconds
    raise InputError(
        f"{PATIENCE} is `{text}`, wanted a number of seconds", hint=f"{PATIENCE}={_USUAL:.0f}"
    )


@contextmanager
def held_environment(
    venv: Path, *, patience: float, tell: Callable[[str], None]
) -> Iterator[int | None]:
    """Hold the folder of an environment, made where it is absent; give the descriptor to pass on.

    It is None where the file system knows no locks. Raises WorldError where another run does not
    end, or nothing can be written.
    """
    handle = _opened(venv)
    try:
        is_locked = _waited(handle, venv, patience=patience, tell=tell)
        _wait_for_uv(venv, patience=patience, tell=tell)
        yield handle if is_locked else None
    finally:
        os.close(handle)


def unwritable(venv: Path, error: OSError) -> WorldError:
    """Say why an environment cannot be changed."""
    return WorldError(
        f"`{venv}` cannot be written: {error.strerror}",
        hint="make it writable, or name another by `--venv DIR`",
    )


def _opened(venv: Path) -> int:
    try:
        venv.mkdir(parents=True, exist_ok=True)
        return os.open(venv / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise unwritable(venv, error) from None


def _wait_for_uv(venv: Path, *, patience: float, tell: Callable[[str], None]) -> None:
    """Wait for a uv that somebody started by hand; it holds this lock while it works."""
    try:
        handle = os.open(venv / LOCK_OF_UV, os.O_RDWR)
    except OSError:
        return
    try:
        _waited(handle, venv, patience=patience, tell=tell)
    finally:
        os.close(handle)


def _waited(handle: int, venv: Path, *, patience: float, tell: Callable[[str], None]) -> bool:
    """Wait for a lock; return whether the file system knows locks at all."""
    answer = _locked(handle)
    if answer is not False:
        return answer is True
    tell(f"wait for another run in `{venv}`, or for a uv that one left behind")
    end = time.monotonic() + patience
    while time.monotonic() < end:
        time.sleep(_PAUSE)
        if _locked(handle):
            return True
    raise WorldError(
        f"another run, or a uv that one left behind, is at work in `{venv}`",
        hint=f"wait until it has ended; `fuser -v {venv / LOCK}` names it",
    )


def _locked(handle: int) -> bool | None:
    """Return whether the lock is had, None where the file system knows none."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
