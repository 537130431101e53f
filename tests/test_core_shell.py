"""Any text reaches a shell unchanged: as a word, as a here-document, as a comment."""

from __future__ import annotations

import subprocess
from shutil import which

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envbuild.core.script.shell import assignment, comment, here_document, quote

SHELL = which("dash") or "/bin/sh"
TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=60)
HOSTILE = st.lists(
    st.sampled_from(
        ["'", '"', "$(id)", "`id`", "\\", "\n", "\r", " ", "-n", "*", "~", "#", "!", ";"]
    )
).map("".join)


def read_by_shell(script: str) -> bytes:
    return subprocess.run([SHELL], input=script.encode(), check=True, capture_output=True).stdout


@settings(max_examples=60)
@given(st.lists(TEXT | HOSTILE, min_size=1, max_size=8))
def test_a_word_comes_back_to_the_byte(texts: list[str]) -> None:
    words = " ".join(quote(text) for text in texts)
    assert read_by_shell(f"printf '%s\\0' {words}") == b"".join(
        text.encode() + b"\0" for text in texts
    )


@settings(max_examples=30)
@given(TEXT | HOSTILE)
def test_a_variable_holds_the_text(text: str) -> None:
    script = f"{assignment('X', text)}\nprintf '%s' \"$X\""
    assert read_by_shell(script) == text.encode()


@settings(max_examples=30)
@given(st.lists(TEXT | HOSTILE | st.sampled_from(["END_OF_FILE", "END_OF_FILE_"]), max_size=5))
def test_a_here_document_comes_back_to_the_byte(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    assert read_by_shell(here_document("cat", text)) == text.encode()


@settings(max_examples=30)
@given(TEXT | HOSTILE)
def test_a_comment_runs_nothing(text: str) -> None:
    assert read_by_shell(f"{comment(text)}\necho done") == b"done\n"
    assert comment(text).count("\n") == 0


def test_plain_words_stay_readable() -> None:
    assert quote("lockfiles/pylock.cu128.toml") == "lockfiles/pylock.cu128.toml"
    assert quote("10.0;12.0") == "'10.0;12.0'"
    assert quote("") == "''"
    assert quote("it's") == "'it'\\''s'"


def test_what_no_shell_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")
    with pytest.raises(ValueError, match="no name of a variable"):
        assignment("A;id", "x")
    with pytest.raises(ValueError, match="ends with a newline"):
        here_document("cat", "no newline")
