"""Time commands alternately, as whole processes, and print the medians as a Markdown table."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Wall-clock seconds of one command's runs."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def alternate(
    rounds: int,
    *commands: tuple[str, list[str], Callable[[], None]],
    environ: dict[str, str] | None = None,
) -> list[Timing]:
    """Return the timings of commands, each prepared before its run."""
    seconds: dict[str, list[float]] = {name: [] for name, _, _ in commands}
    for number in range(rounds + 1):
        for name, command, prepare in commands:
            prepare()
            taken = run_timed(command, environ)
            if number > 0:  # the first round only warms the caches
                seconds[name].append(taken)
    return [Timing(name=name, seconds=tuple(taken)) for name, taken in seconds.items()]


def run_timed(command: list[str], environ: dict[str, str] | None = None) -> float:
    begin = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environ or _environ()
    )
    taken = time.perf_counter() - begin
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return taken


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("UV_IND")}


def print_table(title: str, timings: list[Timing], *, base: Timing) -> None:
    print(f"{title}\n\n| command | median | fastest to slowest | beside the first |")
    print("|---|---|---|---|")
    for one in timings:
        name = re.sub(r"\|", "/", one.name)
        span = f"{min(one.seconds):.2f} to {max(one.seconds):.2f} s"
        print(f"| {name} | {one.median:.2f} s | {span} | {one.median / base.median:.2f}x |")
    print()
