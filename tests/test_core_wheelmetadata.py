"""What a lock reads from METADATA."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import distributions

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.metadata import parse_email

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


def _as_packaging_reads(data: str | bytes) -> WheelMetadata | None:
    raw, _ = parse_email(data)
    name, version = raw.get("name"), raw.get("version")
    if not name or not version:
        return None
    python = (raw.get("requires_python") or "").strip()
    return WheelMetadata(
        name=name.strip(),
        version=version.strip(),
        requires_dist=tuple(" ".join(one.split()) for one in raw.get("requires_dist", ())),
        requires_python=python or None,
    )


def _as_read(data: str | bytes) -> WheelMetadata | None:
    try:
        return parse_metadata(data)
    except WorldError:
        return None


def test_every_installed_distribution_is_read_as_packaging_reads_it() -> None:
    texts = [text for one in distributions() if (text := one.read_text("METADATA")) is not None]
    assert len(texts) > 10
    for text in texts:
        assert _as_read(text) == _as_packaging_reads(text) is not None
        assert _as_read(text.encode()) == _as_packaging_reads(text.encode()) is not None


_LINES = st.sampled_from(
    [
        "Name: a",
        "name:b",
        "Version: 1",
        "VERSION:\t2 ",
        "Requires-Dist: c>=1",
        "Requires-Dist: d;",
        " python_version > '3'",
        "\tx",
        "Requires-Python: >=3.9",
        "Requires-Python:",
        "Summary: f\x0cf",
        "Author: J\u00fcrgen",
        "Name\u00fc: b",
        "From x",
        ": empty",
        "Bad Name: x",
        "no colon",
        "",
    ]
)


@given(
    st.lists(st.tuples(_LINES, st.sampled_from(["\n", "\r\n", "\r"]))),
    st.sampled_from(["", "Name: a\nVersion: 1\n"]),
)
def test_any_lines_are_read_as_packaging_reads_them(
    lines: list[tuple[str, str]], head: str
) -> None:
    text = head + "".join(line + end for line, end in lines)
    assert _as_read(text) == _as_packaging_reads(text)
    assert _as_read(text.encode()) == _as_packaging_reads(text.encode())


def test_what_is_no_utf8_counts_as_absent() -> None:
    data = b"Name: a\nVersion: 1\nRequires-Python: \xff\nRequires-Dist: \xff\nRequires-Dist: b\n"
    assert _as_read(data) == _as_packaging_reads(data) == WheelMetadata(name="a", version="1")
    assert _as_read(b"Name: \xff\nVersion: 1\n") is None
