"""The table of a lock that was edited by hand: refused by the key that is wrong, or harmless."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_core_pylock import LOCK, TARGET

from envbuild.core.lockvalues import LockValueError, check_lock_table
from envbuild.core.pylock import read_target_lock, render_pylock
from envbuild.errors import InputError

COMMIT = "0" * 40
TABLE: dict[str, Any] = {
    "target": "cu128",
    "platform": "linux-x86_64",
    "gpus": ["B200"],
    "capabilities": ["10.0", "9.0a"],
    "cuda": "12.8",
    "glibc": "2.31",
    "incomplete": ["torch-scatter==2.1.2+pt27cu128"],
    "unhashed": {"torch-scatter": "https://data.pyg.org/whl/torch_scatter-2.1.2%2Bpt27cu128.whl"},
    "base": "nvcr.io/nvidia/pytorch:25.05-py3",
    "base-python": "/opt/a folder/bin/python",
    "frozen": ["torch==2.8.0a0+nv25.05"],
    "frozen-torch": "2.8.0a0+nv25.05",
    "frozen-unversioned": ["odd"],
    "frozen-extras": {"numpy[test]": ["pytest"]},
    "builds": [],
}
BUILD: dict[str, Any] = {
    "name": "pointops",
    "version": "1.0",
    "path": "libs/point ops",
    "git": f"ssh://git@github.com/a/b.git@{COMMIT}#subdirectory=libs/pointops",
    "url": "https://files.pythonhosted.org/packages/74/SharedArray-3.2.1.tar.gz",
    "sha256": "0" * 64,
    "requires": ["setuptools", "ninja>=1.11 ; python_version < '3.12'"],
}
INJECTED = "a\nRUN touch x"


def test_what_envbuild_writes_is_taken() -> None:
    check_lock_table({**TABLE, "builds": [BUILD]})


@pytest.mark.parametrize("key", TABLE)
@pytest.mark.parametrize("value", [1, True, [1], [["x"]], {"a": 1}, INJECTED, [INJECTED]])
def test_another_value_is_refused_by_its_key(key: str, value: object) -> None:
    with pytest.raises(LockValueError, match=re.escape(f"`{key}")):
        check_lock_table({**TABLE, key: value})


@pytest.mark.parametrize("key", BUILD)
@pytest.mark.parametrize("value", [1, True, [1], {"a": 1}, INJECTED, [INJECTED], "", "$(id)"])
def test_another_value_of_a_build_is_refused(key: str, value: object) -> None:
    if key == "path" and value == "$(id)":
        value = "~/x"  # while a folder may be called $(id), and is quoted
    with pytest.raises(LockValueError, match=rf"`builds\.{key}`"):
        check_lock_table({**TABLE, "builds": [{**BUILD, key: value}]})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("git", f"--upload-pack=id@{COMMIT}"),
        ("git", f"ext::sh -c id@{COMMIT}"),
        ("git", "https://github.com/a/b@main"),
        ("git", f"https://github.com/a/b@{COMMIT}#subdirectory=../../home"),
        ("git", f"https://github.com/a/b@{COMMIT}#subdirectory=/home"),
        ("url", "https://example.org/machine.py"),
        ("url", "https://example.org/a b.tar.gz"),
        ("url", "ftp://example.org/a-1.tar.gz"),
        ("path", "/etc"),
    ],
)
def test_a_source_that_leads_elsewhere_is_refused(key: str, value: str) -> None:
    with pytest.raises(LockValueError, match=rf"found `.*` as `builds\.{key}`"):
        check_lock_table({**TABLE, "builds": [{"name": "x", key: value}]})


def test_a_password_is_not_shown() -> None:
    with pytest.raises(LockValueError) as caught:
        check_lock_table({"builds": [{"name": "x", "git": "https://u:secret@example.org/x@main"}]})
    assert "secret" not in str(caught.value)


def test_a_build_without_a_name_is_refused() -> None:
    with pytest.raises(LockValueError, match=r"no `builds\.name`"):
        check_lock_table({"builds": [{"path": "x"}]})


def test_a_lock_with_such_a_value_names_its_path_and_the_key() -> None:
    text = render_pylock(LOCK, TARGET)
    assert 'cuda = "12.8"' in text
    with pytest.raises(
        InputError, match=r"`x\.toml` is no lock file .* found `13` as `cuda`"
    ) as it:
        read_target_lock(text.replace('cuda = "12.8"', "cuda = 13"), path="x.toml")
    assert it.value.hint == "run `envbuild lock` to write it anew"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(), some, max_size=3),
)


def refused(table: dict[str, Any]) -> str | None:
    try:
        check_lock_table(table)
    except LockValueError as error:
        return str(error)
    return None


@given(st.sampled_from(sorted(TABLE)), VALUES)
def test_any_value_is_taken_or_refused(key: str, value: object) -> None:
    message = refused({key: value})
    assert "\n" not in (str(value) if message is None else message)
