"""What a lock reads from METADATA."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.wheelmetadata import WheelMetadata, parse_metadata
from envbuild.errors import WorldError

TORCH = """\
Metadata-Version: 2.1
Name: torch
Version: 2.7.0+cu128
Requires-Python: >=3.9.0
Requires-Dist: filelock
Requires-Dist: nvidia-nccl-cu12==2.26.2; platform_system == "Linux"
 and platform_machine == "x86_64"
Provides-Extra: optree
Requires-Dist: optree>=0.13.0; extra == "optree"

Requires-Dist: not-a-requirement
"""


@pytest.mark.parametrize("data", [TORCH, TORCH.encode(), TORCH.replace("\n", "\r\n").encode()])
def test_fields(data: str | bytes) -> None:
    assert parse_metadata(data) == WheelMetadata(
        name="torch",
        version="2.7.0+cu128",
        requires_dist=(
            "filelock",
            'nvidia-nccl-cu12==2.26.2; platform_system == "Linux" and platform_machine == "x86_64"',
            'optree>=0.13.0; extra == "optree"',
        ),
        requires_python=">=3.9.0",
    )


def test_nothing_required_is_known_to_be_nothing() -> None:
    found = parse_metadata("Name: a\nVersion: 1\n")
    assert (found.requires_dist, found.requires_python) == ((), None)


@pytest.mark.parametrize(
    "text", ["", "<html>", "Name: a\n", "Version: 1\n", "Name: \nVersion: 1\n"]
)
def test_what_is_no_metadata(text: str) -> None:
    with pytest.raises(WorldError, match=r"the METADATA of `x\.whl` has no Name or no Version"):
        parse_metadata(text, origin="`x.whl`")


@given(st.binary() | st.binary().map(lambda tail: TORCH.encode() + tail))
def test_any_bytes(data: bytes) -> None:
    with suppress(WorldError):
        assert parse_metadata(data).name
