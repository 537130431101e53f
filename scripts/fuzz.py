"""Fuzz every reader of files with atheris, led by coverage: ``nox -s fuzz -- --inputs 1000000``.

An escape is an error that a reader does not declare, more than a second of processor time, or
more than 200 MB. Each is kept under ``.fuzz/``, and ``nox -s fuzz -- --replay FILE`` runs it again.
The corpus under ``.fuzz/corpus`` is where the next run goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import re
import resource
import sys
import time
import traceback
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fuzz_readers import Reader

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".fuzz"
MOST_SECONDS = 1.0
MOST_BYTES = 200_000_000
HANG_SECONDS = 20
LONGEST_TEXT, LONGEST_BINARY = 8 << 10, 64 << 10
_BORDER = re.compile(rb"\b")
_COVERAGE = re.compile(r"^#\d+\s+(?P<event>\w+)\s+cov: (?P<covered>\d+)", re.MULTILINE)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@dataclass(kw_only=True, slots=True)
class Watch:
    """Reads inputs with one reader and remembers what went wrong, once for each place."""

    reader: Reader
    kept: Path = KEPT
    most_seconds: float = MOST_SECONDS
    inputs: int = 0
    slowest_seconds: float = 0.0
    escapes: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    _memory: int = field(default_factory=_peak)

    def read(self, data: bytes) -> None:
        """Read one input."""
        self.inputs += 1
        before = time.thread_time()
        self._try(data)
        seconds = time.thread_time() - before
        if seconds > self.slowest_seconds:
            if seconds > self.most_seconds:
                self._escape("slow", f"{seconds:.1f} s of processor time", data)
            self.slowest_seconds = seconds
            self._keep(data, "slowest")
        grown = _peak() - self._memory
        if grown > MOST_BYTES:
            self._escape("memory", f"{grown / 1e6:.0f} MB", data)
            self._memory += grown

    def _try(self, data: bytes) -> None:
        try:
            self.reader.read(data)
        except self.reader.raises:
            pass
        except Exception as error:  # noqa: BLE001 - whatever comes is the finding
            self._escape(_place(error), f"{type(error).__name__}: {str(error)[:120]!r}", data)

    def _escape(self, place: str, what: str, data: bytes) -> None:
        if place not in self.escapes:
            digest = hashlib.sha256(data).hexdigest()[:12]
            self.escapes[place] = f"{place}: {what}\n    {self._keep(data, digest)}"

    def _keep(self, data: bytes, name: str) -> str:
        path = self.kept / f"{self.reader.name}-{name}"
        path.write_bytes(data)
        return str(path)

    def report(self) -> dict[str, object]:
        """Return what was seen as JSON."""
        return {
            "inputs": self.inputs,
            "seconds": time.monotonic() - self.started,
            "slowest": self.slowest_seconds,
            "escapes": list(self.escapes.values()),
        }


def _place(error: Exception) -> str:
    """Name the error and the innermost line of the package, the same for each of its inputs."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if "/envbuild/" in one.filename] or frames
    return f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}"


def mutate_lines(data: bytes, reader: Reader, seed: int, *, most: int) -> bytes:
    """Change a few lines so that most of the text stays valid, which single bytes rarely leave."""
    dice = random.Random(seed)  # noqa: S311
    lines = data.split(b"\n")
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(lines))
        word = dice.choice(reader.words).encode()
        key, equals, value = lines[at].partition(b"=" if b"=" in lines[at] else b":")
        border = _BORDER.search(lines[at], dice.randint(0, len(lines[at])))
        spot = border.start() if border else 0
        line = dice.choice(
            (
                key + equals + word,
                lines[at][:spot] + word + lines[at][spot:],
                lines[at][:spot] + word,
                word + equals + value,
                dice.choice(lines),
                _quoting(lines[at], word),
            )
        )
        lines[at : at + dice.randint(0, 1)] = [line] * dice.choice((0, 1, 1, 1, 2))
        lines = lines or [b""]
    return b"\n".join(lines)[:most]


def _quoting(line: bytes, word: bytes) -> bytes:
    """Put the word into the first quotes of the line."""
    parts = line.split(b'"')
    return b'"'.join((*parts[:1], word.strip(b'"'), *parts[2:]))


def fuzz_one(reader: Reader, *, inputs: int, seed: int) -> None:
    """Give one reader so many inputs, write the report, and end this process."""
    import atheris  # type: ignore[import-untyped]  # noqa: PLC0415 - only its session has it

    watch = Watch(reader=reader)
    most = LONGEST_TEXT if reader.words else LONGEST_BINARY

    def one_input(data: bytes) -> None:
        watch.read(data)
        if watch.inputs == inputs:
            _file(reader, "json").write_text(json.dumps(watch.report()), encoding="utf-8")
            sys.stderr.flush()
            os._exit(0)

    def mutator(data: bytes, size: int, seed: int) -> bytes:
        if reader.words and seed % 2:
            return mutate_lines(data, reader, seed, most=size)
        changed: bytes = atheris.Mutate(data, size)
        return changed

    corpus = KEPT / "corpus" / reader.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, valid in enumerate(reader.seeds):
        (corpus / f"seed-{number}").write_bytes(valid)
    options = [f"-seed={seed}", f"-max_len={most}", f"-timeout={HANG_SECONDS}"]
    options += ["-rss_limit_mb=2048", f"-artifact_prefix={KEPT}/{reader.name}-"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input, custom_mutator=mutator)
    atheris.Fuzz()


def _file(reader: Reader, kind: str) -> Path:
    return KEPT / f"{reader.name}.{kind}"


def run_one(reader: Reader, *, inputs: int, seed: int) -> bool:
    """Fuzz one reader in a process of its own and print its line; return whether it held."""
    _file(reader, "json").unlink(missing_ok=True)
    child = os.fork()
    if not child:
        with _file(reader, "log").open("wb") as log:
            os.dup2(log.fileno(), 2)
            fuzz_one(reader, inputs=inputs, seed=seed)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    said = _file(reader, "log").read_text(encoding="utf-8", errors="replace")
    if status or not _file(reader, "json").is_file():
        print(f"{reader.name}: ended with {os.waitstatus_to_exitcode(status)}\n{said[-3000:]}")
        return False
    report = json.loads(_file(reader, "json").read_text(encoding="utf-8"))
    covered = [int(match["covered"]) for match in _COVERAGE.finditer(said)] or [0]
    print(
        f"{reader.name:15} {report['inputs']:>9,} inputs {report['seconds']:>6.0f} s"
        f"   coverage {covered[0]:>5} -> {covered[-1]:>5}"
        f"   slowest {report['slowest'] * 1000:>5.0f} ms"
        f"   escapes {len(report['escapes'])}",
        flush=True,
    )
    for escape in report["escapes"]:
        print(f"  {escape}", flush=True)
    return not report["escapes"]


def run_all(readers: Sequence[Reader], *, inputs: int, seed: int) -> int:
    """Fuzz each reader with its share; return the exit code."""
    started = time.monotonic()
    shares = sum(reader.share for reader in readers)
    counts = [-(-inputs * reader.share // shares) for reader in readers]
    held = [
        run_one(reader, inputs=count, seed=seed)
        for reader, count in zip(readers, counts, strict=True)
    ]
    print(
        f"{sum(counts):,} inputs over {len(held)} readers in"
        f" {time.monotonic() - started:.0f} s, seed {seed}: {held.count(False)} with escapes"
    )
    if not all(held):
        print("to see one again: nox -s fuzz -- --replay FILE")
    return 0 if all(held) else 1


def replay(path: Path, readers: Sequence[Reader]) -> int:
    """Read a kept input and let its error through."""
    reader = max(
        (one for one in readers if path.name.startswith(f"{one.name}-")),
        key=lambda one: len(one.name),
    )
    before = time.thread_time()
    try:
        reader.read(path.read_bytes())
    except reader.raises as error:
        print(f"declared: {type(error).__name__}: {error}")
    print(f"{time.thread_time() - before:.3f} s, peak {_peak() / 1e6:.0f} MB")
    return 0


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for all readers together")
    parser.add_argument("--seed", type=int, default=0, help="0 for one drawn at random")
    parser.add_argument("--reader", action="append", default=[], help="only this one")
    parser.add_argument("--replay", type=Path, help="read a kept input once")
    options = parser.parse_args()
    if options.replay:
        from fuzz_readers import READERS  # noqa: PLC0415 - without atheris

        return replay(options.replay, READERS)
    import atheris  # noqa: PLC0415

    names = ["envbuild.core", "packaging"]
    with redirect_stderr(io.StringIO()), atheris.instrument_imports(include=names):
        from fuzz_readers import READERS  # noqa: PLC0415
    KEPT.mkdir(exist_ok=True)
    chosen = [one for one in READERS if not options.reader or one.name in options.reader]
    seed = options.seed or random.SystemRandom().randrange(1, 1 << 31)
    return run_all(chosen, inputs=options.inputs, seed=seed)


if __name__ == "__main__":
    sys.exit(main())
