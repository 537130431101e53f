"""Shared objects below one root, read in small pieces."""

from __future__ import annotations

import os
import posixpath
from collections import OrderedDict
from typing import IO, TYPE_CHECKING

from envbuild.core.elf import Elf, ElfError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from envbuild.world.rootfs import Root

_MOST_OPEN = 128


class OpenFiles:
    """Keeps the last few files open; older ones are closed, and opened again when read."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._open: OrderedDict[str, IO[bytes]] = OrderedDict()

    def descriptor(self, path: str) -> int:
        """Return the open file of a path; raise OSError where it is no regular file."""
        file = self._open.get(path)
        if file is None:
            file = self._open[path] = self._root.open(path)
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)[1].close()
        else:
            self._open.move_to_end(path)
        return file.fileno()

    def close(self) -> None:
        """Close every file."""
        while self._open:
            self._open.popitem()[1].close()


class FileBytes:
    """A file, read in pieces; what the disk refuses is an ElfError."""

    __slots__ = ("_files", "_path", "size")

    def __init__(self, files: OpenFiles, path: str) -> None:
        """Open a file; raise OSError where it is no regular file."""
        self._files, self._path = files, path
        self.size = os.fstat(files.descriptor(path)).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the file, fewer only where it ends."""
        try:
            return os.pread(self._files.descriptor(self._path), length, offset)
        except (OSError, OverflowError, ValueError) as error:
            raise ElfError(f"the file cannot be read: {error}") from error


class ObjectFiles:
    """The files of a root, as the loader's model asks for them; close it in the end."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._files = OpenFiles(root)
        self._folders: dict[str, tuple[str, dict[str, bool]]] = {}

    def close(self) -> None:
        """Close every file."""
        self._files.close()

    def data(self, path: str) -> FileBytes | None:
        """Return the bytes of a regular file, None where there is none."""
        try:
            return FileBytes(self._files, path)
        except (OSError, ValueError):
            return None

    def open(self, path: str) -> Elf | None:
        """Return a shared object; see ``core.loadersearch.Library``."""
        data = self.data(path)
        return None if data is None else Elf(data)

    def names(self, folder: str) -> AbstractSet[str]:
        """Return the names in a folder, empty where there is none."""
        return self._folder(folder)[1].keys()

    def real(self, path: str) -> str:
        """Return the path with no link left in it, or as it is where it cannot be followed."""
        folder, name = posixpath.split(path)
        where, names = self._folder(folder)
        if names.get(name) is False:
            return f"{where}/{name}"
        try:
            return self._root.real(path)
        except (OSError, ValueError):
            return path

    def _folder(self, path: str) -> tuple[str, dict[str, bool]]:
        """Return a folder with no link in its path, and which of the names in it are links."""
        known = self._folders.get(path)
        if known is None:
            try:
                real = self._root.real(path)
                names = {entry.name: entry.is_symlink() for entry in self._root.scan(real)}
                known = (real.rstrip("/"), names)
            except (OSError, ValueError):
                known = (path, {})
            self._folders[path] = known
        return known
