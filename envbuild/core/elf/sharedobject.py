"""One ELF shared object: what it needs, wants and defines, read from its dynamic tables alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.elf.dynamic import parse_dynamic
from envbuild.core.elf.header import parse_header
from envbuild.core.elf.pieces import Bytes, ElfError, Window
from envbuild.core.elf.symbols import LARGE, Symbols, Wanted
from envbuild.core.elf.versions import VersionNeed, parse_definitions, parse_needs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

__all__ = ["Bytes", "Elf", "ElfError", "VersionNeed", "Wanted"]


class Elf:
    """A 64-bit x86_64 or aarch64 file.

    The head and the dynamic section are read at once, everything else when it is first asked
    for. Making one and every method raise ElfError where the file is broken.
    """

    __slots__ = (
        "_definitions",
        "_header",
        "_known",
        "_names",
        "_needs",
        "_symbols",
        "_undefined",
        "_window",
        "dynamic",
    )

    def __init__(self, data: Bytes) -> None:
        self._window = Window(data)
        self._header = parse_header(data, self._window)
        self.dynamic = parse_dynamic(self._window, self._header)
        self._symbols: Symbols | None = None
        self._undefined: tuple[Wanted, ...] | None = None
        self._names: AbstractSet[bytes] | None = None
        self._needs: tuple[VersionNeed, ...] | None = None
        self._definitions: Mapping[int, str] | None = None
        self._known: dict[tuple[bytes, str | None], bool] = {}
        self._window.forget()

    @property
    def machine(self) -> str:
        """``x86_64`` or ``aarch64``."""
        return self._header.kind.machine

    @property
    def needed(self) -> tuple[str, ...]:
        """The libraries it is linked to, in order."""
        return self.dynamic.needed

    @property
    def soname(self) -> str | None:
        """The name that others are linked to."""
        return self.dynamic.soname

    def _table(self) -> Symbols:
        if self._symbols is None:
            self._symbols = Symbols(self._window, self._header, self.dynamic)
        return self._symbols

    def undefined(self) -> tuple[Wanted, ...]:
        """Return the symbols that others must define, the weak ones marked."""
        if self._undefined is None:
            self._undefined = self._table().undefined()
            self._window.forget()
        return self._undefined

    def names(self) -> AbstractSet[bytes]:
        """Return most defined names and some others; ``defines`` is exact."""
        if self._names is None:
            self._names = self._table().names(without=self.undefined())
        return self._names

    @property
    def is_large(self) -> bool:
        """Whether ``names`` gives nothing because there are too many."""
        return self.dynamic.strings[1] > LARGE

    def defines(self, name: bytes, version: str | None = None) -> bool:
        """Return whether the loader would find this symbol here."""
        key = (name, version)
        found = self._known.get(key)
        if found is None:
            found = self._table().defines(name, version, self.definitions())
            self._known[key] = found
        return found

    def needs(self) -> tuple[VersionNeed, ...]:
        """Return the versions it asks of its libraries."""
        if self._needs is None:
            self._needs = parse_needs(self._window, self._header, self.dynamic)
            self._window.forget()
        return self._needs

    def definitions(self) -> Mapping[int, str]:
        """Return the versions it defines by their numbers; empty where it has none."""
        if self._definitions is None:
            self._definitions = parse_definitions(self._window, self._header, self.dynamic)
            self._window.forget()
        return self._definitions

    def release(self) -> None:
        """Drop what was read but for the dynamic section; it is read again when asked for."""
        self._symbols = self._undefined = self._names = None
        self._known.clear()
        self._window.forget()
