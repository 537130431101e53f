"""EB205: a venv whose interpreter is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkvalues import PREFIX, env, found, one

from envbuild.checks.interpreter import interpreter_gone
from envbuild.core.repair.plan import Ground, repair_plan
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install

if TYPE_CHECKING:
    from envbuild.model.installed import Installed

GONE = "/usr/bin/python3.11"
REVIVED = f"uv venv --allow-existing --python 3.11 {PREFIX}"


def lost() -> Installed:
    return env(lost_python=GONE)


def test_a_venv_without_its_interpreter_is_an_error() -> None:
    finding = one(interpreter_gone, lost())
    assert finding.severity is Severity.ERROR
    assert finding.message == (f"the interpreter of {PREFIX} is gone, nothing of it can be started")
    assert finding.evidence == (f"{PREFIX}/bin/python leads to {GONE}, where nothing lies",)


def test_a_venv_with_one_is_silent() -> None:
    assert found(interpreter_gone, env()) == []


def test_the_interpreter_comes_before_every_package() -> None:
    other = Finding(
        code="EB106",
        severity=Severity.WARNING,
        subject="x",
        message="x",
        fixes=(Install(requirements=("numpy==2.0",)),),
    )
    first, second = repair_plan([other, one(interpreter_gone, lost())], Ground(installed=lost()))
    assert first.text == REVIVED
    assert second.command[:3] == ("uv", "pip", "install")
