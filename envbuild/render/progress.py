"""How far a command is, on stderr: one changing line on a terminal, nothing elsewhere."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.ports import Reporter
from envbuild.render.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

_CLEAR = "\r\033[2K"
_PAUSE = 0.1
_UNIT = 1000


class Silent(Reporter):
    """Says nothing."""


class TerminalReporter(Reporter):
    """Shows one line while something is going on, and prints notes above it.

    ``live`` False leaves the line out and ``quiet`` the notes as well. What cannot be printed
    is dropped: nothing ends because its progress cannot be shown.
    """

    def __init__(
        self,
        stream: TextIO | None,
        *,
        live: bool,
        quiet: bool = False,
        width: int = 80,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._live = live and not quiet
        self._quiet = quiet
        self._width = width
        self._clock = clock
        self._lock = threading.RLock()
        self._drawn = ""
        self._phase = ""
        self._files: dict[str, tuple[int, int | None]] = {}
        self._last = float("-inf")

    def close(self) -> None:
        """Remove the line."""
        with self._lock:
            self._draw("")

    def phase(self, text: str) -> None:
        """Show what begins now; downloads of the phase before are forgotten."""
        with self._lock:
            self._phase = text
            self._files.clear()
            self._draw(text)

    def candidate(self, label: str, number: int) -> None:
        """Show which candidate is tried."""
        self.phase(f"candidate {number}: {label}")

    def download(self, name: str, done_bytes: int, total_bytes: int | None) -> None:
        """Show the sum of what is being fetched, at most ten times a second."""
        with self._lock:
            self._files[name] = (done_bytes, total_bytes)
            if done_bytes == total_bytes:
                del self._files[name]
            elif self._clock() - self._last < _PAUSE:
                return
            self._draw(self._fetching() or self._phase)

    def note(self, text: str) -> None:
        """Print one line, above the progress line."""
        if self._quiet:
            return
        with self._lock:
            line, self._drawn = self._drawn, ""
            clear = _CLEAR if line else ""
            self._write(f"{clear}{printable(redact_text(text))}\n")
            self._draw(line)

    def _fetching(self) -> str:
        if not self._files:
            return ""
        first, *others = self._files
        what = f"{len(self._files)} files" if others else first
        done = sum(done for done, _ in self._files.values())
        totals = [total for _, total in self._files.values()]
        known = [total for total in totals if total is not None]
        of = f" of {byte_words(sum(known))}" if len(known) == len(totals) else ""
        return f"fetching {what}: {byte_words(done)}{of}"

    def _draw(self, text: str) -> None:
        line = printable(redact_text(text)).replace("\n", " ")[: max(self._width - 1, 0)]
        if not self._live or line == self._drawn:
            return
        self._last = self._clock()
        self._drawn = line
        self._write(_CLEAR + line)

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._live, self._quiet = False, True


def wants_line(stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Whether a line that changes can be shown: on a terminal that a person looks at."""
    if stream is None or environ.get("CI"):
        return False
    return stream.isatty() and environ.get("TERM") != "dumb"


def byte_words(count: int) -> str:
    """Return a size as people write it: ``352.1 MB``."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < _UNIT:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _UNIT
    return f"{size:.1f} GB"
