"""How a command that ended early says so: as text, JSON or a GitHub annotation."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.errors import InputError, RefusedError
from envbuild.render.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envbuild.errors import EnvbuildError

EXIT_BUG = 70
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a command ended early.

    ``kind`` is ``input``, ``refused``, ``world``, ``bug`` or ``interrupted``.
    """

    kind: str
    message: str
    exit_code: int
    hint: str | None = None


def interrupted(what: str = "nothing was written") -> Failure:
    """Return the failure for Ctrl-C or SIGTERM; ``what`` says how the files were left."""
    return Failure(kind="interrupted", message=f"interrupted: {what}", exit_code=EXIT_INTERRUPTED)


def failure_of(error: EnvbuildError) -> Failure:
    """Return the failure that an expected error stands for."""
    kind = "world"
    if isinstance(error, InputError):
        kind = "input"
    elif isinstance(error, RefusedError):
        kind = "refused"
    return Failure(kind=kind, message=error.message, hint=error.hint, exit_code=error.exit_code)


def bug(error: Exception, *, report: str) -> Failure:
    """Return the failure for an error that nobody expected; ``report`` is the file about it."""
    return Failure(
        kind="bug",
        message=f"a bug in envbuild: {type(error).__name__}: {error}".rstrip(": "),
        hint=f"report it with this file: {report}",
        exit_code=EXIT_BUG,
    )


def failure_text(failure: Failure, *, color: bool = False) -> str:
    """Return the failure for a person: the message, an empty line, the hint."""
    message = printable(redact_text(failure.message))
    if failure.kind == "interrupted":
        return f"{message}\n"
    hint = printable(redact_text(failure.hint or ""))
    bold, red, end = ("\033[1m", "\033[1;31m", "\033[0m") if color else ("", "", "")
    advice = f"\n{bold}hint:{end} {hint}\n" if hint else ""
    return f"{red}error:{end} {message}\n{advice}"


def failure_document(failure: Failure) -> dict[str, object]:
    """Return the failure as plain values, for JSON."""
    return {
        "version": 1,
        "error": {
            "kind": failure.kind,
            "message": failure.message,
            "hint": failure.hint,
            "exit_code": failure.exit_code,
        },
    }


def bug_report(trace: str, *, command: Sequence[str], version: str, python: str) -> str:
    """Return the text of the file that a bug leaves behind, free of credentials."""
    call = shlex.join(["envbuild", *command])
    return redact_text(f"envbuild {version}\nPython {python}\n{call}\n\n{trace}")
