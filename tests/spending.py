"""What a piece of code may spend: processor time of its thread, and memory of the process."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STATUS = Path("/proc/self/status")
_HIGHEST = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def _highest_megabytes() -> float:
    found = _HIGHEST.search(_STATUS.read_text(encoding="ascii"))
    return int(found[1]) / 1000 if found else 0.0


@contextmanager
def spent(*, seconds: float = 1.0, megabytes: float = 200.0) -> Iterator[None]:
    """Fail where the block takes more."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # begin the peak anew
    memory, start = _highest_megabytes(), time.thread_time()
    yield
    took, grown = time.thread_time() - start, _highest_megabytes() - memory
    assert took <= seconds, f"took {took:.2f} s"
    assert grown <= megabytes, f"took {grown:.0f} MB"
