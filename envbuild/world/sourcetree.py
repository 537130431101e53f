"""Read the files of a source tree, to tell whether a wheel was built from the same."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.core.buildkey import SourceFile, is_source, tree_sha256
from envbuild.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 20


def source_tree_sha256(folder: Path) -> str:
    """Return the hash of a folder's sources; raise WorldError where they cannot be read."""
    try:
        return tree_sha256(_files(folder))
    except OSError as error:
        name = error.filename or folder
        raise WorldError(f"`{name}` cannot be read: {error.strerror or error}") from None


def _files(folder: Path) -> Iterator[SourceFile]:
    for top, folders, names in os.walk(folder, onerror=_raise):
        links = [name for name in folders if Path(top, name).is_symlink()]
        folders[:] = [name for name in folders if is_source(name) and name not in links]
        for name in (*names, *links):
            path = Path(top, name)
            if is_source(name):
                yield _file(path, path.relative_to(folder).as_posix())


def _raise(error: OSError) -> None:
    raise error


def _file(path: Path, name: str) -> SourceFile:
    if path.is_symlink():
        address = os.fsencode(path.readlink())
        return SourceFile(path=name, sha256=hashlib.sha256(address).hexdigest(), link=True)
    if not path.is_file():  # a socket or a device is no source
        return SourceFile(path=name, sha256="")
    digest = file_sha256(path)
    return SourceFile(path=name, sha256=digest, executable=bool(path.stat().st_mode & 0o100))


def file_sha256(path: Path) -> str:
    """Return the hash of a file's bytes; raise OSError where it cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
