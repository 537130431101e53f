"""Which objects outside torch import torch's symbols, and for which C++ ABI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.elf.libnames import is_torch_library, is_torch_symbol
from envbuild.core.link.process import package_of
from envbuild.model.links import ImportsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.core.link.scope import Scopes
    from envbuild.core.link.search import Module

_NOT_USERS = frozenset({"torch", "nvidia", "functorch", "torchgen"})
# An identifier stands behind its length, a literal between L and E: neither is a type.
_PARTS = re.compile(r"E\d+E|L[a-z]\d+E|[ST][0-9A-Z]*_|\d+|Ss|.", re.DOTALL)


def torch_users(scopes: Scopes, *, sites: tuple[str, ...]) -> Iterator[ImportsOf]:
    """Give the imports of every loaded object outside torch that has any of torch."""
    for module in scopes.reached:
        package = package_of(module.path, sites)
        if package in _NOT_USERS or is_torch_library(module.name):  # conda's lie in its own lib
            continue
        names = {
            wanted.name
            for wanted in scopes.undefined(module)
            if wanted.version <= 1 and not wanted.weak and is_torch_symbol(wanted.name)
        }
        libraries = tuple(name for name in module.elf.needed if is_torch_library(name))
        if names:
            names -= _own(scopes, module, names, package=package, sites=sites)
        if names:
            yield _imports(module, names, libraries)


def _own(
    scopes: Scopes, module: Module, names: set[bytes], *, package: str, sites: tuple[str, ...]
) -> set[bytes]:
    """Return what the object or a library of its own package defines."""
    own = [one for one in scopes.first(module) if package_of(one.path, sites) == package]
    return {name for name in names if any(scopes.defines(one, name) for one in (module, *own))}


def _imports(module: Module, names: set[bytes], libraries: tuple[str, ...]) -> ImportsOf:
    symbols = tuple(sorted(name.decode("utf-8", errors="backslashreplace") for name in names))
    return ImportsOf(
        path=module.path,
        symbols=symbols,
        abi=abi_of(symbols),
        stable=is_stable(symbols),
        libraries=libraries,
    )


def is_stable(symbols: Iterable[str]) -> bool:
    """Return whether all symbols are of torch's stable C interface."""
    return all(name.startswith(("aoti_torch_", "torch_")) for name in symbols)


def abi_of(symbols: Iterable[str]) -> str | None:
    """Return ``new`` or ``old`` for the C++11 string ABI of the names, None where none tells.

    ``std::string`` is ``Ss`` in the old ABI and ``std::__cxx11::basic_string`` in the new one.
    """
    names = [name for name in symbols if name.startswith("_Z")]
    if any("7__cxx11" in name for name in names):
        return "new"
    return "old" if any("Ss" in name and has_old_string(name) for name in names) else None


def has_old_string(name: str) -> bool:
    """Return whether a mangled name speaks of the old ``std::string``."""
    at = 2
    while at < len(name):
        match = _PARTS.match(name, at)
        if match is None:
            break
        part, at = match[0], match.end()
        if part == "Ss":
            return True
        if part.isdigit():
            at += min(int(part[:6]), len(name))
    return False
