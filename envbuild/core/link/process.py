"""A Python process as it would stand after `import torch`: what is loaded, and who sees whom."""

from __future__ import annotations

import itertools
import posixpath
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from envbuild.core.link.search import PRELOAD
from envbuild.core.link.torchpreload import parse_preload, preload_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.link.loader import Closure, Loader
    from envbuild.core.link.search import Module
    from envbuild.core.link.torchpreload import Opened, Preload

_MATH = "libm.so.6"
GLOBAL_DEPS = "torch/lib/libtorch_global_deps.so"
_CUDNN_PARTS = (
    "adv",
    "cnn",
    "engines_precompiled",
    "engines_runtime_compiled",
    "engines_tensor_ir",
    "graph",
    "heuristic",
    "ops",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What is run: an interpreter, and the folders it imports from.

    ``torch_text`` is the text of torch/__init__.py, ``torch_version`` its version, and
    ``torch_cuda`` that of its CUDA.
    """

    executable: str
    sites: tuple[str, ...]
    ld_preload: tuple[str, ...] = ()
    torch_text: str = ""
    torch_cuda: str | None = None
    torch_version: str = ""


@dataclass(kw_only=True, slots=True)
class Process:
    """``names`` are the libraries loaded so far, ``seen_by_all`` what every object may use.

    ``closures`` are those of what was loaded on the way, which must be sound as well.
    """

    loader: Loader
    program: Program
    main: Module | None = None
    names: dict[str, Module] = field(default_factory=dict)
    seen_by_all: dict[Module, None] = field(default_factory=dict)
    closures: list[Closure] = field(default_factory=list)

    @property
    def chain(self) -> tuple[Module, ...]:
        """The objects that open an extension module: the interpreter's library and program."""
        return () if self.main is None else (self.main,)

    def load(self, module: Module) -> Closure:
        """Load an object for good."""
        closure = self.loader.close_over(module, self.names, self.chain)
        self.closures.append(closure)
        return closure

    def load_apart(self, module: Module) -> Closure:
        """Load an object in a copy of the process: modules are imported in any order."""
        return self.loader.close_over(module, dict(self.names), self.chain)


def start(loader: Loader, program: Program) -> Process:
    """Start the interpreter, with what LD_PRELOAD names before anything else."""
    process = Process(loader=loader, program=program)
    if program.executable:  # the kernel follows links: `$ORIGIN` is that of the program itself
        process.main = loader.module(loader.library.real(program.executable))
    if process.main is not None:
        loader.search = replace(loader.search, main=process.main)
        for name in program.ld_preload:
            _preload(process, name, process.main)
        process.seen_by_all[process.main] = None
        process.seen_by_all.update(dict.fromkeys(process.load(process.main).modules))
    else:
        process.seen_by_all.update(dict.fromkeys(_mathematics(loader)))
    return process


def _mathematics(loader: Loader) -> Iterator[Module]:
    """Give the libm that every CPython loads: modules made by mypyc use it and do not name it.

    It stands in for an interpreter that cannot be read.
    """
    folders = loader.search.default_folders()
    paths = (*loader.search.cache.get(_MATH, ()), *(f"{folder}/{_MATH}" for folder in folders))
    found = (loader.module(path) for path in paths)
    yield from itertools.islice((one for one in found if one is not None), 1)


def _preload(process: Process, name: str, main: Module) -> None:
    loader = process.loader
    found = loader.module(name) if "/" in name else (loader.find(name, main) or (None,))[0]
    if found is None:
        return  # the loader warns and goes on
    process.names.setdefault(name, found)
    loader.note_loaded(found.elf.soname or name, found, how=PRELOAD, needed_by="LD_PRELOAD")
    process.seen_by_all.update(dict.fromkeys(process.load(found).modules))


def import_torch(process: Process) -> None:
    """Load what `import torch` loads before its own extension module."""
    for site in process.program.sites:
        module = process.loader.module(f"{site}/{GLOBAL_DEPS}")
        if module is not None:
            _load_global(process, module)
            return


def _load_global(process: Process, module: Module) -> None:
    program = process.program
    preload = parse_preload(program.torch_text, cuda=program.torch_cuda)
    closure = process.load_apart(module)
    if closure.is_whole:
        process.seen_by_all.update(dict.fromkeys(process.load(module).modules))
        if any(preload.cudart in found.real for found in process.names.values()):
            _open_all(process, preload.always, preload)
        return
    if _is_about(preload, closure):
        _open_all(process, preload.on_failure, preload)
    process.seen_by_all.update(dict.fromkeys(process.load(module).modules))


def _is_about(preload: Preload, closure: Closure) -> bool:
    """Say whether torch looks for a library itself: it compares the names up to the first dot."""
    known = {one.pattern.partition(".")[0] for one in preload.on_failure}
    return any(gap.library.partition(".")[0] in known for gap in closure.gaps)


def _open_all(process: Process, wanted: tuple[Opened, ...], preload: Preload) -> None:
    program, loader = process.program, process.loader
    major = (program.torch_cuda or "").partition(".")[0]
    for one in wanted:
        path = preload_path(loader.library, program.sites, preload.places, one=one, major=major)
        module = loader.module(path) if path is not None else None
        if module is None:
            if one.required:
                return
            continue
        if module.elf.soname not in process.names:
            name = module.elf.soname or module.name
            loader.note_loaded(name, module, how=PRELOAD, needed_by="torch/__init__.py")
        process.load(module)


def note_cudnn_parts(process: Process) -> None:
    """Note where cuDNN's parts are found: it opens them by bare names when it needs them."""
    for name, module in tuple(process.names.items()):
        stem, _, version = name.partition(".so.")
        if stem != "libcudnn" or module.elf.soname != name:
            continue
        for part in _CUDNN_PARTS:
            wanted = f"libcudnn_{part}.so.{version}"
            found = process.loader.find(wanted, module, process.chain)
            if found is not None and wanted not in process.names:
                process.loader.note_loaded(wanted, found[0], how=found[1], needed_by=module.path)


def package_of(path: str, sites: tuple[str, ...]) -> str:
    """Return the first folder below a site that holds a path: ``torch``, ``nvidia`` ..."""
    for site in sites:
        if path.startswith(f"{site}/"):
            return path[len(site) + 1 :].partition("/")[0].removesuffix(".libs")
    return posixpath.dirname(path)
