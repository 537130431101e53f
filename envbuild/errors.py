"""The errors that end a command, each with its exit code and a hint.

A message says what was found and what was wanted; a hint says what to type next.
"""

from __future__ import annotations

from typing import ClassVar


class EnvbuildError(Exception):
    """Base of every expected failure; the command line prints it and exits with its code."""

    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RefusedError(EnvbuildError):
    """The answer is no: nothing fits the request, or a lock is stale (exit code 1)."""

    exit_code = 1


class InputError(EnvbuildError):
    """The user's own input is wrong (exit code 2)."""

    exit_code = 2


class WorldError(EnvbuildError):
    """The world failed: uv, an index, the network, a disk (exit code 3)."""

    exit_code = 3
