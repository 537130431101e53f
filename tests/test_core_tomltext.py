"""TOML of others: whatever is wrong with it is one error, and soon said."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spending import spent

from envbuild.core.tomltext import TomlError, parse_toml


def test_what_is_toml() -> None:
    assert parse_toml('a.b = 1\n[t]\nx = "y"\n') == {"a": {"b": 1}, "t": {"x": "y"}}


def test_long_lines_are_read() -> None:
    files = ", ".join(f'{{ url = "https://h.org/{n}.whl", size = {n} }}' for n in range(1000))
    assert len(parse_toml(f"wheels = [{files}]")["wheels"]) == 1000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "Invalid value"),
        ("a = " + "[" * 1000, "too many brackets in one another"),
        ("a = " + "[" * 900_000, "too many brackets in one another"),
        ("a = " + "[" * 10_000_000, "a line of more than 1,000,000 characters"),
        ("a = " + "[\n" * 1_000_000, "too many brackets in one another"),
        ("a = " + "{a=" * 300_000, "too many brackets in one another"),
        ("[" * 900_000, "Invalid initial character"),
        ("a = " + "9" * 4301, "a number or a dotted key without end"),
        ("a = " + "9" * 900_000, "a number or a dotted key without end"),
        ("a = " + "9_" * 400_000, "a number or a dotted key without end"),
        ("a." * 400_000 + "a = 1", "a number or a dotted key without end"),
        ("[" + "a . " * 100_000 + "a]", "a number or a dotted key without end"),
        ("a = 0x" + "f" * 100 + "\nb = " + "1" * 4300 + "0", "without end"),
    ],
)
def test_what_is_none(text: str, said: str) -> None:
    with spent(), pytest.raises(TomlError, match=said):
        parse_toml(text)


@given(st.text(alphabet="a.=[]{}\"'\n 1_#,\\", max_size=60))
def test_any_text(text: str) -> None:
    with suppress(TomlError):
        assert isinstance(parse_toml(text), dict)
