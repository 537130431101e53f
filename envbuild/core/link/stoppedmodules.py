"""Which imports fail because the system lacks a library that no wheel is meant to bring."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.elf.libnames import is_driver_library, is_indispensable
from envbuild.core.elf.sharedobject import ElfError
from envbuild.core.link.process import package_of
from envbuild.core.link.roots import is_extension_name
from envbuild.model.links import MissingLibrary, StoppedModule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from envbuild.core.link.importwalk import ImportWalk
    from envbuild.core.link.loader import Closure, Gap
    from envbuild.core.link.process import Process
    from envbuild.core.link.search import Module

_PLAIN = re.compile(r"(?!lib)(\w+)\.so")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sources:
    """The texts of an environment's packages.

    ``tops`` gives the names that can be imported from the distribution that a path belongs to.
    """

    text: Callable[[str], str | None]
    tops: Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Judge:
    walk: ImportWalk
    sources: Sources

    def extension(self, path: str, missing: tuple[MissingLibrary, ...]) -> StoppedModule | None:
        """Judge an extension module; None where nothing but a part of its own is without it."""
        entry, name = self._place(path)
        if not entry:
            return None
        tops, entries = self._entries(path, entry)
        found = {}
        if any(self.walk.is_named(name, top) for top in tops):
            for one in entries:
                is_sure = self.walk.reached(one, tops=tops).get(path)
                if is_sure is not None:
                    found[one] = is_sure
        if entry == name and entry in entries:
            found[entry] = True
        part = f"{entry}.{name}" if self._is_public(path, entry, name) and not found else ""
        return self._stopped(path, missing, found, part=part)

    def library(self, path: str, missing: tuple[MissingLibrary, ...]) -> StoppedModule | None:
        """Judge the only library of a package, which that opens by itself."""
        entry, _ = self._place(path)
        if not entry:
            return None
        tops, entries = self._entries(path, entry)
        opened = {one: self.walk.opening(one, tops=tops) for one in entries}
        found = {one: is_sure for one, is_sure in opened.items() if is_sure is not None}
        return self._stopped(path, missing, found)

    def _stopped(
        self, path: str, missing: tuple[MissingLibrary, ...], found: dict[str, bool], part: str = ""
    ) -> StoppedModule | None:
        if not found and not part:
            return None
        return StoppedModule(
            path=path,
            missing=missing,
            stops=tuple(one for one, is_sure in found.items() if is_sure),
            may_stop=tuple(one for one, is_sure in found.items() if not is_sure),
            part=part,
        )

    def _place(self, path: str) -> tuple[str, str]:
        """Return the outermost package that holds a file, and the file's name as a module.

        Both are the same for a module that lies in a site itself.
        """
        name = posixpath.basename(path).partition(".")[0]
        site = max(
            (one for one in self.walk.sites if path.startswith(f"{one}/")), key=len, default=None
        )
        if site is None:
            return "", name
        folders = path[len(site) + 1 :].split("/")[:-1]
        for number in range(1, len(folders) + 1):
            if "__init__.py" in self.walk.names("/".join((site, *folders[:number]))):
                return ".".join(folders[:number]), name
        return ("", name) if folders else (name, name)

    def _entries(self, path: str, entry: str) -> tuple[frozenset[str], tuple[str, ...]]:
        """Return the names of its distribution, and the public ones that people import."""
        tops = frozenset((*self.sources.tops(path), entry.partition(".")[0]))
        public = sorted(top for top in tops if top[0] != "_" and self.walk.is_module(top))
        wanted = (*public, entry) if entry[0] != "_" or not public else public
        return tops, tuple(dict.fromkeys(wanted))

    def _is_public(self, path: str, entry: str, name: str) -> bool:
        folder = posixpath.dirname(path)
        return name[0] != "_" and folder.endswith(f"/{entry.replace('.', '/')}")


def stopped_modules(
    process: Process,
    closures: Iterable[Closure],
    *,
    walk: ImportWalk,
    sources: Sources,
    packages: Iterable[tuple[str, ...]],
) -> Iterator[StoppedModule]:
    """Give what cannot be loaded and is needed by an import.

    ``packages`` are the paths of the shared objects of each package.
    """
    judge = _Judge(walk=walk, sources=sources)
    seen = set()
    for closure in closures:
        missing = _missing(closure)
        path = closure.root.path
        if missing and path not in seen and _is_extension(closure.root, walk):
            seen.add(path)
            found = judge.extension(path, missing)
            if found is not None:
                yield found
    for module in _alone(process, packages):
        missing = _missing(process.load_apart(module))
        found = judge.library(module.path, missing) if missing else None
        if found is not None:
            yield found


def _is_extension(root: Module, walk: ImportWalk) -> bool:
    if package_of(root.path, walk.sites) == "torch":
        return False
    name = posixpath.basename(root.path)
    if is_extension_name(name, tag=walk.tag, machine=walk.machine):
        return True
    plain = _PLAIN.fullmatch(name)
    try:
        return plain is not None and root.elf.defines(f"PyInit_{plain[1]}".encode())
    except ElfError:
        return False


def _alone(process: Process, packages: Iterable[tuple[str, ...]]) -> Iterator[Module]:
    for paths in packages:
        name = posixpath.basename(paths[0])
        if len(paths) == 1 and name.startswith("lib") and name.endswith(".so"):
            module = process.loader.module(paths[0])
            if module is not None:
                yield module


def _missing(closure: Closure) -> tuple[MissingLibrary, ...]:
    found = {(gap.library, gap.module.path): None for gap in closure.gaps if _is_of_system(gap)}
    return tuple(
        MissingLibrary(path=path, library=library, optional=True) for library, path in sorted(found)
    )


def _is_of_system(gap: Gap) -> bool:
    """Say whether the system should bring it: no wheel, no driver, no file of the environment."""
    return (
        gap.elsewhere is None
        and not is_indispensable(gap.library)
        and not is_driver_library(gap.library)
    )
