"""What is made of a failed uv."""

from __future__ import annotations

from subprocess import CompletedProcess

import pytest

from envbuild.errors import WorldError
from envbuild.model.resolution import Unavailable
from envbuild.world.uvfailure import failure

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
