"""Keep the wheels that were built, each below the key of what it was built from.

An entry is a folder ``KEY`` with one wheel and ``sha256``, the hash of its bytes. It comes into
its place as a whole. ``checked`` is added once the wheel was found sound in an environment: until
then it does not count, so that a build that was judged bad or was never judged is made again.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from envbuild.errors import WorldError
from envbuild.world.sourcetree import file_sha256

_KEY = re.compile(r"[0-9a-f]{64}")
_HASH = "sha256"
_CHECKED = "checked"


class WheelCache:
    """The built wheels below one folder."""

    def __init__(self, directory: Path) -> None:
        self._root = directory / "wheels"

    def load(self, key: str) -> Path | None:
        """Return the wheel of a key, None where there is none that is whole and was checked."""
        folder = self._folder(key)
        try:
            if not (folder / _CHECKED).is_file():
                return None
            wheel = next(iter(sorted(folder.glob("*.whl"))), None)
            said = (folder / _HASH).read_text(encoding="ascii").strip()
            return wheel if wheel is not None and file_sha256(wheel) == said else None
        except (OSError, ValueError):
            return None

    def store(self, key: str, wheel: Path) -> Path:
        """Copy a wheel into the cache and return its place; raise WorldError where it cannot be."""
        folder = self._folder(key)
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".making-", dir=self._root))
            try:
                self._fill(made, wheel)
                self._replace(folder, made)
            finally:
                shutil.rmtree(made, ignore_errors=True)
        except OSError as error:
            raise WorldError(
                f"the cache of built wheels `{self._root}` cannot be written:"
                f" {error.strerror or error}",
                hint="set ENVBUILD_CACHE_DIR to a folder with free space that can be written to",
            ) from None
        return folder / wheel.name

    def confirm(self, key: str) -> None:
        """Let the wheel of a key count from now on."""
        with suppress(OSError):
            (self._folder(key) / _CHECKED).touch()

    def discard(self, key: str) -> None:
        """Remove the wheel of a key."""
        shutil.rmtree(self._folder(key), ignore_errors=True)

    def save_log(self, project: str, text: str) -> Path | None:
        """Keep what a failed build said; return its place, None where it cannot be written."""
        path = self._root.parent / "logs" / f"build-{project}.log"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            return None
        return path

    def _fill(self, folder: Path, wheel: Path) -> None:
        goal = folder / wheel.name
        shutil.copyfile(wheel, goal)
        (folder / _HASH).write_text(f"{file_sha256(goal)}\n", encoding="ascii")
        for path in (goal, folder / _HASH):
            with path.open("rb") as file:
                os.fsync(file.fileno())
        folder.chmod(0o755)

    def _replace(self, folder: Path, made: Path) -> None:
        """Put a folder into its place; what another process puts there meanwhile is as good."""
        shutil.rmtree(folder, ignore_errors=True)
        try:
            made.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise

    def _folder(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"`{key}` is no key of a built wheel")
        return self._root / key


def key_of(address: str | None) -> str | None:
    """Return the key in the address that a wheel was installed from, None for any other."""
    match = re.search(r"/wheels/([0-9a-f]{64})/[^/]+\.whl(?:$|#)", address or "")
    return match[1] if match else None
