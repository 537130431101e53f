"""Whether what a build left in an environment is what it was made for."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.archs import Coverage, coverage, describe
from envbuild.core.elf.libnames import is_torch_symbol
from envbuild.core.torchabi import torch_range
from envbuild.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.cuda import ComputeCapability
    from envbuild.model.facts import DeviceCode
    from envbuild.model.links import DeviceCodes, Links

_MOST_NAMES = 3
_CUDA = frozenset({".cu"})
_COMPILED = _CUDA | {".c", ".cc", ".cpp", ".cxx", ".pyx", ".rs", ".f90"}


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltPackage:
    """What one package brought into an environment.

    ``objects`` are the absolute paths of its shared objects; ``links`` and ``codes`` are theirs
    alone. ``pure`` says whether the installed wheel calls itself `none-any`.
    """

    name: str
    version: str
    objects: tuple[str, ...]
    links: Links
    codes: DeviceCodes
    pure: bool = False

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltFor:
    """What a package was to be built for.

    ``capabilities`` are those of the GPUs; empty where nothing is compiled for a GPU. ``torch``
    is the version that is installed. ``compiled`` and ``cuda`` say whether its source has files
    that are compiled, and for a GPU.
    """

    capabilities: tuple[ComputeCapability, ...]
    torch: str
    compiled: bool = True
    cuda: bool = True


def judge_build(built: BuiltPackage, aim: BuiltFor) -> tuple[Finding, ...]:
    """Return what is wrong with a build, errors alone; nothing means that it is sound."""
    if not built.objects:
        return tuple(_hollow(built, aim))
    found = (*_code(built, aim), *_links(built, aim), *_broken(built))
    return tuple(found)


def _finding(code: str, built: BuiltPackage, message: str, *evidence: str) -> Finding:
    return Finding(
        code=code,
        severity=Severity.ERROR,
        subject=built.label,
        message=f"{built.label} {message}",
        evidence=evidence,
    )


def source_kinds(names: Iterable[str]) -> tuple[bool, bool]:
    """Return whether sources of these names are compiled, and whether some are for a GPU."""
    endings = {posixpath.splitext(name)[1].lower() for name in names}
    return bool(endings & _COMPILED), bool(endings & _CUDA)


def _hollow(built: BuiltPackage, aim: BuiltFor) -> Iterator[Finding]:
    if aim.compiled:
        tag = " (its wheel is `none-any`)" if built.pure else ""
        yield _finding("EB109", built, f"was built without any compiled module{tag}")


def _code(built: BuiltPackage, aim: BuiltFor) -> Iterator[Finding]:
    """Judge the GPU code of all objects together: kernels and bindings may lie apart."""
    if not aim.capabilities:
        return
    names = [posixpath.basename(path) for path in built.objects]
    if not built.codes.binaries and not aim.cuda:
        return
    if not built.codes.binaries:
        only_cpu = all("_cpu" in name for name in names)
        what = "has only *_cpu.so" if only_cpu else "has no GPU code"
        yield _finding("EB109", built, f"was built without its CUDA part: it {what}", *names[:3])
        return
    for one in built.codes.binaries:
        lost = [gpu for gpu in aim.capabilities if not _runs(one.code, gpu)]
        if lost:
            missing = " and ".join(gpu.sm for gpu in lost)
            name = posixpath.basename(one.path)
            text = f"was built without code for {missing}: `{name}` has {describe(one.code)}"
            yield _finding("EB401", built, text, one.path)


def _runs(code: DeviceCode, gpu: ComputeCapability) -> bool:
    return coverage(code, gpu) is not Coverage.NONE


def _links(built: BuiltPackage, aim: BuiltFor) -> Iterator[Finding]:
    own = set(built.objects)
    torch = sorted(
        {o.name for o in built.links.symbols if o.path in own and is_torch_symbol(o.name.encode())}
    )
    if torch:
        fitting = torch_range(
            name for one in built.links.torch_users if one.path in own for name in one.symbols
        )
        whose = f"torch {fitting[0]} to {fitting[-1]}" if fitting else "another torch"
        text = f"was built for {whose}: torch {aim.torch} lacks {len(torch)} of its symbols"
        yield _finding("EB302", built, text, *torch[:_MOST_NAMES])
    other = sorted({o.name for o in built.links.symbols if o.path in own} - set(torch))
    if other:
        text = f"needs {len(other)} symbols that nothing it loads defines"
        yield _finding("EB301", built, text, *other[:_MOST_NAMES])
    absent = sorted({o.library for o in built.links.libraries if o.path in own and not o.optional})
    if absent:
        yield _finding("EB304", built, f"needs `{'`, `'.join(absent)}`, which is not there")


def _broken(built: BuiltPackage) -> Iterator[Finding]:
    own = set(built.objects)
    for one in built.links.broken:
        if one.path in own:
            yield _finding("EB307", built, f"left `{one.path}`, which is no whole shared object")
