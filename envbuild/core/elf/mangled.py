"""The readable part of a mangled C++ name, where it is simple."""

from __future__ import annotations

import re

_START = re.compile(r"_Z(?:NK?|TV|TI|TS)?N?")
_LENGTH = re.compile(r"[1-9]\d{0,2}")
_CONSTRUCTOR = re.compile(r"[CD][12]")


def readable(symbol: str) -> str | None:
    """Return ``c10::SymBool::guard_bool`` for its mangled name, without what it takes.

    None for a C name, and where the name does not begin with plain words.
    """
    start = _START.match(symbol)
    if start is None:
        return None
    words: list[str] = []
    at = start.end()
    while (length := _LENGTH.match(symbol, at)) is not None:
        at = length.end() + int(length[0])
        word = symbol[length.end() : at]
        if len(word) < int(length[0]) or not word.isidentifier():
            return None
        words.append(word)
    if words and _CONSTRUCTOR.match(symbol, at):
        words.append(words[-1] if symbol[at] == "C" else f"~{words[-1]}")
    return "::".join(words) or None
