"""Settings of uv that weaken a lock are named."""

from __future__ import annotations

from envbuild.core.uvhazards import replaced_indexes
from envbuild.model.project import IndexUrls


def test_a_mirror_under_a_name_that_a_lock_writes_is_named() -> None:
    index = {"name": "pytorch-cu128", "url": "https://mirror.example.com/torch", "explicit": True}
    (said,) = tuple(replaced_indexes({"tool": {"uv": {"index": [index]}}}, IndexUrls()))
    assert "`https://mirror.example.com/torch` gives way" in said
    mirrored = IndexUrls(pytorch="https://mirror.example.com/torch")
    assert tuple(replaced_indexes({"tool": {"uv": {"index": [index]}}}, mirrored)) == ()
    own = {**index, "url": "https://download.pytorch.org/whl/cu128"}
    assert tuple(replaced_indexes({"tool": {"uv": {"index": [own]}}}, IndexUrls())) == ()
