"""Follow the imports of a package from file to file, as far as its texts tell."""

from __future__ import annotations

import posixpath
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envbuild.core.link.importtext import ImportText, mentions, read_imports
from envbuild.core.link.roots import is_extension_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from envbuild.core.link.importtext import Imported

_MOST_MODULES = 400
_MOST_FILES = 3000


@dataclass(kw_only=True, slots=True)
class ImportWalk:
    """The modules of some sites. ``names`` lists a folder, ``text`` reads a module's text.

    ``tag`` and ``machine`` are those of the interpreter's extension modules.
    """

    sites: tuple[str, ...]
    names: Callable[[str], AbstractSet[str]]
    text: Callable[[str], str | None]
    tag: str
    machine: str
    _read: dict[str, ImportText] = field(default_factory=dict)
    _reached: dict[tuple[str, frozenset[str]], dict[str, bool]] = field(default_factory=dict)

    def reached(self, entry: str, *, tops: frozenset[str]) -> dict[str, bool]:
        """Return which files the import of a name runs or loads, of those below ``tops``.

        True stands for what it surely does.
        """
        known = self._reached.get((entry, tops))
        if known is not None:
            return known
        found = self._reached[entry, tops] = {}
        surely, perhaps = deque(self._files(entry.split("."), self.sites)), deque[str]()
        while surely or perhaps:
            is_sure = bool(surely)
            path = surely.popleft() if is_sure else perhaps.popleft()
            if found.get(path) or (path in found and not is_sure) or len(found) >= _MOST_MODULES:
                continue
            found[path] = is_sure
            for imported in self.read(path).imports:
                targets = self._targets(imported, path, tops)
                (surely if is_sure and imported.surely else perhaps).extend(targets)
        return found

    def opening(self, entry: str, *, tops: frozenset[str]) -> bool | None:
        """Return whether the import of a name surely opens a library by itself.

        None where it opens none.
        """
        opened = None
        for path, is_sure in self.reached(entry, tops=tops).items():
            opens = self.read(path).opens
            if opens is not None:
                opened = bool(opened) or (opens and is_sure)
        return opened

    def read(self, path: str) -> ImportText:
        """Return what a module does as it is imported; nothing where it is no text."""
        if path not in self._read:
            text = self.text(path) if path.endswith(".py") else None
            self._read[path] = ImportText() if text is None else read_imports(text)
        return self._read[path]

    def is_named(self, name: str, top: str) -> bool:
        """Return whether any text of a package imports something of that name, at any time.

        A package that is too large to read through is taken to do so.
        """
        for number, path in enumerate(self._texts(top)):
            if number >= _MOST_FILES or mentions(self.text(path) or "", name):
                return True
        return False

    def is_module(self, name: str) -> bool:
        """Return whether a top-level name can be imported from some site."""
        return any(next(self._modules(site, name), None) is not None for site in self.sites)

    def _texts(self, top: str) -> Iterator[str]:
        for site in self.sites:
            if f"{top}.py" in self.names(site):
                yield f"{site}/{top}.py"
            pending = [f"{site}/{top}"]
            while pending:
                folder = pending.pop()
                for name in sorted(self.names(folder)):
                    if name.endswith(".py"):
                        yield f"{folder}/{name}"
                    elif "." not in name:
                        pending.append(f"{folder}/{name}")

    def _targets(self, imported: Imported, path: str, tops: AbstractSet[str]) -> Iterator[str]:
        """Give the files that one import runs, as far as they are of the same package."""
        folder = posixpath.dirname(path)
        parts = imported.module.split(".") if imported.module else []
        where = self.sites
        if imported.level:
            for _ in range(imported.level - 1):
                folder = posixpath.dirname(folder)
            where = (folder,)
        elif not parts or parts[0] not in tops:
            return
        elif parts == [posixpath.basename(folder)]:
            # A package may put its own folder on the path to import the extension of its name.
            yield from self._modules(folder, parts[0])
        yield from self._files(parts, where)
        for name in imported.names:
            yield from self._files([*parts, name], where)

    def _files(self, parts: list[str], folders: tuple[str, ...]) -> list[str]:
        """Return the files that the import of a dotted name runs, the outer ones first."""
        for start in folders:
            folder = start
            found: list[str] = []
            for name in parts:
                modules = list(self._modules(folder, name))
                found += modules[:1]
                if not modules and not self.names(f"{folder}/{name}"):
                    break
                folder = f"{folder}/{name}"
            if found:
                return found
        return []

    def _modules(self, folder: str, name: str) -> Iterator[str]:
        """Give the files that stand for a module, the one that Python takes first."""
        if "__init__.py" in self.names(f"{folder}/{name}"):
            yield f"{folder}/{name}/__init__.py"
        names = self.names(folder)
        for found in sorted(names):
            if found.startswith(f"{name}.") and self._is_extension(found, name):
                yield f"{folder}/{found}"
        if f"{name}.py" in names:
            yield f"{folder}/{name}.py"

    def _is_extension(self, found: str, name: str) -> bool:
        return found == f"{name}.so" or (
            found.partition(".")[0] == name
            and is_extension_name(found, tag=self.tag, machine=self.machine)
        )
