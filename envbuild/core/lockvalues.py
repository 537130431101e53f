"""Whether the ``[tool.envbuild]`` table of a pylock holds what envbuild writes, and nothing else.

Its values end up in a script, a Dockerfile and the arguments of git: a lock that was edited by
hand is refused here, with the key that is wrong, before anything is made of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import is_normalized_name
from packaging.version import InvalidVersion, Version

from envbuild.core.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GIT = re.compile(
    r"(?:git\+)?((?:https?|ssh|file)://\S+?|git@\S+?)@[0-9a-f]{40}"
    r"(?:#subdirectory=(?P<folder>\S+))?"
)
"""An address and a full commit, with the folder of the source in it."""

IMAGE = re.compile(
    r"[a-z0-9][A-Za-z0-9._-]*(?::\d+)?(?:/[A-Za-z0-9._-]+)*(?::[A-Za-z0-9._-]+)?(?:@sha256:[0-9a-f]{64})?"
)
"""The reference of a container image."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_URL = re.compile(r"(?:https?|file)://[!-~]+")
_SDIST = re.compile(
    r"(?:https?|file)://[!-~]+/[\w.+%!-]+\.(?:tar\.\w+|tgz|zip)(?:#[!-~]*)?", re.ASCII
)


class LockValueError(ValueError):
    """A key of the table holds something else; the message names both."""


def check_lock_table(table: Mapping[str, Any]) -> None:
    """Raise LockValueError for the first value that envbuild would not have written."""
    _check(table, _TABLE, "")
    for build in table.get("builds", ()):
        _check(build, _BUILD, "builds.")
        if "name" not in build:
            raise LockValueError("found no `builds.name`")


def _check(table: object, checks: Mapping[str, Callable[[Any], bool]], where: str) -> None:
    if not isinstance(table, dict):
        raise LockValueError(f"found `{table!s:.60}` as `{where.rstrip('.') or 'tool.envbuild'}`")
    for key, value in table.items():
        check = checks.get(key)
        if check is not None and not check(value):
            shown = redact_text(_CONTROL.sub(" ", str(value)))
            raise LockValueError(f"found `{shown:.60}` as `{where}{key}`")


def leads_out(folder: str) -> bool:
    """Whether a folder of a commit or an archive is none of it."""
    return folder.startswith("/") or ".." in folder.split("/")


def _line(value: object) -> bool:
    return isinstance(value, str) and not _CONTROL.search(value)


def _list(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _map(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, dict) and all(_line(key) and check(one) for key, one in value.items())
    )


def _like(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _version(value: object) -> bool:
    try:
        Version(value if isinstance(value, str) and _line(value) else "")
    except InvalidVersion:
        return False
    return True


def _name(value: object) -> bool:
    return isinstance(value, str) and is_normalized_name(value)


def _pin(value: object) -> bool:
    name, _, version = value.partition("==") if isinstance(value, str) else ("", "", "")
    return _name(name) and _version(version)


def _requirement(value: object) -> bool:
    try:
        Requirement(value if isinstance(value, str) and _line(value) else "")
    except InvalidRequirement:
        return False
    return True


def _git(value: object) -> bool:
    match = GIT.fullmatch(value) if isinstance(value, str) else None
    return match is not None and not leads_out(match["folder"] or "")


def _path(value: object) -> bool:
    return isinstance(value, str) and _line(value) and value[:1] not in ("", "/", "~")


_TABLE: Mapping[str, Callable[[Any], bool]] = {
    "target": _line,
    "platform": _like(re.compile(r"linux-[a-z0-9_]+")),
    "gpus": _list(_line),
    "capabilities": _list(_like(re.compile(r"\d{1,2}\.\d[af]?", re.ASCII))),
    "cuda": _like(re.compile(r"\d{1,2}\.\d", re.ASCII)),
    "glibc": _like(re.compile(r"2\.\d{1,3}", re.ASCII)),
    "incomplete": _list(_pin),
    "unhashed": _map(_like(_URL)),
    "base": _like(IMAGE),
    "base-python": _line,
    "frozen": _list(_line),
    "frozen-torch": _line,
    "frozen-unversioned": _list(_line),
    "frozen-extras": _map(_list(_line)),
    "builds": lambda value: isinstance(value, list),
}
_BUILD: Mapping[str, Callable[[Any], bool]] = {
    "name": _name,
    "version": _version,
    "path": _path,
    "git": _git,
    "url": _like(_SDIST),
    "sha256": _like(re.compile(r"[0-9a-f]{64}")),
    "requires": _list(_requirement),
}
