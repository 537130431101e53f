"""The text answer against whole literals: it is what people read and scripts grep."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reports import CPU_TARGET, ERROR, REPORT, TARGET, candidate, unhashed, with_finding

from envbuild.model.finding import Finding, Severity
from envbuild.model.project import Layer
from envbuild.model.report import LockReport, Outcome
from envbuild.render.nextstep import Invocation, install_command, next_step
from envbuild.render.text import render_text

WRITTEN = """\
cu128: torch 2.7.0+cu128, CUDA 12.8, Python 3.11, linux-x86_64, for RTX PRO 2000 Blackwell (12.0), \
B200 (10.0)
  torch          2.7.0+cu128
  torchvision    0.22.0+cu128     released with torch 2.7.0
  torch-scatter  2.1.2+pt27cu128
  spconv-cu126   2.3.8            stands for `spconv`; the newest CUDA 12 build
  pointops       source           only a folder has it
  5 packages, all hashed
  compiled on install: pointops (from libs/pointops)
  warning EB401: torch-scatter 2.1.2+pt27cu128: has PTX but no machine code for 12.0: the first \
start is slow
      SASS 7.5, 8.0, 9.0
      PTX 9.0
      hint: nothing to do, or build it from source
  unknown EB402: spconv-cu126 2.3.8: its GPU code is not known
  note: torch 2.7.0 has no code for sm_121
  note: pins `torch` through peft

cpu: torch 2.7.0+cpu, Python 3.11, linux-x86_64, for the CPU
  torch  2.7.0+cpu
  1 package, all hashed

changes:
  lockfiles/pylock.cu128.toml (cu128)
    torch 2.6.0+cu126 becomes 2.7.0+cu128
    numpy 2.2.6 is new
  pyproject.toml
    [tool.uv] constraint-dependencies: 3 pins

index pages: embedded catalog of 2026-11-20
written: lockfiles/pylock.cu128.toml, lockfiles/requirements.cu128.txt, uv.lock
next: uv sync
"""

SMALL = replace(REPORT, targets=(CPU_TARGET,), changes=(), files=(), default_target="cpu")


def test_written() -> None:
    assert render_text(REPORT) == WRITTEN


def test_fresh() -> None:
    assert render_text(replace(SMALL, outcome=Outcome.FRESH)) == (
        "cpu: torch 2.7.0+cpu, Python 3.11, linux-x86_64, for the CPU\n"
        "  torch  2.7.0+cpu\n"
        "  1 package, all hashed\n"
        "\n"
        "index pages: embedded catalog of 2026-11-20\n"
        "fresh: the files hold what the inputs give\n"
        "next: uv sync\n"
    )


@pytest.mark.parametrize(
    ("outcome", "verdict", "step"),
    [
        (Outcome.UNCHANGED, "unchanged: every file already holds this", "uv sync"),
        (Outcome.STALE, "stale: 3 differences between the files and what the inputs give", "again"),
        (
            Outcome.WOULD_WRITE,
            f"nothing was written, a real run would write: {', '.join(REPORT.files)}",
            "again",
        ),
    ],
)
def test_last_lines(outcome: Outcome, verdict: str, step: str) -> None:
    text = render_text(replace(REPORT, outcome=outcome), invocation=Invocation(again="again"))
    assert text.splitlines()[-2:] == [verdict, f"next: {step}"]


def test_an_incomplete_lock_names_what_lacks_a_hash() -> None:
    lines = render_text(unhashed(), invocation=Invocation(complete="fetch")).splitlines()
    assert "  5 packages, 2 without a hash: `numpy`, `torch-scatter`" in lines
    assert lines[-2:] == ["incomplete: not every package has a hash", "next: fetch"]


@pytest.mark.parametrize(
    ("outcome", "step"),
    [
        (Outcome.STALE, "fetch"),
        (Outcome.FRESH, "fetch"),
        (Outcome.UNCHANGED, "fetch"),
        (Outcome.WOULD_WRITE, "again"),
    ],
)
def test_missing_hashes_are_fetched_next(outcome: Outcome, step: str) -> None:
    call = Invocation(again="again", complete="fetch")
    assert next_step(unhashed(replace(REPORT, outcome=outcome)), call) == step


def test_errors_come_first_and_stop_the_install() -> None:
    lines = render_text(with_finding(ERROR), invocation=Invocation(again="again")).splitlines()
    labels = [line.split()[0] for line in lines if " EB" in line]
    assert labels == ["error", "warning", "unknown"]
    assert lines[-2:] == ["not sound: see the errors above", "next: again"]


def test_a_subject_is_not_said_twice() -> None:
    finding = replace(ERROR, message=f"{ERROR.subject} has no code for sm_120", hint=None)
    text = render_text(with_finding(finding))
    assert "  error EB101: nvidia-nccl-cu12 2.26.2 has no code for sm_120\n" in text


def test_a_build_of_pypi_says_so() -> None:
    stack = replace(TARGET.stack, candidate=candidate("2.8.0", "12.8"))
    lock = replace(TARGET.lock, gpus=("9.0", "Some Future GPU"))
    report = replace(REPORT, targets=(replace(TARGET, stack=stack, lock=lock),))
    assert render_text(report).splitlines()[0] == (
        "cu128: torch 2.8.0 from PyPI, CUDA 12.8, Python 3.11, linux-x86_64, "
        "for compute capability 9.0, Some Future GPU"
    )


def test_a_narrow_terminal_wraps_tables_and_no_command() -> None:
    call = Invocation(again="envbuild lock --target a-name-that-is-rather-long --source catalog")
    text = render_text(replace(REPORT, outcome=Outcome.STALE), width=60, invocation=call)
    assert f"next: {call.again}\n" in text
    assert "stands for `spconv`; the\n" in text


def test_colours_say_nothing_that_words_do_not() -> None:
    coloured = render_text(with_finding(ERROR), color=True)
    assert "\033[1;31merror EB101: \033[0m" in coloured
    assert "\033" not in render_text(with_finding(ERROR))


def test_texts_of_others_steer_no_terminal_and_carry_no_markup() -> None:
    message = "\033[2Jgone [bold]text[/bold] :smile:"
    finding = Finding(code="EB9", severity=Severity.NOTE, subject="", message=message)
    text = render_text(with_finding(finding))
    assert "  note EB9: ?[2Jgone [bold]text[/bold] :smile:\n" in text


def test_credentials_are_not_printed() -> None:
    report = replace(REPORT, source="index pages: https://me:secret@mirror.example/whl")
    text = render_text(report)
    assert "secret" not in text
    assert "index pages: https://mirror.example/whl\n" in text


@pytest.mark.parametrize(
    ("layer", "default", "targets", "command"),
    [
        (Layer.PROJECT, "cu128", (TARGET, CPU_TARGET), "uv sync"),
        (Layer.PROJECT, "cpu", (TARGET,), "uv pip sync lockfiles/pylock.cu128.toml"),
        (Layer.PIP, "cpu", (TARGET, CPU_TARGET), "uv pip sync lockfiles/pylock.cpu.toml"),
        (Layer.PIP, "", (TARGET, CPU_TARGET), "uv pip sync lockfiles/pylock.cu128.toml"),
    ],
)
def test_install_command(
    layer: Layer, default: str, targets: tuple[object, ...], command: str
) -> None:
    report = replace(REPORT, layer=layer, default_target=default, targets=targets)
    assert install_command(report) == command


def test_install_command_of_another_folder() -> None:
    assert next_step(REPORT, Invocation(directory="my project")) == (
        "uv --directory 'my project' sync"
    )


def test_a_report_without_targets_is_printed() -> None:
    empty = LockReport(outcome=Outcome.FRESH, source="", targets=())
    assert render_text(empty) == "fresh: the files hold what the inputs give\nnext: uv sync\n"
