"""Progress and notes on stderr."""

from __future__ import annotations

import io
import itertools

import pytest

from envbuild.render.progress import Silent, TerminalReporter, byte_words, wants_line

CLEAR = "\r\033[2K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def reporter(
    stream: io.StringIO, *, live: bool = True, quiet: bool = False, width: int = 80
) -> TerminalReporter:
    ticks = itertools.count()
    return TerminalReporter(
        stream, live=live, quiet=quiet, width=width, clock=lambda: float(next(ticks))
    )


def speak(to: TerminalReporter) -> None:
    to.phase("read")
    to.candidate("torch 2.7.0+cu128", 1)
    to.note("uv took 2 s")
    to.download("torch.whl", 500, 1_500_000)
    to.download("torch.whl", 1_500_000, 1_500_000)
    to.close()


def test_a_terminal_shows_one_line_and_keeps_the_notes() -> None:
    stream = io.StringIO()
    speak(reporter(stream))
    assert stream.getvalue() == (
        f"{CLEAR}read"
        f"{CLEAR}candidate 1: torch 2.7.0+cu128"
        f"{CLEAR}uv took 2 s\n"
        f"{CLEAR}candidate 1: torch 2.7.0+cu128"
        f"{CLEAR}fetching torch.whl: 500 B of 1.5 MB"
        f"{CLEAR}candidate 1: torch 2.7.0+cu128"
        f"{CLEAR}"
    )


def test_without_a_terminal_only_notes_are_printed() -> None:
    stream = io.StringIO()
    speak(reporter(stream, live=False))
    assert stream.getvalue() == "uv took 2 s\n"


@pytest.mark.parametrize("live", [True, False])
def test_quiet_says_nothing(live: bool) -> None:  # noqa: FBT001
    stream = io.StringIO()
    speak(reporter(stream, live=live, quiet=True))
    assert stream.getvalue() == ""


def test_downloads_are_summed() -> None:
    stream = io.StringIO()
    shown = reporter(stream)
    shown.download("a.whl", 1_000_000, 3_000_000)
    shown.download("b.whl", 1_000_000, 4_000_000_000)
    shown.download("c.whl", 1_000, None)
    assert stream.getvalue().split(CLEAR)[1:] == [
        "fetching a.whl: 1.0 MB of 3.0 MB",
        "fetching 2 files: 2.0 MB of 4.0 GB",
        "fetching 3 files: 2.0 MB",
    ]


def test_a_terminal_is_not_flooded() -> None:
    stream = io.StringIO()
    shown = TerminalReporter(stream, live=True, clock=lambda: 7.0)
    for done in range(100):
        shown.download("a.whl", done, 1000)
    assert stream.getvalue() == f"{CLEAR}fetching a.whl: 0 B of 1.0 kB"


def test_a_line_stays_one_line() -> None:
    stream = io.StringIO()
    reporter(stream, width=11).phase("0123456789\nabcdef")
    assert stream.getvalue() == f"{CLEAR}0123456789"


def test_notes_carry_no_credentials_and_no_escapes() -> None:
    stream = io.StringIO()
    reporter(stream).note("from https://me:secret@host.example/x \033[2J")
    assert stream.getvalue() == "from https://host.example/x ?[2J\n"


def test_a_stream_that_is_gone_ends_nothing() -> None:
    stream = io.StringIO()
    stream.close()
    shown = reporter(stream)
    speak(shown)
    shown.note("still here")


def test_silent_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    silent = Silent()
    silent.phase("a")
    silent.candidate("b", 1)
    silent.download("c", 1, None)
    silent.note("d")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("stream", "environ", "wanted"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"CI": "true"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_when_a_line_is_wanted(
    stream: io.StringIO,
    environ: dict[str, str],
    wanted: bool,  # noqa: FBT001
) -> None:
    assert wants_line(stream, environ) is wanted


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (352_100_000, "352.1 MB"), (8e9, "8.0 GB")],
)
def test_byte_words(count: int, words: str) -> None:
    assert byte_words(count) == words
