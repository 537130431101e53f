"""Which C++ compiler nvcc is given, and which of those that are there it accepts."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.core.buildtools import newest_host_compiler

if TYPE_CHECKING:
    from envbuild.model.cuda import CudaVersion
    from envbuild.model.host import Compiler

_GCC = re.compile(r"(?:[\w-]+-)?(?:g\+\+|gcc|c\+\+|cc)(?:-[\d.]+)?")
_CLANG = re.compile(r"(?:[\w-]+-)?clang(?:\+\+)?(?:-[\d.]+)?")
_C_NAMES = {"clang++": "clang", "g++": "gcc", "c++": "cc"}
_C_OF = re.compile(r"clang\+\+|g\+\+|c\+\+")
_CXX = re.compile(r"(?:g\+\+|clang\+\+|c\+\+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class TooNew:
    """A compiler that is newer than nvcc accepts.

    ``kind`` is ``gcc`` or ``clang``, ``newest`` the newest major accepted. ``fitting`` is the
    path of a C++ compiler of that kind that is there and old enough, None where there is none.
    """

    compiler: Compiler
    kind: str
    newest: int
    fitting: str | None

    @property
    def name(self) -> str:
        """How the compiler is called: ``g++``, ``clang``."""
        return "g++" if self.kind == "gcc" else "clang"

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """What makes a build take the fitting compiler."""
        if self.fitting is None:
            return ()
        cc = c_compiler(self.fitting)
        return (("CC", cc), ("CXX", self.fitting), ("CUDAHOSTCXX", self.fitting))


def too_new(compilers: tuple[Compiler, ...], nvcc: CudaVersion) -> TooNew | None:
    """Judge the compiler that nvcc takes: the first, since those that variables name stand first.

    None is returned where it is accepted, or not known.
    """
    compiler = host_compiler(compilers)
    kind = kind_of(compiler) if compiler else None
    newest = newest_host_compiler(kind, nvcc) if kind else None
    found = major_of(compiler) if compiler else None
    if compiler is None or kind is None or newest is None or found is None or found <= newest:
        return None
    fitting = [
        (major, one.path)
        for one in compilers
        if kind_of(one) == kind
        and (major := major_of(one)) is not None
        and major <= newest
        and _CXX.match(posixpath.basename(one.path))
    ]
    best = max(fitting, default=(0, None))[1]
    return TooNew(compiler=compiler, kind=kind, newest=newest, fitting=best)


def host_compiler(compilers: tuple[Compiler, ...]) -> Compiler | None:
    """Return the C++ compiler that nvcc is given, None where there is none."""
    return next((one for one in compilers if kind_of(one) is not None), None)


def c_compiler(path: str) -> str:
    """Return the C compiler beside a C++ compiler."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, _C_OF.sub(lambda one: _C_NAMES[one[0]], name))


def kind_of(compiler: Compiler) -> str | None:
    """Return ``gcc`` or ``clang``, None for anything else."""
    name = posixpath.basename(compiler.path)
    if _GCC.fullmatch(name):
        return "gcc"
    return "clang" if _CLANG.fullmatch(name) else None


def major_of(compiler: Compiler) -> int | None:
    """Return the major version of a compiler, None where it is not known."""
    try:
        return Version(compiler.version or "").major
    except InvalidVersion:
        return None
