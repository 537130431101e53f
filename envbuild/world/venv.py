"""Make a virtual environment, or keep the one that fits; nothing else is ever removed."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING

from envbuild.core.pyvenv import parse_pyvenv
from envbuild.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_OF_UV = frozenset(
    {"bin", "lib", "lib64", "include", "share", "pyvenv.cfg", "CACHEDIR.TAG", ".gitignore", ".lock"}
)


class VenvState(Enum):
    """What lies where the environment is to be."""

    ABSENT = "absent"
    FITTING = "fitting"
    UNFIT = "unfit"


def venv_state(folder: Path, python: str) -> VenvState:
    """Tell whether a folder holds an environment of a Python minor.

    Raises InputError where it holds anything but an environment.
    """
    try:
        names = {entry.name for entry in os.scandir(folder)}
    except FileNotFoundError:
        return VenvState.ABSENT
    except OSError as error:
        raise InputError(
            f"`{folder}` cannot be read as a folder: {error.strerror}",
            hint="`--venv DIR` names the environment",
        ) from None
    if not names:
        return VenvState.ABSENT
    if "pyvenv.cfg" not in names:
        if names <= _OF_UV:  # its making was broken off
            return VenvState.UNFIT
        raise InputError(
            f"`{folder}` is no virtual environment and not empty, wanted one or nothing there",
            hint="`--venv DIR` names the environment",
        )
    return VenvState.FITTING if _fits(folder, python) else VenvState.UNFIT


def _fits(folder: Path, python: str) -> bool:
    try:
        text = (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    version = parse_pyvenv(text).version
    has_site = any(folder.glob(f"lib/python{python}/site-packages"))
    return (
        ".".join(version.split(".")[:2]) == python
        and has_site
        and (folder / "bin" / "python").exists()  # follows the link
    )
