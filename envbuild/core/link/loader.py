"""Load shared objects as the dynamic loader would, so far as files tell."""

from __future__ import annotations

import posixpath
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envbuild.core.elf.pieces import BlankElfError, ElfError, ForeignElfError, UnreadElfError
from envbuild.core.link.search import PRELOAD, RPATH, Module
from envbuild.model.links import BrokenBinary, LoadedLibrary

if TYPE_CHECKING:
    from collections.abc import Callable

    from envbuild.core.link.search import Library, SearchPath


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """A needed library that was not found.

    ``elsewhere`` is the path of a file of that name in the environment, which the loader does
    not look at and a package may open by itself.
    """

    module: Module
    library: str
    elsewhere: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Closure:
    """What loading one object brings in: it first, then breadth first what it needs."""

    root: Module
    modules: tuple[Module, ...]
    gaps: tuple[Gap, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything that was needed was found."""
        return not self.gaps


@dataclass(kw_only=True, slots=True)
class Loader:
    """Opens and finds objects, each once; keeps what it came across.

    ``broken`` also holds the objects of other machines, whose paths are ``foreign``, and those
    of zeros, whose paths are ``blank``. ``unread`` holds those that are larger than is read.
    ``fallback`` names a file of the environment for a library the loader does not find.
    """

    library: Library
    search: SearchPath
    fallback: Callable[[str, Module], str | None] = lambda _name, _module: None
    loaded: dict[tuple[str, str], LoadedLibrary] = field(default_factory=dict)
    broken: dict[str, BrokenBinary] = field(default_factory=dict)
    unread: dict[str, BrokenBinary] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    blank: set[str] = field(default_factory=set)
    _modules: dict[str, Module | None] = field(default_factory=dict)

    def module(self, path: str) -> Module | None:
        """Return the object at a path, None where there is none or it is broken."""
        real = self.library.real(path)
        if real not in self._modules:
            self._modules[real] = self._open(path, real)
        return self._modules[real]

    def _open(self, path: str, real: str) -> Module | None:
        try:
            elf = self.library.open(path)
            wanted = self.search.machine
            if elf is not None and elf.machine != wanted:
                raise ForeignElfError(f"the file is for {elf.machine}, wanted {wanted}")
        except ElfError as error:
            self.note(path, error)
            if isinstance(error, ForeignElfError):
                self.foreign.add(path)
            if isinstance(error, BlankElfError):
                self.blank.add(path)
            return None
        if elf is None:
            return None
        # What a path with `..` means depends on links: keep the short form where it is the same.
        short = posixpath.normpath(path)
        if short != path and self.library.real(short) != real:
            short = real
        return Module(path=short, real=real, elf=elf)

    def note(self, path: str, error: ElfError) -> None:
        """Keep why an object cannot be read, or is not."""
        kept = self.unread if isinstance(error, UnreadElfError) else self.broken
        kept.setdefault(path, BrokenBinary(path=path, reason=str(error)))

    def is_clear(self, path: str) -> bool:
        """Whether an object could be read as far as it was asked."""
        return path not in self.broken and path not in self.unread

    def find(
        self, name: str, module: Module, chain: tuple[Module, ...] = ()
    ) -> tuple[Module, str] | None:
        """Find a library as the loader does for an object and those that loaded it."""
        if "/" in name:
            for path in self.search.tokens(name, module.origin):
                found = self.module(path) if path.startswith("/") else None
                if found is not None:
                    return found, RPATH
            return None
        for folder, how in self.search.candidates(name, module, chain):
            if name in self.library.names(folder):
                found = self.module(f"{folder}/{name}")
                if found is not None:
                    return found, how
        return None

    def close_over(
        self, root: Module, names: dict[str, Module], chain: tuple[Module, ...] = ()
    ) -> Closure:
        """Load an object and all it needs; ``names`` is what is loaded already, and grows."""
        order: dict[Module, None] = {root: None}
        queue = deque([(root, chain)])
        gaps: list[Gap] = []
        if root.elf.soname:
            names.setdefault(root.elf.soname, root)
        while queue:
            module, loaders = queue.popleft()
            for name in module.elf.needed:
                found = names.get(name) or self._resolve(name, module, loaders, gaps=gaps)
                if found is None:
                    continue
                names.setdefault(name, found)
                if found.elf.soname:
                    found = names.setdefault(found.elf.soname, found)
                if found not in order:
                    order[found] = None
                    queue.append((found, (module, *loaders)))
        return Closure(root=root, modules=tuple(order), gaps=tuple(gaps))

    def _resolve(
        self, name: str, module: Module, loaders: tuple[Module, ...], *, gaps: list[Gap]
    ) -> Module | None:
        result = self.find(name, module, loaders)
        if result is not None:
            found, how = result
            self.note_loaded(name, found, how=how, needed_by=module.path)
            return found
        other = self.fallback(name, module)
        if other is None:
            gaps.append(Gap(module=module, library=name))
            return None
        substitute = self.module(other)
        if substitute is None or _top(other) != _top(module.path):
            gaps.append(Gap(module=module, library=name, elsewhere=other))
        if substitute is not None:
            self.note_loaded(name, substitute, how=PRELOAD, needed_by=module.path)
        return substitute

    def note_loaded(self, name: str, module: Module, *, how: str, needed_by: str) -> None:
        """Keep how a library was first found at a path."""
        entry = LoadedLibrary(
            soname=name, path=module.path, how=how, needed_by=needed_by, real=module.real
        )
        self.loaded.setdefault((name, module.path), entry)


def _top(path: str) -> str:
    """Return the path down to the folder below the site folder: one package, roughly."""
    for site in ("/site-packages/", "/dist-packages/"):
        head, found, rest = path.partition(site)
        if found:
            return f"{head}{site}{rest.partition('/')[0].removesuffix('.libs')}"
    return posixpath.dirname(path)
