"""Judge which symbols nothing defines, and which versions a library lacks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.elf.libnames import (
    is_driver_symbol,
    is_python_symbol,
    is_torch_library,
    is_torch_symbol,
)
from envbuild.core.link.process import package_of
from envbuild.core.link.scope import owner_among
from envbuild.model.links import MissingSymbol, MissingVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from envbuild.core.elf.sharedobject import VersionNeed
    from envbuild.core.link.scope import Scopes
    from envbuild.core.link.search import Module

_FAMILY = re.compile(r"(.*?)_?(\d+(?:\.\d+)*)")


def missing_symbols(
    scopes: Scopes,
    *,
    sites: tuple[str, ...],
    has_python: bool,
    others: Callable[[str], tuple[Module, ...]],
) -> Iterator[MissingSymbol]:
    """Give the undefined symbols that no object in scope defines, with no regard to versions.

    Weak ones may stay undefined and the driver's are left to the driver. Where libraries are
    missing, only symbols are judged whose owner is there. ``others`` gives the objects of a
    package: what one of them defines, the package is taken to load before.
    """
    for module in scopes.reached:
        rest = _unresolved(scopes, module)
        rest = {name for name in rest if not is_driver_symbol(name)}
        if not has_python:
            rest = {name for name in rest if not is_python_symbol(name)}
        if not rest:
            continue
        scope = scopes.of(module)
        if not scopes.is_whole(module):
            rest = {name for name in rest if _has_read_owner(scopes, name, scope)}
            if is_torch_library(module.name) and any(map(is_torch_library, scopes.holes(module))):
                # which of torch's libraries defines a symbol of torch, no name tells
                rest = {name for name in rest if not is_torch_symbol(name)}
        for other in others(package_of(module.path, sites)) if rest else ():
            rest = {name for name in rest if not scopes.defines(other, name)}
        yield from _reports(scopes, module, _less_unlinked(scopes, module, rest))


def _less_unlinked(scopes: Scopes, module: Module, names: set[bytes]) -> set[bytes]:
    """Leave out what torch defines for an object that is linked to nothing of torch.

    It works nowhere unless its package opens torch's libraries for all to see beforehand
    (``cuda.core._tensor_bridge``); where there is no torch, it is not used.
    """
    linked = {one for closure in scopes.reached[module] for one in closure.modules}
    libraries = (*module.elf.needed, *(one.name for one in linked))
    if not names or any(map(is_torch_library, libraries)):
        return names
    torch = [one for one in scopes.loaded if is_torch_library(one.name)]
    return {
        name
        for name in names
        if not is_torch_symbol(name)
        or (torch and not any(scopes.defines(one, name) for one in torch))
    }


def _has_read_owner(scopes: Scopes, name: bytes, scope: tuple[Module, ...]) -> bool:
    owner = owner_among(name, scope)
    return owner is not None and owner.path not in scopes.loader.unread


def _unresolved(scopes: Scopes, module: Module) -> set[bytes]:
    """Return the strong names that neither a quick look nor the exact one finds."""
    rest = {wanted.name for wanted in scopes.undefined(module) if not wanted.weak}
    rest -= scopes.common
    for other in scopes.first(module):
        if not rest:
            return rest
        if other is not module:
            rest = scopes.without(rest, other)
    for other in scopes.of(module) if rest else ():
        rest = {name for name in rest if not scopes.defines(other, name)}
        if not rest:
            break
    return rest


def _reports(scopes: Scopes, module: Module, names: set[bytes]) -> Iterator[MissingSymbol]:
    if not names:
        return
    needs = {need.index: need for need in scopes.needs(module)}
    scope = scopes.of(module)
    for wanted in scopes.undefined(module):
        if wanted.name in names:
            names.discard(wanted.name)
            need = needs.get(wanted.version)
            yield _report(module, wanted.name, need, (*scope, *scopes.loaded))


def _report(
    module: Module, name: bytes, need: VersionNeed | None, scope: tuple[Module, ...]
) -> MissingSymbol:
    owner = owner_among(name, scope)
    if owner is None and need is not None:
        owner = _by_name(scope).get(need.library)
    return MissingSymbol(
        path=module.path,
        name=name.decode("utf-8", errors="backslashreplace"),
        version=need.version if need is not None else None,
        provider=owner.path if owner is not None else None,
    )


def _by_name(scope: tuple[Module, ...]) -> dict[str, Module]:
    found: dict[str, Module] = {}
    for module in scope:
        if module.elf.soname:
            found.setdefault(module.elf.soname, module)
        found.setdefault(module.name, module)
    return found


def missing_versions(scopes: Scopes) -> Iterator[MissingVersion | MissingSymbol]:
    """Give the versions that the library found does not define, and symbols of another version.

    A library without any versions takes every reference: the loader only warns.
    """
    proven: dict[tuple[Module, str], set[bytes]] = {}
    for module in scopes.reached:
        needs = scopes.needs(module)
        if not needs:
            continue
        providers = _by_name((*scopes.seen_by_all, *scopes.first(module)))
        sound: dict[int, tuple[VersionNeed, Module]] = {}
        for need in needs:
            provider = providers.get(need.library)
            defined = scopes.definitions(provider) if provider is not None else {}
            if provider is None or not defined:
                continue
            if need.version in defined.values():
                sound[need.index] = (need, provider)
            elif not need.weak:
                yield _version(module, need, provider, tuple(defined.values()))
        yield from _other_versions(scopes, module, sound, proven)


def _version(
    module: Module, need: VersionNeed, provider: Module, defined: tuple[str, ...]
) -> MissingVersion:
    return MissingVersion(
        path=module.path,
        library=need.library,
        version=need.version,
        found=provider.path,
        newest=newest_of(need.version, defined),
    )


def newest_of(version: str, defined: tuple[str, ...]) -> str | None:
    """Return the newest version of the same family: of the ``GLIBC_`` ones for GLIBC_2.38."""
    wanted = _FAMILY.fullmatch(version)
    if wanted is None:
        return None
    matches = (_FAMILY.fullmatch(name) for name in defined)
    family = [match for match in matches if match is not None and match[1] == wanted[1]]
    newest = max(family, key=lambda match: tuple(map(int, match[2].split("."))), default=None)
    return newest[0] if newest is not None else None


def _other_versions(
    scopes: Scopes,
    module: Module,
    sound: dict[int, tuple[VersionNeed, Module]],
    proven: dict[tuple[Module, str], set[bytes]],
) -> Iterator[MissingSymbol]:
    """Give the symbols that the library has, and not in the version asked for.

    ``proven`` are those found so far: every object asks the same of the C library.
    """
    asked: dict[int, set[bytes]] = {index: set() for index in sound}
    for name, weak, index in scopes.undefined(module):
        if index in asked and index > 1 and not weak:
            asked[index].add(name)
    for index, (need, provider) in sound.items():
        known = proven.setdefault((provider, need.version), set())
        for name in sorted(asked[index] - known):
            if scopes.defines(provider, name, need.version):
                known.add(name)
            elif scopes.defines(provider, name):  # else it is judged by its name
                scope = scopes.of(module)
                if not any(scopes.defines(other, name, need.version) for other in scope):
                    yield _report(module, name, need, (*scope, *scopes.loaded))
