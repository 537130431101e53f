"""Typed access to the tables of a file, with every problem collected and none raised at once."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from envbuild.core.redact import redact_text
from envbuild.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envbuild.core.project.positions import KeyPath, Positions

_E = TypeVar("_E", bound=Enum)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST = 80
_MOST = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong in a file; ``where`` is a key path, or empty."""

    file: str
    line: int | None
    where: str
    message: str
    hint: str | None = None

    @property
    def place(self) -> str:
        """The file and the line, as editors and terminals link them."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.where, self.message) if part)


class Problems:
    """The problems found so far in one file and in the files it names."""

    def __init__(self, file: str, positions: Positions) -> None:
        self.file = file
        self._positions = positions
        self._found: list[Problem] = []

    def line(self, path: KeyPath) -> int:
        """Return the line of a key path in the file."""
        return self._positions.line(path)

    def add(self, path: KeyPath, message: str, *, hint: str | None = None) -> None:
        """Record a problem at a key path of the file."""
        self.record(
            Problem(
                file=self.file,
                line=self.line(path),
                where=key_text(path),
                message=message,
                hint=hint,
            )
        )

    def record(self, problem: Problem) -> None:
        """Record a problem that stands elsewhere; credentials of addresses are dropped."""
        hint = None if problem.hint is None else redact_text(problem.hint)
        self._found.append(replace(problem, message=redact_text(problem.message), hint=hint))

    def raise_any(self) -> None:
        """Raise one InputError with all problems, if there are any."""
        if not self._found:
            return
        found = sorted(self._found, key=lambda p: (p.file != self.file, p.file, p.line or 0))
        lines = [str(problem) for problem in found[:_MOST]]
        if len(found) > 1:
            lines.insert(0, f"{len(found)} problems in `{self.file}`")
        if len(found) > _MOST:
            lines.append(f"... and {len(found) - _MOST} more")
        raise InputError("\n".join(lines), hint=_hints(found[:_MOST]))


def _hints(found: list[Problem]) -> str | None:
    """Join the hints; with more than one problem each says which line it is for."""
    if len(found) == 1:
        return found[0].hint
    hints = [(problem, problem.hint) for problem in found if problem.hint]
    texts = [f"{problem.place}: {hint}" for problem, hint in hints]
    return "\n".join(dict.fromkeys(texts)) or None


def key_text(path: KeyPath) -> str:
    """Write a key path as TOML does, with indexes in brackets: ``a.b.gpus[1]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _BARE_KEY.fullmatch(part) else f'"{part}"'
            text += f".{key}" if text else key
    return text


def shown(value: object) -> str:
    """Describe a value for a message: `text`, the number `12.8`, a list, a table."""
    if isinstance(value, str):
        return f"`{value if len(value) <= _LONGEST else value[:_LONGEST] + '…'}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"the number `{value}`"
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, dict) else f"`{value}`"


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return ``; did you mean `x`?`` for the nearest choice, or nothing."""
    close = get_close_matches(word, list(choices), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def listed(words: Iterable[str]) -> str:
    """Write words as `a`, `b` or `c`."""
    quoted = [f"`{word}`" for word in words]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


class Fields:
    """One table, read key by key; a key of the wrong type is a problem and reads as absent."""

    def __init__(self, table: Mapping[str, Any], path: KeyPath, problems: Problems) -> None:
        self.raw = table
        self.path = path
        self.problems = problems

    def problem(self, *keys: str | int, message: str, hint: str | None = None) -> None:
        """Record a problem at a key below this table."""
        self.problems.add((*self.path, *keys), message, hint=hint)

    def only(self, known: tuple[str, ...]) -> None:
        """Record every key that is not known."""
        for key in self.raw:
            if key not in known:
                guess = nearest(key, known) or f", wanted one of {listed(known)}"
                self.problem(key, message=f"found the unknown key `{key}`{guess}")

    def text(self, key: str) -> str | None:
        """Return a text, stripped; None when it is absent or no text."""
        value = self.raw.get(key)
        if value is None:
            return None
        if isinstance(value, str) and value.strip():
            return value.strip()
        hint = None
        if isinstance(value, int | float) and not isinstance(value, bool):
            hint = f'{key} = "{value}"'
        what = "an empty text" if isinstance(value, str) else shown(value)
        self.problem(key, message=f"found {what}, wanted a text", hint=hint)
        return None

    def texts(self, key: str) -> tuple[tuple[int, str], ...]:
        """Return the texts of a list with their index; what is no text is left out."""
        value = self.raw.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            hint = f'{key} = ["{value}"]' if isinstance(value, str) else None
            self.problem(key, message=f"found {shown(value)}, wanted a list of texts", hint=hint)
            return ()
        return tuple(item for item in enumerate(value) if self._is_text(key, *item))

    def _is_text(self, key: str, index: int, item: object) -> bool:
        if isinstance(item, str) and item.strip():
            return True
        what = "an empty text" if isinstance(item, str) else shown(item)
        number = isinstance(item, int | float) and not isinstance(item, bool)
        hint = f'put the number in quotes: "{item}"' if number else None
        self.problem(key, index, message=f"found {what}, wanted a text", hint=hint)
        return False

    def choice(self, key: str, kind: type[_E], default: _E) -> _E:
        """Return a member of an enum by its value."""
        value = self.text(key)
        if value is None:
            return default
        for member in kind:
            if member.value == value:
                return member
        values = tuple(str(member.value) for member in kind)
        guess = nearest(value, values)
        self.problem(key, message=f"found `{value}`, wanted {listed(values)}{guess}")
        return default

    def table(self, key: str) -> Fields:
        """Return a table below this one, empty when it is absent or no table."""
        value = self.raw.get(key, {})
        if not isinstance(value, dict):
            self.problem(key, message=f"found {shown(value)}, wanted a table")
            value = {}
        return Fields(value, (*self.path, key), self.problems)
