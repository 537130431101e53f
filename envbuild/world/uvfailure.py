"""What it means that uv failed: no solution, no network, or something to mend."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text, redact_url
from envbuild.core.uvreason import NO_SOLUTION, contradiction, refused_by, without_chatter
from envbuild.errors import InputError, WorldError
from envbuild.model.resolution import Unavailable, Unsatisfiable

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_OFFLINE = (
    "network connectivity is disabled",
    "was not found in the cache",
    "there is no version of",  # of what a version is pinned, uv says no more
    "--offline",
)
_UNREACHED = (
    "Request failed",
    "Failed to fetch",
    "error sending request",
    "operation timed out",
    "Could not resolve host",
    "unable to access",
)
_UNREAD = re.compile(
    r"Failed to parse:? `pyproject\.toml`.*\n.*TOML parse error at line \d+, column \d+\n"
    r"\s*\|\n\s*\d+ \| (?P<line>.*)\n\s*\|.*\n(?P<why>.*)"
)
_NOT_AN_INDEX = ("unexpected JSON", "Unsupported `Content-Type`", "unexpected HTML")
_MIRROR = "name a mirror in [tool.envbuild.indexes]"
_CREDENTIALS = (
    "put `USER:PASSWORD@` before the host in `pypi` of [tool.envbuild.indexes] or in"
    " ENVBUILD_INDEX_PYPI, or use ~/.netrc"
)
_HINTS = (
    ("uv.lock", "delete `uv.lock` and run `envbuild lock`"),
    ("Python interpreter", "can this user run the Python that envbuild runs in?"),
    ("No space left on device", "free space in the temporary folder and in UV_CACHE_DIR"),
    ("Failed to initialize cache", "set UV_CACHE_DIR to a folder that can be written to"),
    ("Permission denied", "set UV_CACHE_DIR and TMPDIR to folders that can be written to"),
    ("Read-only file system", "set UV_CACHE_DIR and TMPDIR to folders that can be written to"),
    ("Failed to build", "name a version that has a wheel, or list it in [tool.envbuild.build]"),
)


def failure(
    answer: CompletedProcess[str], *, offline: bool, scratch: str
) -> Unsatisfiable | Unavailable:
    """Return why uv found nothing; raises WorldError where it could not even look.

    ``scratch`` is the folder that the user never sees named.
    """
    text = redact_text(without_chatter(answer.stderr)).replace(f"{scratch}/project/", "")
    text = text.replace(scratch, "")
    if offline and any(sign in text.lower() for sign in _OFFLINE):
        return Unavailable(reason=contradiction(text))
    if NO_SOLUTION in text:
        _raise_if_refused(text)
        return Unsatisfiable(reason=contradiction(text))
    raise _world_error(answer.returncode, text)


def refuse_unread(stderr: str, *, scratch: str) -> None:
    """Raise InputError where uv cannot read the project, or goes on without its settings."""
    found = _UNREAD.search(redact_text(stderr).replace(f"{scratch}/project/", ""))
    if found is not None:
        raise InputError(
            f"`{found['line'].strip()}` in pyproject.toml is not what uv takes:"
            f" {found['why'].strip().rstrip('.')}",
            hint="https://docs.astral.sh/uv/reference/settings/ lists the keys of [tool.uv]",
        )


def _raise_if_refused(text: str) -> None:
    """Raise where an index keeps a package back, which uv takes for its absence."""
    refused = refused_by(text)
    if refused is not None:
        raise WorldError(
            f"`{redact_url(refused[0])}` answered {refused[1]}, wanted the pages of packages",
            hint=_CREDENTIALS,
        )


def _world_error(code: int, text: str) -> WorldError:
    said = _one_line(text)
    if code < 0:
        return WorldError(
            f"uv was ended by {_signal_name(-code)}{f': {said}' if said else ''}",
            hint="is there enough memory? run the command again",
        )
    if any(sign in text for sign in _UNREACHED):
        return WorldError(
            f"uv could not reach an index: {said}", hint=f"check the network or proxy, or {_MIRROR}"
        )
    if any(sign in text for sign in _NOT_AN_INDEX):
        return WorldError(
            f"what uv was served is no package index: {said}", hint=f"try again, or {_MIRROR}"
        )
    hint = next((hint for sign, hint in _HINTS if sign in text), None)
    return WorldError(
        f"uv failed: {said or f'it ended with exit code {code} and said nothing'}",
        hint=hint or "run `uv lock` in the project's folder to see whether uv alone fails too",
    )


def _one_line(text: str) -> str:
    """Return uv's chain of causes as one line, without a full stop at its end."""
    parts = [line.strip().removeprefix("cause: ") for line in text.splitlines()]
    return ": ".join(part.rstrip(".") for part in parts if part and not part.startswith("hint:"))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
