"""Lines of the keys and array items of a TOML text, which no TOML reader tells.

The scan is tolerant: it takes any text, and on a text that is no TOML it finds less.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    KeyPath: TypeAlias = tuple[str | int, ...]

# A group that repeats costs memory each time it does: each takes as much at once as it can.
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY = re.compile(
    r"""[ \t]*(?:([A-Za-z0-9_-]+)|"([^"\\\n]*(?:\\.[^"\\\n]*)*)"|'([^'\n]*)')[ \t]*"""
)
_STRING = re.compile(
    r'''"""[^"\\]*(?:(?:\\.|""?(?!"))[^"\\]*)*"{3,5}|\'\'\'.*?'{3,5}'''
    r"""|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\n]*\'""",
    re.DOTALL,
)
_BARE = re.compile(r"[^,\]}\n#]*")
_REST = re.compile(r"[^\n]*\n?")
_DEEPEST = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Positions:
    """The line, from 1, of each key path of a TOML text; array items are paths with an index."""

    lines: Mapping[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """Return the line of a path, or of its nearest parent; 1 when there is none."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def toml_positions(text: str) -> Positions:
    """Find the line of every key path; a key written with escapes is left to its parent."""
    scanner = _Scanner(text)
    scanner.scan()
    return Positions(lines=scanner.found)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[KeyPath, int] = {}
        self._newlines = [match.start() for match in re.finditer("\n", text)]
        self._arrays: dict[KeyPath, int] = {}

    def scan(self) -> None:
        table: KeyPath = ()
        while self._skip(_BLANK):
            if self._next() == "[":
                table = self._header()
            else:
                self._pair(table, 0)

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        """Skip what the pattern takes here; say whether anything follows."""
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.at < len(self.text)

    def _mark(self, path: KeyPath, at: int) -> None:
        line = min(bisect_left(self._newlines, at), len(self._newlines)) + 1
        self.found[path] = line
        path = path[:-1]
        while path and path not in self.found:  # what is found has its parents found
            self.found[path] = line
            path = path[:-1]

    def _keys(self) -> tuple[str, ...]:
        """Read a dotted key, or the first parts of a very long one; empty when none stands here."""
        keys: list[str] = []
        while match := _KEY.match(self.text, self.at):
            self.at = match.end()
            if len(keys) < _DEEPEST:
                keys.append(next(part for part in match.groups() if part is not None))
            if self._next() != ".":
                break
            self.at += 1
        return tuple(keys)

    def _header(self) -> KeyPath:
        """Read ``[a.b]`` or ``[[a.b]]`` and return the path of the table it opens."""
        start = self.at
        double = self.text.startswith("[[", start)
        self.at += 2 if double else 1
        keys = self._keys()
        self._skip(_REST)
        path = self._resolved(keys, double=double)
        if path:
            self._mark(path, start)
        return path

    def _resolved(self, keys: tuple[str, ...], *, double: bool) -> KeyPath:
        """Put the current index after each array of tables on the way."""
        path: KeyPath = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            if double and position == len(keys) - 1:
                self._arrays[path] = self._arrays.get(path, -1) + 1
            if path in self._arrays:
                path = (*path, self._arrays[path])
        return path

    def _pair(self, table: KeyPath, depth: int) -> None:
        start = self.at
        keys = self._keys()
        if not keys or self._next() != "=":
            self._skip(_REST)
            return
        self.at += 1
        path = (*table, *keys)
        self._mark(path, start)
        self._value(path, depth)

    def _value(self, path: KeyPath, depth: int) -> None:
        self._skip(_SPACE)
        first = self._next()
        if first == "[" and depth < _DEEPEST:
            self._array(path, depth + 1)
        elif first == "{" and depth < _DEEPEST:
            self._inline(path, depth + 1)
        elif first in {'"', "'"} and _STRING.match(self.text, self.at):
            self._skip(_STRING)
        else:
            self._skip(_BARE)

    def _array(self, path: KeyPath, depth: int) -> None:
        self.at += 1
        index = 0
        while self._skip(_BLANK) and self._next() != "]":
            before = self.at
            if self._next() == ",":
                index += 1
            else:
                self._mark((*path, index), before)
                self._value((*path, index), depth)
            self.at = max(self.at, before + 1)
        self.at += 1

    def _inline(self, path: KeyPath, depth: int) -> None:
        self.at += 1
        while self._skip(_BLANK) and self._next() != "}":
            if self._next() == ",":
                self.at += 1
            else:
                self._pair(path, depth)
        self.at += 1
