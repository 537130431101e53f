"""EB602, EB603: the host compiler and the C library of a build."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.checks.archlist import RULES as _ARCH_RULES
from envbuild.checks.buildparts import RULES as _PART_RULES
from envbuild.checks.rule import rule
from envbuild.checks.toolkit import RULES as _TOOLKIT_RULES
from envbuild.checks.toolkit import toolkit_of
from envbuild.core.buildtools import clashes_with_glibc, newest_host_compiler
from envbuild.model.builds import Builds
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Export, Manual
from envbuild.model.host import Host

if TYPE_CHECKING:
    from envbuild.model.fix import Fix
    from envbuild.model.host import Compiler

_GCC = re.compile(r"(?:[\w-]+-)?(?:g\+\+|gcc|c\+\+|cc)(?:-[\d.]+)?")
_CLANG = re.compile(r"(?:[\w-]+-)?clang(?:\+\+)?(?:-[\d.]+)?")


@rule("EB602", "The host compiler is newer than nvcc allows", severity=Severity.ERROR)
def new_compiler(host: Host, builds: Builds) -> Iterator[Finding]:
    """Each nvcc accepts host compilers up to a release; a newer one is refused.

    **What it finds.** A g++ or clang newer than the nvcc that is used
    accepts, by NVIDIA's table of host compilers.

    **Why it matters.** `#error -- unsupported GNU version! gcc versions later than 14 are not
    supported!`, after minutes of building. torch's own check ends at CUDA 11.7 and says nothing.

    **Example.** g++ 15.1 with nvcc 12.8, which accepts g++ up to 14.

    **Fix.** Install an older g++ and name it in `CC`, `CXX` and `CUDAHOSTCXX`.
    """
    toolkit = toolkit_of(host)
    if toolkit is None or toolkit.version is None:
        return
    compiler = _compiler(host)
    kind = _kind(compiler) if compiler else None
    newest = newest_host_compiler(kind, toolkit.version) if kind else None
    major = _major(compiler) if compiler else None
    if compiler is None or newest is None or major is None or major <= newest:
        return
    name = "g++" if kind == "gcc" else "clang"
    yield Finding(
        code="EB602",
        severity=Severity.ERROR,
        subject=compiler.path,
        message=f"{name} {compiler.version} is newer than nvcc {toolkit.version} accepts"
        f" ({name} {newest} at most)",
        evidence=(f"nvcc is of {toolkit.path}",),
        fixes=_older(host, kind or "gcc", newest),
        brings=tuple(f"build:{one}" for one in builds.packages),
    )


def _compiler(host: Host) -> Compiler | None:
    """Return the C++ compiler that nvcc is given: those that variables name come first."""
    return next((one for one in host.compilers if _kind(one) is not None), None)


def _kind(compiler: Compiler) -> str | None:
    name = posixpath.basename(compiler.path)
    if _GCC.fullmatch(name):
        return "gcc"
    return "clang" if _CLANG.fullmatch(name) else None


def _major(compiler: Compiler) -> int | None:
    try:
        return Version(compiler.version or "").major
    except InvalidVersion:
        return None


def _older(host: Host, kind: str, newest: int) -> tuple[Fix, ...]:
    """Name the newest compiler that is accepted, of those that are there."""
    fitting = [
        (major, one.path)
        for one in host.compilers
        if _kind(one) == kind
        and (major := _major(one)) is not None
        and major <= newest
        and re.match(r"(?:g\+\+|clang\+\+|c\+\+)", posixpath.basename(one.path))
    ]
    if fitting:
        path = max(fitting)[1]
        cc = path.replace("clang++", "clang").replace("g++", "gcc")
        return (
            Export(variable="CC", value=cc),
            Export(variable="CXX", value=path),
            Export(variable="CUDAHOSTCXX", value=path),
        )
    cc, cxx = ("gcc", "g++") if kind == "gcc" else ("clang", "clang++")
    package = f"{cxx if kind == 'gcc' else cc}-{newest}"
    return (
        Manual(
            text=(
                f"apt-get install -y {package} && export CC={cc}-{newest} CXX={cxx}-{newest}"
                f" CUDAHOSTCXX={cxx}-{newest}"
            )
        ),
    )


@rule("EB603", "The C library's headers clash with an old CUDA", severity=Severity.ERROR)
def new_glibc(host: Host, builds: Builds) -> Iterator[Finding]:
    """The headers of glibc 2.41 declare functions that CUDA before 13 declares otherwise.

    **What it finds.** glibc 2.41 or newer with nvcc 12.9 or older.

    **Why it matters.** `exception specification is incompatible with that of previous function
    "cospi"` in mathcalls.h, whatever the compiler: an older g++ does not help.

    **Example.** CUDA 12.8 on Debian 13 or Fedora 42.

    **Fix.** Use a toolkit of CUDA 13, or build in an image with an older glibc (Ubuntu 24.04).
    """
    toolkit = toolkit_of(host)
    if toolkit is None or toolkit.version is None or host.glibc is None:
        return
    if not clashes_with_glibc(toolkit.version, host.glibc):
        return
    yield Finding(
        code="EB603",
        severity=Severity.ERROR,
        subject=toolkit.path,
        message=(
            f"the headers of glibc {host.glibc} clash with those of CUDA {toolkit.version}"
            " (`cospi`, `sinpi`)"
        ),
        fixes=(
            Manual(
                text="build in an image with glibc 2.40 or older (Ubuntu 24.04, Debian 12), or"
                " with CUDA 13 and a torch built for it"
            ),
        ),
        brings=tuple(f"build:{one}" for one in builds.packages),
    )


RULES = (*_TOOLKIT_RULES, new_compiler, new_glibc, *_ARCH_RULES, *_PART_RULES)
