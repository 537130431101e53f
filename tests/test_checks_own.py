"""EB9: what envbuild's own commands left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkvalues import env, found, one
from envmaker import EnvMaker

from envbuild.checks.own import unfinished_sync
from envbuild.model.installed import UNFINISHED

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sync_that_was_broken_off_is_said(tmp_path: Path) -> None:
    made = EnvMaker(tmp_path).venv()
    installed = made.read()
    assert found(unfinished_sync, installed) == []
    prefix = installed.prefix
    (type(tmp_path)(prefix) / UNFINISHED).touch()
    finding = one(unfinished_sync, made.read())
    assert finding.message == "`envbuild sync` is at work here, or was broken off"
    assert finding.evidence == (f"{prefix}/{UNFINISHED}",)


def test_an_environment_that_no_sync_was_in_is_silent() -> None:
    assert found(unfinished_sync, env()) == []
