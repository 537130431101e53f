"""What is made of a failed uv."""

from __future__ import annotations

from subprocess import CompletedProcess

import pytest

from envbuild.errors import InputError, WorldError
from envbuild.model.resolution import Unavailable
from envbuild.world.uvfailure import failure, refuse_unread

NOT_CACHED = (
    "error: Failed to download `six @ https://a.example/six-1.17.0-py2.py3-none-any.whl`\n"
    "  cause: Network connectivity is disabled, but the requested data wasn't found in the cache"
    " for: `https://a.example/six-1.17.0-py2.py3-none-any.whl`\n"
)


def test_an_address_that_is_not_in_the_cache_is_unavailable_offline() -> None:
    answer = CompletedProcess([], 2, "", NOT_CACHED)
    assert isinstance(failure(answer, offline=True, scratch="/s"), Unavailable)


def test_a_cache_that_cannot_be_made_has_a_hint() -> None:
    answer = CompletedProcess([], 2, "", "error: Failed to initialize cache at `/proc/x`\n")
    with pytest.raises(WorldError) as caught:
        failure(answer, offline=False, scratch="/s")
    assert "UV_CACHE_DIR" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "before",
    [
        "error: Failed to parse: `pyproject.toml`\n  cause: ",
        "warning: Failed to parse `pyproject.toml` during settings discovery:\n  ",
        "error: Failed to parse: `/s/project/pyproject.toml`\n  cause: ",
    ],
)
def test_a_project_that_uv_cannot_read(before: str) -> None:
    said = (
        f"{before}TOML parse error at line 8, column 13\n    |\n  8 | link-mode = 4\n"
        "    |             ^\n  wanted string or table\n"
    )
    with pytest.raises(InputError) as caught:
        refuse_unread(said, scratch="/s")
    assert caught.value.message == (
        "`link-mode = 4` in pyproject.toml is not what uv takes: wanted string or table"
    )


def test_the_file_of_another_project_is_not_the_users() -> None:
    said = (
        "error: Failed to parse: `/cache/six/pyproject.toml`\n  cause: TOML parse error at line 8"
    )
    refuse_unread(said, scratch="/s")
    refuse_unread("warning: `six==1.0` is yanked\n", scratch="/s")
