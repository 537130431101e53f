"""Workflow commands of GitHub Actions."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import ERROR, REPORT, unhashed, with_finding

from envbuild.model.report import Outcome
from envbuild.render.failure import Failure
from envbuild.render.github import failure_commands, render_github, workflow_command

MANIFEST = """\
[project]
name = "x"

[tool.envbuild.targets.cu128]
python = "3.11"
"""

STALE = """\
::error file=app/pyproject.toml,line=4,title=EB101 cu128::nvidia-nccl-cu12 2.26.2: found beside \
nvidia-nccl-cu13, wanted one of them%0Ahint: pin the package that brings it
::warning file=app/pyproject.toml,line=4,title=EB401 cu128::torch-scatter 2.1.2+pt27cu128: has PTX \
but no machine code for 12.0: the first start is slow%0ASASS 7.5, 8.0, 9.0%0APTX 9.0%0Ahint: \
nothing to do, or build it from source
::warning file=app/pyproject.toml,line=4,title=EB402 cu128::spconv-cu126 2.3.8: its GPU code is \
not known
::error file=app/lockfiles/pylock.cu128.toml,title=cu128::torch 2.6.0+cu126 becomes 2.7.0+cu128
::error file=app/lockfiles/pylock.cu128.toml,title=cu128::numpy 2.2.6 is new
::error file=app/pyproject.toml::[tool.uv] constraint-dependencies: 3 pins
envbuild lock: stale (2 targets)
"""


def test_a_stale_lock() -> None:
    report = with_finding(ERROR, replace(REPORT, outcome=Outcome.STALE))
    assert render_github(report, root="app/", manifest=MANIFEST) == STALE


def test_what_was_written_is_a_notice() -> None:
    lines = render_github(REPORT).splitlines()
    assert lines[-2] == "::notice file=pyproject.toml::[tool.uv] constraint-dependencies: 3 pins"


@pytest.mark.parametrize(
    ("outcome", "level"),
    [(Outcome.FRESH, "error"), (Outcome.STALE, "error"), (Outcome.WRITTEN, "warning")],
)
def test_a_missing_hash_fails_a_check_alone(outcome: Outcome, level: str) -> None:
    report = unhashed(replace(REPORT, outcome=outcome))
    assert (
        f"::{level} file=pyproject.toml,line=4,title=cu128::`numpy` has no hash\n"
    ) in render_github(report, manifest=MANIFEST)


def test_each_problem_of_a_file_is_annotated_on_its_line() -> None:
    failure = Failure(
        kind="input",
        message="2 problems in `pyproject.toml`\n"
        "pyproject.toml:3: tool.envbuild.layer: found `x`, wanted `project` or `pip`\n"
        "requirements.txt:12: found `torch=2`, wanted a requirement",
        hint="see the documentation",
        exit_code=2,
    )
    assert failure_commands(failure, root="app/") == (
        "::error file=app/pyproject.toml,line=3::"
        "tool.envbuild.layer: found `x`, wanted `project` or `pip`\n"
        "::error file=app/requirements.txt,line=12::found `torch=2`, wanted a requirement\n"
        "::error file=app/pyproject.toml::2 problems in `pyproject.toml`%0A"
        "hint: see the documentation\n"
    )


def test_a_failure_without_a_line() -> None:
    failure = Failure(kind="world", message="100% of https://a:b@c.example failed", exit_code=3)
    assert failure_commands(failure) == (
        "::error file=pyproject.toml::100%25 of https://c.example failed\n"
    )


@pytest.mark.parametrize("level", ["error", "warning", "notice"])
def test_a_bare_message(level: str) -> None:
    assert workflow_command(level, "said") == f"::{level}::said"


@given(st.text(), st.text())
def test_nothing_breaks_out_of_a_command(message: str, title: str) -> None:
    command = workflow_command("error", message, file="f", title=title)
    properties, found, data = command.removeprefix("::error ").partition("::")
    assert found
    assert not {"\n", "\r"} & set(command)
    assert ":" not in properties
    assert properties.count(",") == (1 if title else 0)
    if "://" not in message:
        assert unescape(data) == message
    assert unescape(properties) == (f"file=f,title={title}" if title else "file=f")


def unescape(text: str) -> str:
    for code in ("%0D", "%0A", "%3A", "%2C", "%25"):
        text = text.replace(code, unquote(code))
    return text
