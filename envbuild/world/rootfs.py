"""Read files below one folder as if it were `/`: an unpacked image, or the machine itself.

Every path is absolute inside the root. Symbolic links and ``..`` are resolved here, component by
component, so that neither leads out of the root; what is not a regular file is never opened.

NOTE: a tree that somebody else changes at the same moment is outside what this guards against.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from typing import IO

from envbuild.errors import InputError

_MOST_LINKS = 40
_LONGEST_PATH = 4096
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Root:
    """A folder that stands for `/`. Methods raise OSError where they do not say otherwise."""

    def __init__(self, path: str = "/") -> None:
        self.path = os.path.realpath(path)
        if not os.path.isdir(self.path):  # noqa: PTH112
            raise InputError(f"`{path}` is no folder, wanted the root folder of an image")
        self._host = "" if self.path == "/" else self.path
        self._folders: dict[str, str] = {"/": "", "": ""}

    @property
    def is_image(self) -> bool:
        """Whether it is another root than the machine's."""
        return bool(self._host)

    def inside(self, path: str) -> str:
        """Return an absolute path inside the root for one that may begin with the root itself."""
        if self._host and (path == self._host or path.startswith(f"{self._host}/")):
            path = path[len(self._host) :]
        return posixpath.normpath(f"/{path.lstrip('/')}")

    def real(self, path: str) -> str:
        """Return the path inside the root that a path leads to, with no link left in it."""
        return self._resolve(path) or "/"

    def host_path(self, path: str, *, follow: bool = True) -> str:
        """Return where a path lies on the machine; ``follow`` also resolves its last part."""
        if not self._host:
            return path
        if follow:
            return self._host + self._resolve(path)
        folder, name = posixpath.split(path.rstrip("/"))
        if name in {"", ".", ".."}:
            return self._host + self._resolve(path)
        return f"{self._host}{self._folder(folder)}/{name}"

    def open(self, path: str) -> IO[bytes]:
        """Open a regular file."""
        where = self.host_path(path)
        _refuse_other_kinds(os.stat(where), path)  # noqa: PTH116
        handle = os.open(where, _OPEN | (os.O_NOFOLLOW if self._host else 0))
        try:
            _refuse_other_kinds(os.fstat(handle), path)
            return os.fdopen(handle, "rb")
        except BaseException:
            os.close(handle)
            raise

    def read(self, path: str, *, limit: int) -> bytes:
        """Return a file's bytes; a file of more than ``limit`` bytes is an OSError (EFBIG)."""
        data = self.head(path, limit + 1)
        if len(data) > limit:
            raise OSError(errno.EFBIG, f"has more than {limit:,} bytes", path)
        return data

    def head(self, path: str, size: int) -> bytes:
        """Return the first bytes of a file; none where it would have to be waited for."""
        with self.open(path) as file:
            return file.read(size) or b""

    def text(self, path: str, *, limit: int = 1 << 20) -> str | None:
        """Return a file's text with what is no UTF-8 replaced, or None where it is unreadable."""
        try:
            return self.read(path, limit=limit).decode("utf-8", errors="replace")
        except OSError:
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder, empty where there is no readable folder."""
        try:
            return tuple(sorted(os.listdir(self.host_path(path))))  # noqa: PTH208
        except OSError:
            return ()

    def scan(self, path: str) -> list[os.DirEntry[str]]:
        """Return a folder's entries, unsorted; ask them nothing that follows links."""
        with os.scandir(self.host_path(path)) as entries:
            return list(entries)

    def status(self, path: str) -> os.stat_result:
        """Return what lies at a path, at its end if it is a link."""
        return os.stat(self.host_path(path))  # noqa: PTH116

    def is_folder(self, path: str) -> bool:
        """Return whether a folder lies at a path, False where that cannot be known."""
        mode = self._mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    def is_file(self, path: str) -> bool:
        """Return whether a regular file lies at a path, False where that cannot be known."""
        mode = self._mode(path)
        return mode is not None and stat.S_ISREG(mode)

    def is_there(self, path: str) -> bool:
        """Return whether anything lies at a path, be it a link that leads nowhere."""
        try:
            os.lstat(self.host_path(path, follow=False))
        except (OSError, ValueError):
            return False
        return True

    def _mode(self, path: str) -> int | None:
        try:
            return self.status(path).st_mode
        except (OSError, ValueError):
            return None

    def _resolve(self, path: str) -> str:
        if not self._host:
            return os.path.realpath(path)
        folder, name = posixpath.split(path)
        return self._walk(self._folder(folder), name)

    def _folder(self, path: str) -> str:
        """Resolve a folder, once."""
        known = self._folders.get(path)
        if known is None:
            known = self._folders[path] = self._walk("", path)
        return known

    def _walk(self, done: str, path: str) -> str:
        """Resolve a path from a folder that is resolved, clamped to the root as the kernel does."""
        if len(path) > _LONGEST_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
        pending = path.split("/")[::-1]
        links = 0
        while pending:
            name = pending.pop()
            if name == "..":
                done = posixpath.dirname(done).rstrip("/")
            elif name not in {"", "."}:
                target = self._link(f"{done}/{name}")
                if target is None:
                    done = f"{done}/{name}"
                    continue
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                done = "" if target.startswith("/") else done
                pending.extend(target.split("/")[::-1])
        return done

    def _link(self, path: str) -> str | None:
        """Return where a link leads, or None where no link lies at a path."""
        try:
            return os.readlink(self._host + path)  # noqa: PTH115
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise


def _refuse_other_kinds(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", path)


def reason(error: OSError) -> str:
    """Say in a few words why a file could not be read."""
    return (error.strerror or type(error).__name__).lower()
