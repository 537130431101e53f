"""Let an interrupt wait, where what was begun must be finished."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the end of the block."""
    caught: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        caught.append(number)

    try:
        held = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, note) for number in held}
    except ValueError:  # not in the main thread: no signal arrives here
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for arrived in caught:
            os.kill(os.getpid(), arrived)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder that is gone afterwards, whenever an interrupt comes.

    Raises OSError where none can be made.
    """
    folder: Path | None = None
    try:
        with signals_held():
            folder = Path(tempfile.mkdtemp(prefix="envbuild-")).resolve()
        yield folder
    finally:
        if folder is not None:
            with signals_held():
                shutil.rmtree(folder, ignore_errors=True)
