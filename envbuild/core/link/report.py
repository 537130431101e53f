"""Work out what the dynamic loader would find in an environment, and put it into one report."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envbuild.core.elf.libnames import is_driver_library, is_indispensable
from envbuild.core.link.importwalk import ImportWalk
from envbuild.core.link.loader import Loader
from envbuild.core.link.process import import_torch, note_cudnn_parts, package_of, start
from envbuild.core.link.roots import find_roots, is_extension_name, is_torch_core
from envbuild.core.link.scope import Scopes
from envbuild.core.link.stoppedmodules import stopped_modules
from envbuild.core.link.symbols import missing_symbols, missing_versions
from envbuild.core.link.torchusers import torch_users
from envbuild.core.link.variants import for_other_cuda, for_other_torch
from envbuild.model.links import Links, MissingLibrary, MissingSymbol, MissingVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.core.link.loader import Gap
    from envbuild.core.link.process import Process, Program
    from envbuild.core.link.search import Library, Module, SearchPath
    from envbuild.core.link.stoppedmodules import Sources
    from envbuild.model.links import StoppedModule

_SELF_SUFFICIENT = frozenset({"torch", "nvidia", "functorch"})


@dataclass(kw_only=True, slots=True)
class Files:
    """The shared objects of an environment, by name and by package."""

    paths: tuple[str, ...]
    sites: tuple[str, ...]
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    _by_package: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.paths:
            self._by_name.setdefault(posixpath.basename(path), []).append(path)
            self._by_package.setdefault(package_of(path, self.sites), []).append(path)

    def nearest(self, name: str, module: Module) -> str | None:
        """Return the file of that name closest to an object, for one that loads it by itself.

        torch and NVIDIA's libraries do not: what torch opens is modelled exactly.
        """
        if package_of(module.path, self.sites) in _SELF_SUFFICIENT or is_driver_library(name):
            return None
        paths = self._by_name.get(name, ())
        return max(
            paths, key=lambda path: len(posixpath.commonpath([path, module.path])), default=None
        )

    def by_package(self) -> tuple[tuple[str, ...], ...]:
        """Return the objects of each package."""
        return tuple(map(tuple, self._by_package.values()))

    def of_package(self, package: str) -> tuple[str, ...]:
        """Return what a package may load beforehand so that all see it; torch and NVIDIA do not."""
        return () if package in _SELF_SUFFICIENT else tuple(self._by_package.get(package, ()))


def read_links(
    paths: Iterable[str],
    program: Program,
    *,
    library: Library,
    search: SearchPath,
    tag: str,
    sources: Sources | None = None,
) -> Links:
    """Judge an environment from its shared objects.

    ``paths`` are the shared objects in the sites, ``tag`` that of the interpreter's extension
    modules. Without ``sources`` no import is followed.
    """
    files = Files(paths=tuple(paths), sites=program.sites)
    loader = Loader(library=library, search=search, fallback=files.nearest)
    process = start(loader, program)
    import_torch(process)
    scopes = _scopes(process, files, tag=tag)
    note_cudnn_parts(process)
    has_python = any(scopes.defines(one, b"PyObject_GetAttr") for one in scopes.seen_by_all)

    def others(package: str) -> tuple[Module, ...]:
        found = (loader.module(path) for path in files.of_package(package))
        return tuple(module for module in found if module is not None)

    versions = tuple(dict.fromkeys(missing_versions(scopes)))
    symbols = missing_symbols(scopes, sites=program.sites, has_python=has_python, others=others)
    missing = tuple(_merged(symbols, versions))
    users = tuple(torch_users(scopes, sites=program.sites))
    broken, unread = (
        tuple(one for path, one in sorted(kept.items()) if _matters(path, process, scopes, tag=tag))
        for kept in (loader.broken, loader.unread)
    )
    loaded = tuple(sorted(loader.loaded.values(), key=lambda one: (one.soname, one.path)))
    return Links(
        libraries=tuple(_libraries(scopes)),
        symbols=missing,
        versions=tuple(
            sorted((one for one in versions if isinstance(one, MissingVersion)), key=repr)
        ),
        loaded=loaded,
        torch_users=tuple(sorted(users, key=lambda one: one.path)),
        broken=broken,
        unread=unread,
        examined=len(scopes.reached),
        stopped=tuple(_stopped(process, files, scopes, sources, tag=tag)) if sources else (),
    )


def _stopped(
    process: Process, files: Files, scopes: Scopes, sources: Sources, *, tag: str
) -> Iterator[StoppedModule]:
    walk = ImportWalk(
        sites=files.sites,
        names=process.loader.library.names,
        text=sources.text,
        tag=tag,
        machine=process.loader.search.machine,
    )
    return stopped_modules(
        process, scopes.closures, walk=walk, sources=sources, packages=files.by_package()
    )


def _scopes(process: Process, files: Files, *, tag: str) -> Scopes:
    closures = []
    program = process.program
    others = {
        *for_other_torch(files.paths, sites=files.sites, torch=program.torch_version),
        *for_other_cuda(files.paths, sites=files.sites, cuda=program.torch_cuda or ""),
    }
    paths = tuple(path for path in files.paths if path not in others)
    for root in find_roots(paths, process.loader, sites=files.sites, tag=tag):
        load = process.load if is_torch_core(root.path) else process.load_apart
        closures.append(load(root))
    return Scopes(
        loader=process.loader,
        seen_by_all=tuple(process.seen_by_all),
        closures=tuple(dict.fromkeys((*process.closures, *closures))),
        loaded=tuple(dict.fromkeys(process.names.values())),
    )


def _libraries(scopes: Scopes) -> Iterator[MissingLibrary]:
    """Give what is missing; a library that is there and was not read is not."""
    unread = {posixpath.basename(path) for path in scopes.loader.unread}
    gaps: dict[tuple[str, str], Gap] = {}
    for closure in scopes.closures:
        for gap in closure.gaps:
            if gap.library in unread:
                continue
            gaps.setdefault((gap.module.path, gap.library), gap)
    for (path, library), gap in sorted(gaps.items()):
        yield MissingLibrary(path=path, library=library, optional=_is_optional(gap))


def _is_optional(gap: Gap) -> bool:
    if gap.elsewhere is not None and not gap.library.startswith("libcudart."):
        return True  # a package may well open that file before
    return not is_indispensable(gap.library) or is_driver_library(gap.library)


def _merged(
    symbols: Iterator[MissingSymbol], versions: tuple[MissingVersion | MissingSymbol, ...]
) -> list[MissingSymbol]:
    """Join both kinds of missing symbols, less those whose whole version is missing."""
    gone = {(one.path, one.version) for one in versions if isinstance(one, MissingVersion)}
    found = {
        (one.path, one.name, one.version): one
        for one in (*symbols, *versions)
        if isinstance(one, MissingSymbol) and (one.path, one.version) not in gone
    }
    return [found[key] for key in sorted(found, key=repr)]


def _matters(path: str, process: Process, scopes: Scopes, *, tag: str) -> bool:
    """Say whether a file that was not read would be opened: it is needed, or an extension module.

    A file of zeros always matters. What else is no shared object may be a linker script.
    """
    machine = process.loader.search.machine
    name = posixpath.basename(path)
    if path in process.loader.blank or is_extension_name(name, tag=tag, machine=machine):
        return True
    if path in process.loader.foreign:
        return False
    return any(name in module.elf.needed or module.path == path for module in scopes.reached)
