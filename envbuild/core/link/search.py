"""Where the dynamic loader looks for a library: glibc's order, without running it.

For a name without a slash: the RPATH of the object that needs it and of those that loaded it,
unless that object has a RUNPATH; LD_LIBRARY_PATH; its RUNPATH; ``/etc/ld.so.cache``; the default
folders (``man 8 ld.so``, ``elf/dl-load.c`` of glibc).
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from envbuild.core.elf.sharedobject import Elf

_TRIPLETS = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
RPATH, RUNPATH, LD_PATH = "rpath", "runpath", "ld_library_path"
CACHE, DEFAULT, PRELOAD, LOADED = "cache", "default", "preload", "loaded"


class Library(Protocol):
    """The files of one root; every path is absolute inside it."""

    def open(self, path: str) -> Elf | None:
        """Return a shared object, or None where no file lies there.

        Raises ElfError where the file is there and cannot be read.
        """
        ...

    def names(self, folder: str) -> AbstractSet[str]:
        """Return the names in a folder, empty where there is none."""
        ...

    def real(self, path: str) -> str:
        """Return the path with no link left in it."""
        ...


@dataclass(kw_only=True, slots=True, eq=False)
class Module:
    """A shared object as it is loaded: the path it was found at, and its tables."""

    path: str
    real: str
    elf: Elf

    @property
    def origin(self) -> str:
        """What ``$ORIGIN`` means in it: its folder, the links in its path not followed."""
        return posixpath.dirname(self.path)

    @property
    def name(self) -> str:
        """Its file name."""
        return posixpath.basename(self.path)


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchPath:
    """What a process adds to the names in its files.

    ``cache`` maps a name to paths, best first. ``main`` is the executable.
    """

    machine: str = "x86_64"
    ld_library_path: tuple[str, ...] = ()
    cache: Mapping[str, tuple[str, ...]]
    main: Module | None = None

    def default_folders(self) -> tuple[str, ...]:
        """Return the folders of Debian and of Red Hat."""
        triplet = _TRIPLETS.get(self.machine, f"{self.machine}-linux-gnu")
        return (
            f"/lib/{triplet}",
            f"/usr/lib/{triplet}",
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
        )

    def candidates(
        self, name: str, module: Module, chain: tuple[Module, ...]
    ) -> Iterator[tuple[str, str]]:
        """Give folder and kind of each place to look in, in order."""
        elf = module.elf.dynamic
        if elf.runpath is None:
            for owner in (module, *chain):
                yield from self._of(owner, owner.elf.dynamic.rpath, RPATH)
            if self.main is not None and self.main not in chain and self.main is not module:
                yield from self._of(self.main, self.main.elf.dynamic.rpath, RPATH)
        yield from ((folder, LD_PATH) for folder in self.ld_library_path)
        if elf.runpath is not None:
            for folder in self.expand(elf.runpath, module):
                yield folder, RUNPATH
        for path in self.cache.get(name, ()):
            yield posixpath.dirname(path), CACHE
        yield from ((folder, DEFAULT) for folder in self.default_folders())

    def _of(self, owner: Module, paths: str | None, how: str) -> Iterator[tuple[str, str]]:
        # A RUNPATH makes the loader ignore the RPATH of the same object.
        if paths is not None and owner.elf.dynamic.runpath is None:
            for folder in self.expand(paths, owner):
                yield folder, how

    def expand(self, paths: str, module: Module) -> tuple[str, ...]:
        """Return the folders of a RPATH, RUNPATH or LD_LIBRARY_PATH; relative ones are left out."""
        return tuple(
            folder
            for part in paths.split(":")
            for folder in self.tokens(part, module.origin)
            if folder.startswith("/")
        )

    def tokens(self, text: str, origin: str) -> tuple[str, ...]:
        """Replace ``$ORIGIN``, ``$PLATFORM`` and ``$LIB``, which systems read differently."""
        if "$" not in text:
            return (text,)
        for token, value in (("ORIGIN", origin), ("PLATFORM", self.machine)):
            text = text.replace(f"${{{token}}}", value).replace(f"${token}", value)
        if "$LIB" not in text and "${LIB}" not in text:
            return (text,)
        triplet = _TRIPLETS.get(self.machine, self.machine)
        return tuple(
            text.replace("${LIB}", lib).replace("$LIB", lib)
            for lib in (f"lib/{triplet}", "lib64", "lib")
        )
