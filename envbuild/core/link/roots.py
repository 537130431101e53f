"""Which files of an environment the interpreter opens by itself: the roots of what is judged.

A root is an extension module for this interpreter, or a library outside torch that is linked to
torch (``torch.ops.load_library``). Plug-ins that a library opens when it wants to are none, nor
are copies of Python's own modules (``deploy_libs/_ssl.cpython-311-….so`` of panda3d).
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from envbuild.core.elf.libnames import is_torch_library
from envbuild.core.elf.sharedobject import ElfError
from envbuild.core.link.process import package_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.core.link.loader import Loader
    from envbuild.core.link.search import Module

_EXTENSION = re.compile(r"\.(?:cpython-(?P<tag>\d+[a-z]*)(?:-(?P<platform>[\w-]+))?|abi3t?)\.so")
_MODULE = re.compile(r"(\w+)\.so")
_TESTS = frozenset({"test", "tests"})
_OF_PYTHON = frozenset({"_ssl", "_hashlib", "_ctypes", "_sqlite3", "_tkinter", "readline"})
_DEBUG = re.compile(r"(\d+t?)d?m?u?")


def tag_of(python: str, *, free_threaded: bool = False) -> str:
    """Return the tag of extension modules: ``311`` for Python 3.11.7, ``313t`` without GIL.

    It is empty, and fits every module, where the version is not known.
    """
    if not python:
        return ""
    parts = python.split(".")
    return "".join(parts[:2]) + ("t" if free_threaded else "")


def is_extension_name(name: str, *, tag: str, machine: str) -> bool:
    """Return whether a file name is that of an extension module for this interpreter."""
    match = _EXTENSION.search(name)
    if match is None or match.end() != len(name):
        return False
    platform = match["platform"] or machine
    if machine not in platform or "musl" in platform:
        return False
    found = _DEBUG.fullmatch(match["tag"]) if match["tag"] else None
    return match["tag"] is None or not tag or (found is not None and found[1] == tag)


def find_roots(
    files: Iterable[str], loader: Loader, *, sites: tuple[str, ...], tag: str
) -> Iterator[Module]:
    """Give the roots among the files, torch's own extension module first."""
    modules = [(path, loader.module(path)) for path in files]
    found = [
        module
        for path, module in modules
        if module is not None and _is_root(path, module, loader, sites=sites, tag=tag)
    ]
    yield from sorted(dict.fromkeys(found), key=lambda module: not is_torch_core(module.path))


def is_torch_core(path: str) -> bool:
    """Return whether a path is torch's own extension module, which `import torch` loads."""
    return posixpath.dirname(path).endswith("/torch") and posixpath.basename(path).startswith("_C.")


def _is_for_frozen(path: str, name: str, sites: tuple[str, ...]) -> bool:
    """Say whether a file is a copy of Python's own module that a package puts into programs."""
    return name.partition(".")[0] in _OF_PYTHON and posixpath.dirname(path) not in sites


def _is_root(
    path: str, module: Module, loader: Loader, *, sites: tuple[str, ...], tag: str
) -> bool:
    name = posixpath.basename(path)
    if not _TESTS.isdisjoint(path.split("/")[-4:-1]) or _is_for_frozen(path, name, sites):
        return False
    if _EXTENSION.search(name):
        return is_extension_name(name, tag=tag, machine=module.elf.machine)
    if package_of(path, sites) != "torch" and any(map(is_torch_library, module.elf.needed)):
        return True
    plain = _MODULE.fullmatch(name)
    try:
        return plain is not None and module.elf.defines(f"PyInit_{plain[1]}".encode())
    except ElfError as error:
        loader.note(path, error)
        return False
