"""Ask objects for symbols, where one that is broken or too large is noted once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envbuild.core.elf.libnames import owner_of
from envbuild.core.elf.sharedobject import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from envbuild.core.elf.sharedobject import VersionNeed, Wanted
    from envbuild.core.link.loader import Closure, Loader
    from envbuild.core.link.search import Module

_NO_NAMES: frozenset[bytes] = frozenset()


@dataclass(kw_only=True, slots=True)
class Scopes:
    """What each loaded object may see. ``reached`` maps an object to the closures that load it.

    ``loaded`` is everything the process holds after `import torch`, be it seen or not.
    """

    loader: Loader
    seen_by_all: tuple[Module, ...]
    closures: tuple[Closure, ...]
    loaded: tuple[Module, ...] = ()
    reached: dict[Module, list[Closure]] = field(default_factory=dict)
    common: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        for closure in self.closures:
            for module in closure.modules:
                self.reached.setdefault(module, []).append(closure)
        for module in self.seen_by_all:
            self.common |= self.names(module)

    def of(self, module: Module) -> tuple[Module, ...]:
        """Return every object that some process with this one could take a symbol from."""
        found = dict.fromkeys(self.seen_by_all)
        for closure in self.reached[module]:
            found.update(dict.fromkeys(closure.modules))
        found[module] = None
        return tuple(found)

    def first(self, module: Module) -> tuple[Module, ...]:
        """Return the objects beside it in the first process that loads it."""
        return self.reached[module][0].modules

    def is_whole(self, module: Module) -> bool:
        """Return whether some process that loads it has all its libraries, none of them broken."""
        return any(
            closure.is_whole and all(self.loader.is_clear(part.path) for part in closure.modules)
            for closure in self.reached[module]
        )

    def holes(self, module: Module) -> frozenset[str]:
        """Return the names of the libraries that are missing or unclear in what loads an object."""
        closures = self.reached[module]
        is_clear = self.loader.is_clear
        return frozenset(
            (
                *(gap.library for closure in closures for gap in closure.gaps),
                *(one.name for c in closures for one in c.modules if not is_clear(one.path)),
            )
        )

    def names(self, module: Module) -> AbstractSet[bytes]:
        """Return the names an object most likely defines."""
        try:
            return module.elf.names()
        except ElfError as error:
            self.loader.note(module.path, error)
            return _NO_NAMES

    def without(self, wanted: set[bytes], module: Module) -> set[bytes]:
        """Return the names that an object most likely does not define."""
        if module.elf.is_large:
            return {name for name in wanted if not self.defines(module, name)}
        return wanted - self.names(module)

    def undefined(self, module: Module) -> tuple[Wanted, ...]:
        """Return the symbols an object wants."""
        try:
            return module.elf.undefined()
        except ElfError as error:
            self.loader.note(module.path, error)
            return ()

    def defines(self, module: Module, name: bytes, version: str | None = None) -> bool:
        """Return whether an object defines a symbol."""
        try:
            return module.elf.defines(name, version)
        except ElfError as error:
            self.loader.note(module.path, error)
            return False

    def needs(self, module: Module) -> tuple[VersionNeed, ...]:
        """Return the versions an object asks for."""
        try:
            return module.elf.needs()
        except ElfError as error:
            self.loader.note(module.path, error)
            return ()

    def definitions(self, module: Module) -> Mapping[int, str]:
        """Return the versions an object defines."""
        try:
            return module.elf.definitions()
        except ElfError as error:
            self.loader.note(module.path, error)
            return {}


def owner_among(symbol: bytes, modules: Iterable[Module]) -> Module | None:
    """Return the object that should define a symbol by its name, if it is among these."""
    library = owner_of(symbol)
    if library is None:
        return None
    return next((one for one in modules if (one.elf.soname or one.name).startswith(library)), None)
