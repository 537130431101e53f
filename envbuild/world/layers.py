"""Read the project around an environment: its settings of uv and its lock files."""

from __future__ import annotations

import errno
import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.core.installedrequires import marker_environments
from envbuild.model.installed import EnvironmentKind
from envbuild.model.layers import Layers
from envbuild.world.ownfiles import read_own_files
from envbuild.world.rootfs import Root, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.layerfiles import LayerTexts
    from envbuild.model.installed import Installed

_LIMIT = 64 << 20
_MOST_FILES = 50
_PYLOCK = re.compile(r"pylock(?:\.[^./]+)?\.toml")
_REQUIREMENTS = re.compile(r"requirements(?:[.-][^./]+)?\.txt")
_LOCKFILES = "lockfiles"
_MOST_STEPS = 5
_WORKSPACE = re.compile(r"^\s*\[\s*tool\s*\.\s*uv\s*\.\s*workspace\s*\]", re.MULTILINE)
_SIGNS = ("uv.lock", "pyproject.toml", "pylock.toml", _LOCKFILES)


def read_layers(installed: Installed, *, directory: str | None = None) -> Layers:
    """Read the layers of the project in ``directory``, or of the one that holds the venv.

    A path is absolute inside the environment's root. Without a project every field is empty.
    """
    root = Root(installed.root)
    if directory is not None:
        folder: str | None = _of_workspace(root.inside(directory), root=root)
    else:
        folder = _project(installed, root=root)
    if folder is None:
        return Layers(directory="", owned=False)
    from envbuild.core.layerfiles import layers_of  # noqa: PLC0415 - reads every kind of lock

    owned = directory is not None or installed.prefix == posixpath.join(folder, ".venv")
    layers = layers_of(
        _texts(folder, root=root),
        directory=folder,
        environments=marker_environments(installed),
        owned=owned,
    )
    if not layers.uses_envbuild:
        return layers
    return replace(layers, own=read_own_files(folder, root=root))


def _of_workspace(folder: str, *, root: Root) -> str:
    """Return the folder of the workspace that a project without a lock of its own belongs to."""
    above = folder
    for _ in range(_MOST_STEPS):
        if root.is_file(posixpath.join(above, "uv.lock")):
            text = root.text(posixpath.join(above, "pyproject.toml")) or ""
            return above if above == folder or _WORKSPACE.search(text) else folder
        above = posixpath.dirname(above)
    return folder


def _project(installed: Installed, *, root: Root) -> str | None:
    """Return the folder beside or above a venv that has a project's files, two steps up at most."""
    if installed.kind is not EnvironmentKind.VENV:
        return None
    folder = posixpath.dirname(installed.prefix)
    for candidate in (folder, posixpath.dirname(folder)):
        if any(root.is_there(posixpath.join(candidate, name)) for name in _SIGNS):
            return candidate
        if any(_REQUIREMENTS.fullmatch(name) for name in root.names(candidate)):
            return candidate
    return None


def _texts(folder: str, *, root: Root) -> LayerTexts:
    from envbuild.core.layerfiles import LayerTexts  # noqa: PLC0415

    unreadable: list[tuple[str, str]] = []
    unread: list[tuple[str, str]] = []
    names = tuple(_names(folder, root=root))

    def read(name: str) -> str | None:
        try:
            return root.read(posixpath.join(folder, name), limit=_LIMIT).decode("utf-8")
        except (OSError, ValueError) as error:
            why = reason(error) if isinstance(error, OSError) else "is no UTF-8 text"
            too_large = isinstance(error, OSError) and error.errno == errno.EFBIG
            (unread if too_large else unreadable).append((name, why))
            return None

    def every(pattern: re.Pattern[str]) -> tuple[tuple[str, str], ...]:
        found = (name for name in names if pattern.fullmatch(posixpath.basename(name)))
        return tuple((name, text) for name in found if (text := read(name)) is not None)

    return LayerTexts(
        pyproject=read("pyproject.toml") if "pyproject.toml" in names else None,
        uv_lock=read("uv.lock") if "uv.lock" in names else None,
        pylocks=every(_PYLOCK),
        requirements=every(_REQUIREMENTS),
        unreadable=tuple(unreadable),
        unread=tuple(unread),
    )


def _names(folder: str, *, root: Root) -> Iterator[str]:
    """Give the files that may be layers, by their paths relative to the project."""
    wanted = (
        name
        for name in root.names(folder)
        if name in {"pyproject.toml", "uv.lock"}
        or _PYLOCK.fullmatch(name)
        or _REQUIREMENTS.fullmatch(name)
    )
    yield from list(wanted)[:_MOST_FILES]
    for name in root.names(posixpath.join(folder, _LOCKFILES))[:_MOST_FILES]:
        yield f"{_LOCKFILES}/{name}"
