"""Text that was written by others, made safe to show."""

from __future__ import annotations


def printable(text: str) -> str:
    """Replace control characters: text of an index page must not steer a terminal."""
    return "".join(c if c == "\n" or c.isprintable() else "?" for c in text.expandtabs())
