"""Read what envbuild wrote around an environment: scripts, locks, and what a broken write left."""

from __future__ import annotations

import hashlib
import posixpath
import re
from typing import TYPE_CHECKING

from envbuild.model.ownfiles import Generated, OwnFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.world.rootfs import Root

STAGE = ".envbuild-stage"
"""The folder in a project in which files lie until all of them can be put in place."""

READY = "ready.json"
"""The file in it that says so."""

_SCRIPTS = "scripts"
_GENERATED = re.compile(r"install-[^/]+\.sh|Dockerfile\.[^/]+")
_LOCK = re.compile(r"pylock(?:\.[^./]+)?\.toml")
_LIMIT = 64 << 20
_MOST_FILES = 50


def read_own_files(folder: str, *, root: Root) -> OwnFiles:
    """Return what envbuild wrote into a project; what cannot be read is left out."""
    return OwnReader(folder, root=root).read()


class OwnReader:
    """Reads the files of one project."""

    def __init__(self, folder: str, *, root: Root) -> None:
        self._folder = folder
        self._root = root

    def read(self) -> OwnFiles:
        """Read them all."""
        stage = posixpath.join(self._folder, STAGE)
        is_there = self._root.is_folder(stage)
        return OwnFiles(
            generated=tuple(self._generated()),
            stale=self._stale(),
            stage=STAGE if is_there else "",
            half_written=is_there and self._root.is_file(posixpath.join(stage, READY)),
        )

    def _names(self, folder: str, pattern: re.Pattern[str]) -> list[str]:
        names = self._root.names(posixpath.join(self._folder, folder))
        return [posixpath.join(folder, one) for one in names if pattern.fullmatch(one)][
            :_MOST_FILES
        ]

    def _text(self, path: str) -> str | None:
        """Return a text as Python reads it, with the ends of lines that envbuild writes."""
        try:
            data = self._root.read(posixpath.join(self._folder, path), limit=_LIMIT)
            return data.decode("utf-8").replace("\r\n", "\n")
        except (OSError, ValueError):
            return None

    def _generated(self) -> Iterator[Generated]:
        from envbuild.core.script.generated import is_untouched, parse_header  # noqa: PLC0415

        for path in self._names(_SCRIPTS, _GENERATED):
            text = self._text(path) or ""
            header = parse_header(text)
            if header is not None:
                yield Generated(
                    path=path,
                    lock=header.lock,
                    made_from=header.lock_sha256,
                    now=self._hash(header.lock),
                    untouched=is_untouched(text),
                )

    def _hash(self, path: str) -> str | None:
        text = self._text(path)
        return None if text is None else hashlib.sha256(text.encode()).hexdigest()

    def _stale(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        from envbuild.core.ownlocks import stale_locks  # noqa: PLC0415

        pyproject = self._text("pyproject.toml")
        paths = self._names("lockfiles", _LOCK)
        locks = [(path, text) for path in paths if (text := self._text(path)) is not None]
        if pyproject is None or not locks:
            return ()
        return stale_locks(pyproject, locks, requirement_files=self._requirements(pyproject))

    def _requirements(self, pyproject: str) -> dict[str, str]:
        """Return the requirements files that the project names, and those that they name."""
        from envbuild.core.project.manifest import requirement_files_named  # noqa: PLC0415
        from envbuild.errors import EnvbuildError  # noqa: PLC0415

        found: dict[str, str] = {}
        tried: set[str] = set()
        try:
            while named := set(requirement_files_named(pyproject, requirement_files=found)) - tried:
                tried |= named
                texts = ((name, self._text(name)) for name in sorted(named))
                found.update({name: text for name, text in texts if text is not None})
        except EnvbuildError:
            return found
        return found
