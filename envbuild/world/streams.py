"""stdout and stderr as they are: closed, piped, full, or a terminal of some width."""

from __future__ import annotations

import io
import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from envbuild.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType
    from typing import TextIO


def escape_what_cannot_be_encoded(stream: TextIO | None) -> None:
    """Let a name in another script be shown as an escape where the encoding lacks it."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def say(stream: TextIO | None, text: str) -> None:
    """Write a text at once; a reader that has gone away ends nothing and needs no word.

    Raises WorldError where the text cannot be written for another reason.
    """
    if stream is None or stream.closed:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        discard(stream)
    except OSError as error:
        discard(stream)
        raise WorldError(f"the answer cannot be written: {error.strerror}") from error


def discard(stream: TextIO | None) -> None:
    """Drop what is still to be written: else Python tries once more while it ends."""
    if stream is not None:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def terminal_width(stream: TextIO | None) -> int | None:
    """Return the width of the terminal behind a stream; None if there is no terminal."""
    if stream is None or not stream.isatty():
        return None
    with suppress(OSError):
        return os.get_terminal_size(stream.fileno()).columns or None
    return None


def wants_color(stream: TextIO | None, asked: str, environ: Mapping[str, str]) -> bool:
    """Whether to write colours, for ``auto``, ``always`` or ``never``."""
    if asked in {"always", "never"}:
        return asked == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stream is not None and stream.isatty() and environ.get("TERM") != "dumb"


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does; only the main thread may ask for this."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
