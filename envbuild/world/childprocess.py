"""Run a program to its end; an interrupt ends it and all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_GRACE = 2.0


def run_to_end(
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    passed_on: tuple[int, ...] = (),
) -> subprocess.CompletedProcess[str]:
    """Return the exit status and what was printed; raises OSError where it cannot be started.

    It gets no terminal, so that nothing it starts can wait for an answer. ``passed_on`` are open
    files that it inherits, with the locks on them.
    """
    with subprocess.Popen(
        list(arguments),
        cwd=cwd,
        env=None if environ is None else dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        pass_fds=passed_on,
    ) as process:
        try:
            out, err = process.communicate()
        except BaseException:
            end_group(process, grace=_GRACE)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def end_group(process: subprocess.Popen[str] | subprocess.Popen[bytes], *, grace: float) -> None:
    """End a program that leads a group of its own, and its children: kindly, then by force.

    ``grace`` are the seconds that it has to end by itself.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
