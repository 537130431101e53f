"""Make a virtual environment, or keep the one that fits; nothing else is ever removed."""

from __future__ import annotations

import os
import shutil
from enum import Enum
from pathlib import Path

from envbuild.core.pyvenv import parse_pyvenv
from envbuild.errors import InputError, WorldError
from envbuild.model.installed import EnvironmentKind
from envbuild.world.environment import read_environment
from envbuild.world.venvlock import LOCK, LOCK_OF_UV

BASE_PTH = "_envbuild_base.pth"
"""Leads to the packages of a base that is an environment."""

_CONFIG = "pyvenv.cfg"
_PARTS = ("bin", "lib", "lib64", "include", "share", _CONFIG, "CACHEDIR.TAG", ".gitignore")
_LOCKS = frozenset({LOCK, LOCK_OF_UV})
_OURS = frozenset({*_PARTS, *_LOCKS, ".envbuild-unfinished"})


class VenvState(Enum):
    """What lies where the environment is to be."""

    ABSENT = "absent"
    FITTING = "fitting"
    UNFIT = "unfit"


def venv_state(folder: Path, python: str, *, sees_base: bool = False) -> VenvState:
    """Tell whether a folder holds an environment of a Python minor.

    With ``sees_base`` it has to see the packages of its interpreter.

    Raises InputError where it holds anything but an environment.
    """
    names = refuse_stranger(folder)
    if names <= _LOCKS:
        return VenvState.ABSENT
    # Without its configuration the making was broken off.
    fits = _CONFIG in names and _fits(folder, python, sees_base=sees_base)
    return VenvState.FITTING if fits else VenvState.UNFIT


def refuse_stranger(folder: Path) -> set[str]:
    """Return the names in a folder; raise InputError where it holds anything but an environment."""
    try:
        names = {entry.name for entry in os.scandir(folder)}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise InputError(
            f"`{folder}` cannot be read as a folder: {error.strerror}",
            hint="`--venv DIR` names the environment",
        ) from None
    if _CONFIG in names or names <= _OURS:
        return names
    raise InputError(
        f"`{folder}` is no virtual environment and not empty, wanted one or nothing there",
        hint="`--venv DIR` names the environment",
    )


def clear(folder: Path) -> None:
    """Empty an environment but for its locks, its configuration last: it says what the rest is."""
    entries = [entry for entry in os.scandir(folder) if entry.name not in _LOCKS]
    for entry in sorted(entries, key=lambda one: one.name == _CONFIG):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            Path(entry.path).unlink()


def _fits(folder: Path, python: str, *, sees_base: bool) -> bool:
    try:
        text = (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    config = parse_pyvenv(text)
    has_site = any(folder.glob(f"lib/python{python}/site-packages"))
    return (
        ".".join(config.version.split(".")[:2]) == python
        and (config.system_site or not sees_base)
        and has_site
        and (folder / "bin" / "python").exists()  # follows the link
    )


def refuse_absent(base: str) -> None:
    """Raise WorldError where the interpreter of a base is not on this machine."""
    if not os.access(base, os.X_OK):
        raise WorldError(
            f"the interpreter of the base, `{base}`, is not there",
            hint="run this in the base, or name its interpreter in ENVBUILD_BASE_PYTHON",
        )


def show_base(base: str, folder: Path, python: str) -> None:
    """Let an environment see the packages of a base that is an environment itself.

    An environment made from another one sees those of the interpreter below it alone.
    """
    installed = read_environment(base, environ={})
    if installed.kind is not EnvironmentKind.VENV:
        return
    text = "".join(f"{site}\n" for site in installed.own_sites)
    site = folder / "lib" / f"python{python}" / "site-packages"
    (site / BASE_PTH).write_text(text, encoding="utf-8")
