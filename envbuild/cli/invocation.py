"""From the arguments of `envbuild lock` to its options, and back to a command to type."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.errors import InputError
from envbuild.render.nextstep import Invocation

if TYPE_CHECKING:
    import argparse

    from envbuild.commands.lockrun import LockOptions

_NAME = re.compile(r"[A-Z0-9]([A-Z0-9._-]*[A-Z0-9])?", re.IGNORECASE)
_MANIFEST = "pyproject.toml"


def lock_options(arguments: argparse.Namespace) -> LockOptions:
    """Return the options; raise InputError where the arguments make no sense."""
    _refuse_contradictions(arguments)
    upgrades = tuple(_upgrade(name, arguments.path) for name in arguments.upgrade)
    directory = project_directory(arguments.path)
    # Only now: what is wrong with the arguments is said at once.
    from envbuild.commands.lockrun import LockOptions  # noqa: PLC0415

    return LockOptions(
        directory=directory,
        targets=tuple(dict.fromkeys(arguments.target)),
        check=arguments.check,
        dry_run=arguments.dry_run,
        upgrade="" in upgrades,
        upgrade_packages=tuple(dict.fromkeys(name for name in upgrades if name)),
        offline=arguments.offline,
        allow_unhashed=arguments.allow_unhashed,
        base_python=arguments.base_python,
        base_root=arguments.base_root,
    )


def project_directory(path: str) -> Path:
    """Return the folder of the project that a path names; raise InputError if there is none."""
    given = Path(path)
    try:
        if given.name == _MANIFEST and given.is_file():
            return given.parent
        if (given / _MANIFEST).is_file():
            return given
        raise _no_project(given)
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}") from error


def invocation(arguments: argparse.Namespace) -> Invocation:
    """Return how the command was called, for the line that says what to type next."""
    source = "" if arguments.source == "auto" else arguments.source
    return Invocation(
        directory=str(project_directory(arguments.path)),
        uv=_uv(),
        again=_command(
            arguments,
            offline=arguments.offline,
            source=source,
            allow_unhashed=arguments.allow_unhashed,
        ),
        complete=_command(arguments, offline=False, source="live", allow_unhashed=False),
    )


def _uv() -> str:
    """Return the word that starts uv: of a uv that is not on PATH, where it lies."""
    beside = Path(sys.executable).with_name("uv")
    if shutil.which("uv") or not beside.is_file():
        return "uv"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)


def _command(
    arguments: argparse.Namespace, *, offline: bool, source: str, allow_unhashed: bool
) -> str:
    words = ["envbuild", "lock", *([] if arguments.path == "." else [arguments.path])]
    words += [word for name in arguments.target for word in ("--target", name)]
    words += ["--offline"] if offline else []
    words += ["--source", source] if source else []
    words += ["--allow-unhashed"] if allow_unhashed else []
    words += [f"--upgrade={name}" if name else "--upgrade" for name in arguments.upgrade]
    return shlex.join(words)


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    pairs = (
        ("--check", arguments.check, "--dry-run", arguments.dry_run),
        ("--check", arguments.check, "--upgrade", bool(arguments.upgrade)),
        ("--offline", arguments.offline, "--source live", arguments.source == "live"),
    )
    for first, has_first, second, has_second in pairs:
        if has_first and has_second:
            raise InputError(
                f"`{first}` and `{second}` exclude each other", hint="leave one of them out"
            )


def _upgrade(name: str, path: str) -> str:
    swallowed = path == "." and (Path(name) / _MANIFEST).is_file() and name != ""
    if not swallowed and (not name or _NAME.fullmatch(name)):
        return re.sub(r"[-_.]+", "-", name).lower()
    raise InputError(
        f"`--upgrade` was followed by `{name}`, wanted the name of a package",
        hint=f"put PATH first: `envbuild lock {shlex.quote(name)} --upgrade`",
    )


def _no_project(given: Path) -> InputError:
    if not given.exists():
        return InputError(
            f"`{given}` does not exist, wanted a project folder or its pyproject.toml",
            hint="`envbuild lock PATH` takes the folder that holds the pyproject.toml",
        )
    if not given.is_dir():
        return InputError(
            f"`{given}` is a file, wanted a project folder or its pyproject.toml",
            hint=f"`envbuild lock {shlex.quote(str(given.parent))}` takes the folder of the file",
        )
    if (given / _MANIFEST).is_dir():
        return InputError(
            f"`{given / _MANIFEST}` is a folder, wanted a file", hint="move the folder away"
        )
    above = next((p for p in given.resolve().parents if (p / _MANIFEST).is_file()), None)
    hint = f"`envbuild lock {shlex.quote(str(above))}` takes the folder above that has one"
    return InputError(
        f"`{given}` has no pyproject.toml, wanted the folder of a project",
        hint=hint if above else "`envbuild lock PATH` takes the folder that holds it",
    )
