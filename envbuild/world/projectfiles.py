"""The project's folder on disk: read it, and write all files of a lock or none."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path  # noqa: TC003
from typing import TYPE_CHECKING

from envbuild.errors import InputError, WorldError
from envbuild.world.interrupts import signals_held
from envbuild.world.ownfiles import READY, STAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PLANNED = "planned.json"
_PATIENCE = 0.5


class ProjectFiles:
    """Files below one folder; see `envbuild.ports.Files`.

    `write_all` first stages every file beside its goal, then notes that the stage is complete,
    then renames. A process killed before the note leaves the old files; one killed after it
    leaves the rest of the renames to the next `recover`, which spares what the user changed
    in the meantime.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    @property
    def root(self) -> Path:
        """The folder itself."""
        return self._root

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None; raises InputError where it is no UTF-8 text."""
        try:
            return (self._root / path).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError as error:
            raise InputError(
                f"`{path}` is no UTF-8 text: {error.reason}",
                hint="save it as UTF-8, or delete it if `envbuild lock` writes it anew",
            ) from None
        except OSError as error:
            raise WorldError(
                f"`{path}` cannot be read: {error.strerror}",
                hint="make it a file that can be read, or move it out of the way",
            ) from None

    def exists(self, path: str) -> bool:
        """Return whether a file or folder of that name is there."""
        return (self._root / path).exists()

    def check_writable(self) -> None:
        """Raise WorldError when the folder, or one that will be written to, is read-only."""
        for folder in (self._root, self._root / "lockfiles"):
            if folder.exists():
                self._try_to_write(folder)

    def _try_to_write(self, folder: Path) -> None:
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".envbuild-"):
                pass
        except OSError as error:
            raise WorldError(
                f"`{folder}` cannot be written to: {error.strerror}",
                hint="`envbuild lock --check` and `--dry-run` write nothing",
            ) from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against another `envbuild lock`; raises WorldError if one runs."""
        handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not _taken(handle):
                raise WorldError(
                    f"another `envbuild lock` is at work in `{self._root}`",
                    hint="wait for it to end and repeat the command",
                )
            yield
        finally:
            os.close(handle)

    def recover(self) -> None:
        """Finish, or undo, what a killed process left."""
        stage = self._root / STAGE
        if (stage / READY).exists():
            try:
                self._rename(stage)
            except OSError as error:
                raise _unfinished(self._root, error) from None
        if stage.exists():
            shutil.rmtree(stage, ignore_errors=True)

    def write_all(self, texts: Mapping[str, str | None]) -> None:
        """Write all files or none; raises WorldError with the old files in place.

        A file whose text is None is removed.
        """
        stage = self._root / STAGE
        try:
            self._fill(stage, texts)
        except OSError as error:
            shutil.rmtree(stage, ignore_errors=True)
            raise WorldError(
                f"`{self._root}` cannot be written to: {error.strerror}",
                hint="nothing was changed; free space or make the folder writable",
            ) from None
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise
        with signals_held():
            try:
                (stage / _PLANNED).replace(stage / READY)
                _sync_folder(stage)
                self._rename(stage)
            except OSError as error:
                raise _unfinished(self._root, error) from None
            shutil.rmtree(stage, ignore_errors=True)

    def _fill(self, stage: Path, texts: Mapping[str, str | None]) -> None:
        shutil.rmtree(stage, ignore_errors=True)
        stage.mkdir()
        for path, text in texts.items():
            if text is None:
                continue
            staged = stage / path
            staged.parent.mkdir(parents=True, exist_ok=True)
            goal = self._root / path
            _refuse_file(goal.parent)
            _write_synced(staged, text, newline="\r\n" if _has_crlf(goal) else "\n")
            if goal.exists():
                shutil.copymode(goal, staged)
        _write_synced(stage / _PLANNED, json.dumps(self._plan(texts)))

    def _plan(self, texts: Mapping[str, str | None]) -> dict[str, object]:
        """Return what is to be done, and the hashes of the files that stand there now."""
        return {
            "written": sorted(path for path, text in texts.items() if text is not None),
            "removed": sorted(path for path, text in texts.items() if text is None),
            "before": {path: _sha256(self._root / path) for path in texts},
        }

    def _rename(self, stage: Path) -> None:
        """Put every file in its place, but over none that was changed since it was planned."""
        plan = json.loads((stage / READY).read_text(encoding="utf-8"))
        before = plan["before"]
        for path in plan["removed"]:
            if _sha256(self._root / path) == before[path]:
                (self._root / path).unlink(missing_ok=True)
        for path in plan["written"]:
            staged, goal = stage / path, self._root / path
            if staged.exists() and _sha256(goal) == before[path]:
                goal.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(goal.resolve() if goal.is_symlink() else goal)
        _sync_folder(self._root)


def _taken(handle: int) -> bool:
    """Take the lock; a program that a killed lock was just starting may hold it for a moment."""
    until = time.monotonic() + _PATIENCE
    while not _is_free(handle):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unfinished(root: Path, error: OSError) -> WorldError:
    return WorldError(
        f"`{root}` cannot be written to: {error.strerror}",
        hint="the next `envbuild lock` finishes what was begun",
    )


def _refuse_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _has_crlf(path: Path) -> bool:
    """Whether every line of a file ends as on Windows; what replaces it then does so too."""
    data = path.read_bytes() if path.is_file() else b""
    return b"\r\n" in data and data.count(b"\r\n") == data.count(b"\n")


def _write_synced(path: Path, text: str, *, newline: str = "\n") -> None:
    with path.open("w", encoding="utf-8", newline=newline) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
