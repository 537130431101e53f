"""EB602, EB603: the host compiler and the C library of a build."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.archlist import RULES as _ARCH_RULES
from envbuild.checks.buildparts import RULES as _PART_RULES
from envbuild.checks.rule import rule
from envbuild.checks.toolkit import RULES as _TOOLKIT_RULES
from envbuild.checks.toolkit import is_of_another_cuda, toolkit_of
from envbuild.core.buildtools import clashes_with_glibc
from envbuild.core.hostcompiler import too_new
from envbuild.model.builds import Builds
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Export, Manual
from envbuild.model.host import Host
from envbuild.model.installed import Installed

if TYPE_CHECKING:
    from envbuild.core.hostcompiler import TooNew
    from envbuild.model.fix import Fix


@rule("EB602", "The host compiler is newer than nvcc allows", severity=Severity.ERROR)
def new_compiler(host: Host, builds: Builds, installed: Installed | None) -> Iterator[Finding]:
    """Each nvcc accepts host compilers up to a release; a newer one is refused.

    **What it finds.** A g++ or clang newer than the nvcc that is used
    accepts, by NVIDIA's table of host compilers.

    **Why it matters.** `#error -- unsupported GNU version! gcc versions later than 14 are not
    supported!`, after minutes of building. torch's own check ends at CUDA 11.7 and says nothing.

    **Example.** g++ 15.1 with nvcc 12.8, which accepts g++ up to 14.

    **Fix.** Install an older g++ and name it: `export CC=gcc-14 CXX=g++-14 CUDAHOSTCXX=g++-14`.
    """
    toolkit = toolkit_of(host)
    if toolkit is None or toolkit.version is None or is_of_another_cuda(toolkit, installed):
        return
    found = too_new(host.compilers, toolkit.version)
    if found is None:
        return
    yield Finding(
        code="EB602",
        severity=Severity.ERROR,
        subject=found.compiler.path,
        message=f"{found.name} {found.compiler.version} is newer than nvcc {toolkit.version}"
        f" accepts ({found.name} {found.newest} at most)",
        evidence=(f"nvcc is of {toolkit.path}",),
        fixes=_older(found),
        brings=tuple(f"build:{one}" for one in builds.packages),
    )


def _older(found: TooNew) -> tuple[Fix, ...]:
    """Name the newest compiler that is accepted, of those that are there."""
    if found.variables:
        return tuple(Export(variable=name, value=value) for name, value in found.variables)
    newest = found.newest
    cc, cxx = ("gcc", "g++") if found.kind == "gcc" else ("clang", "clang++")
    package = f"{cxx if found.kind == 'gcc' else cc}-{newest}"
    return (
        Manual(
            text=(
                f"apt-get install -y {package} && export CC={cc}-{newest} CXX={cxx}-{newest}"
                f" CUDAHOSTCXX={cxx}-{newest}"
            )
        ),
    )


@rule("EB603", "The C library's headers clash with an old CUDA", severity=Severity.ERROR)
def new_glibc(host: Host, builds: Builds, installed: Installed | None) -> Iterator[Finding]:
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
    if is_of_another_cuda(toolkit, installed):
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
