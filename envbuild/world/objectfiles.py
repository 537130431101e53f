"""Shared objects below one root, read in small pieces."""

from __future__ import annotations

import os
import posixpath
from collections import deque
from typing import IO, TYPE_CHECKING

from envbuild.core.elf.sharedobject import Elf, ElfError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from envbuild.world.rootfs import Root

_MOST_OPEN = 128


class OpenFiles:
    """Keeps the files opened last open; older ones are closed, and opened again when read."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._open: deque[IO[bytes]] = deque()

    def open(self, path: str) -> IO[bytes]:
        """Open a file, which may be closed later on; raise OSError where it is no regular file."""
        file = self._root.open(path)
        self._open.append(file)
        if len(self._open) > _MOST_OPEN:
            self._open.popleft().close()
        return file

    def close(self) -> None:
        """Close every file."""
        while self._open:
            self._open.pop().close()


class FileBytes:
    """A file, read in pieces; what the disk refuses is an ElfError."""

    __slots__ = ("_file", "_files", "_path", "size")

    def __init__(self, files: OpenFiles, path: str) -> None:
        """Open a file; raise OSError where it is no regular file."""
        self._files, self._path = files, path
        self._file = files.open(path)
        self.size = os.fstat(self._file.fileno()).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the file, fewer only where it ends."""
        try:
            if self._file.closed:
                self._file = self._files.open(self._path)
            return os.pread(self._file.fileno(), length, offset)
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
