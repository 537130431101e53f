"""Text that a POSIX shell reads back unchanged: words, comments and here-documents."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def quote(text: str) -> str:
    """Return the text as one word; raises ValueError for NUL, which no word can hold."""
    if "\0" in text:
        raise ValueError("found NUL in a word for the shell")
    return text if _PLAIN.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


def assignment(name: str, value: str) -> str:
    """Return the line that sets a variable; raises ValueError for what is no name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"`{name}` is no name of a variable")
    return f"{name}={quote(value)}"


def comment(text: str) -> str:
    """Return the text as one line of comment, whatever it holds."""
    words = _CONTROL.sub(" ", text).strip()
    return f"# {words}" if words else "#"


def here_document(command: str, text: str) -> str:
    """Return a command that is given the text on its standard input, to the byte.

    The text ends with a newline, or is empty. The word that ends it occurs nowhere in it.
    """
    if "\0" in text or (text and not text.endswith("\n")):
        raise ValueError("wanted text without NUL that ends with a newline")
    word = "END_OF_FILE"
    lines = set(text.split("\n"))
    while word in lines:
        word += "_"
    return f"{command} <<'{word}'\n{text}{word}\n"
