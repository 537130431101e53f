"""Members of a wheel that stays on its host."""

from __future__ import annotations

from contextlib import closing

import pytest
from index import LocalIndex, local_wheel

from envbuild.errors import WorldError
from envbuild.world.http import HttpClient
from envbuild.world.remotezip import open_remote

MADE = local_wheel("a", "1", files={"a/big.txt": bytes(range(256)) * 20, "a/empty": b""})


def test_a_wheel_that_changes_while_it_is_read() -> None:
    with LocalIndex() as index, closing(HttpClient()) as client:
        index.put("/a.whl", MADE.data)
        opened = open_remote(client, f"{index.base}/a.whl", tail=100)
        assert opened is not None
        content = {member.name: opened.read(member) for member in opened.members}
        assert content["a/big.txt"] == bytes(range(256)) * 20
        assert content["a/empty"] == b""
        assert content["a-1.dist-info/METADATA"] == MADE.metadata
        index.put("/a.whl", MADE.data + b"more")
        with pytest.raises(WorldError, match="changed while it was read"):
            opened.read(opened.members[0])
        del index.resources["/a.whl"]
        with pytest.raises(WorldError, match="changed while it was read"):
            opened.read(opened.members[0])
        assert open_remote(client, f"{index.base}/a.whl") is None
