"""EB405, EB406, EB407: what some packages bring for one CUDA or one GPU alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from envbuild.checks.owners import torch_cuda, torch_label
from envbuild.checks.rule import rule
from envbuild.checks.tables import table
from envbuild.core.ptxas import TRITON_NAMES, ptxas_gap
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Export, Install, Manual, Unset
from envbuild.model.host import Host
from envbuild.model.installed import Installed
from envbuild.model.layers import Aim
from envbuild.model.links import DeviceCodes

if TYPE_CHECKING:
    from envbuild.core.ptxas import PtxasGap
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution

_BITSANDBYTES = re.compile(r"bitsandbytes/libbitsandbytes_cuda(?P<tag>\d{3})\w*\.so")
_BNB_VARIABLE = "BNB_CUDA_VERSION"
_TEGRA_RELEASE = re.compile(r"\D*(\d+)")
# Jetson Linux 38 (JetPack 7) runs the wheels made for Arm servers, older ones do not.
_FIRST_SERVER_TEGRA = 38
_MODULES = tuple(ComputeCapability(major=a, minor=b) for a, b in ((7, 2), (8, 7)))


@rule("EB405", "triton's assembler does not know the GPU", severity=Severity.WARNING)
def old_ptxas(installed: Installed, aim: Aim, host: Host) -> Iterator[Finding]:
    """The ptxas inside triton is older than the GPU, so torch.compile fails there.

    **What it finds.** Releases of triton whose own ptxas does not know a GPU that the
    environment is meant for, where no variable names another one.

    **Why it matters.** `ptxas fatal: Value 'sm_121a' is not defined for option 'gpu-name'` from
    torch.compile. torch itself runs: its warning that 12.1 is beyond the range it supports is
    harmless, since sm_120 code runs there.

    **Example.** triton 3.5.1 on a GB10 (sm_121).

    **Fix.** `export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas`, of a CUDA toolkit that knows the
    GPU.
    """
    for name in TRITON_NAMES:
        one = installed.find(name)
        gaps = [ptxas_gap(one.version, gpu) for gpu in aim.capabilities] if one else []
        for gap in dict.fromkeys(gap for gap in gaps if gap is not None):
            if one is None or host.variable(gap.variable):
                continue
            yield Finding(
                code="EB405",
                severity=Severity.WARNING,
                subject=one.label,
                message=gap.message(one.label),
                evidence=(gap.evidence,),
                hint=gap.hint,
                fixes=(_ptxas(gap, host),),
                because=(f"dist:{name}",),
            )


def _ptxas(gap: PtxasGap, host: Host) -> Fix:
    first = CudaVersion.parse(gap.first)
    for toolkit in host.toolkits:
        if toolkit.nvcc and toolkit.version and toolkit.version >= first:
            folder = posixpath.dirname(toolkit.nvcc)
            return Export(variable=gap.variable, value=f"{folder}/ptxas")
    return Manual(text=gap.hint)


@rule("EB406", "bitsandbytes has no library for torch's CUDA", severity=Severity.ERROR)
def no_bitsandbytes(installed: Installed, host: Host) -> Iterator[Finding]:
    """bitsandbytes opens the library named after torch's CUDA, and its wheel has none.

    **What it finds.** The files `libbitsandbytes_cudaXXX.so` of the wheel, against the CUDA of
    torch or the one that `BNB_CUDA_VERSION` names, which must be of torch's major.

    **Why it matters.** `Configured CUDA binary not found at .../libbitsandbytes_cuda131.so`, and
    every 8-bit and 4-bit function fails.

    **Example.** bitsandbytes has libraries for CUDA 11.8 to 13.0, torch is built for 13.1.

    **Fix.** Install a release that has it; where there is none, set `BNB_CUDA_VERSION` to the
    nearest of the same major.
    """
    cuda, one = torch_cuda(installed), installed.find("bitsandbytes")
    tags = _bitsandbytes_tags(installed)
    if cuda is None or one is None or not tags:
        return
    chosen = host.variable(_BNB_VARIABLE)
    wanted = chosen or cuda.tag[2:]
    if chosen and wanted in tags and not wanted.startswith(str(cuda.major)):
        yield _of_another_major(one, chosen, tags, installed)
    if wanted in tags:
        return
    same = [tag for tag in tags if CudaVersion.parse(f"cu{tag}").major == cuda.major]
    nearest: Fix = Install(requirements=(f"bitsandbytes>{one.version}",))
    if same:
        nearest = Export(variable=_BNB_VARIABLE, value=same[-1])
    release = None if chosen else _with_library(wanted, other_than=one.version)
    named = f"{_BNB_VARIABLE}={chosen}" if chosen else torch_label(installed)
    yield Finding(
        code="EB406",
        severity=Severity.ERROR,
        subject=one.label,
        message=f"{one.label} has no libbitsandbytes_cuda{wanted}.so, which {named} asks for",
        evidence=(f"it has {', '.join(tags)}",),
        hint=None if release else "a newer release may have it",
        fixes=(release or nearest,),
        because=("dist:torch", f"env:{_BNB_VARIABLE}") if chosen else ("dist:torch",),
        brings=("import:bitsandbytes",),
    )


def _of_another_major(
    one: Distribution, chosen: str, tags: list[str], installed: Installed
) -> Finding:
    """Say that a library is there, and needs a CUDA runtime that torch does not bring."""
    cuda = torch_cuda(installed)
    ours = cuda.tag[2:] if cuda else ""
    release = None if ours in tags else _with_library(ours, other_than=one.version)
    label = torch_label(installed)
    return Finding(
        code="EB406",
        severity=Severity.ERROR,
        subject=one.label,
        message=f"{_BNB_VARIABLE}={chosen} names a library of CUDA {chosen[:-1]}, {label} brings"
        f" CUDA {cuda.major if cuda else 'none'}",
        evidence=(f"{one.label} has {', '.join(tags)}",),
        fixes=(Unset(variable=_BNB_VARIABLE), *((release,) if release else ())),
        because=("dist:torch", f"env:{_BNB_VARIABLE}"),
        brings=("import:bitsandbytes",),
    )


def _with_library(wanted: str, *, other_than: str) -> Fix | None:
    """Return what installs a release that has the library for a CUDA, on x86_64 at least."""
    releases: str | None = table("packages")["bitsandbytes"].get(f"cuda{wanted}")
    if releases is None or SpecifierSet(releases).contains(other_than, prereleases=True):
        return None
    return Install(requirements=(f"bitsandbytes{releases}",))


def _bitsandbytes_tags(installed: Installed) -> list[str]:
    one = installed.find("bitsandbytes")
    matches = (_BITSANDBYTES.fullmatch(entry.path) for entry in (one.record or () if one else ()))
    return sorted({match["tag"] for match in matches if match})


def library_of(installed: Installed) -> str:
    """Return the file name of the library that bitsandbytes opens under the installed torch."""
    cuda = torch_cuda(installed)
    return f"libbitsandbytes_cuda{cuda.tag[2:]}.so" if cuda else ""


@rule("EB407", "A build for Arm servers on a Jetson", severity=Severity.ERROR)
def server_build_on_jetson(
    installed: Installed, codes: DeviceCodes, host: Host
) -> Iterator[Finding]:
    """A Jetson runs NVIDIA's own wheels for its JetPack, not those made for Arm servers.

    **What it finds.** A torch without code for Jetson modules, or without CUDA, on a Jetson whose
    system is older than JetPack 7.

    **Why it matters.** CUDA is not available there, or the first kernel fails: the GPU of a
    Jetson runs no code but its own, and its driver is not the one of a server.

    **Example.** torch 2.8.0 from PyPI on a Jetson Orin with Jetson Linux 35.4.1.

    **Fix.** Install NVIDIA's wheel for the JetPack; JetPack 5 has them for Python 3.8 alone.
    """
    match = _TEGRA_RELEASE.match(host.tegra or "")
    if match is None or int(match[1]) >= _FIRST_SERVER_TEGRA or installed.torch is None:
        return
    cuda = torch_cuda(installed)
    found = [b.code for b in codes.binaries if b.path.endswith("/libtorch_cuda.so")]
    if cuda is not None and (not found or any(c in _MODULES for f in found for c in f.sass)):
        return
    what = "has no code for Jetson modules" if cuda else "is a CPU build"
    yield Finding(
        code="EB407",
        severity=Severity.ERROR if cuda else Severity.WARNING,
        subject=torch_label(installed),
        message=f"{torch_label(installed)} {what}, this is a Jetson with Jetson Linux {host.tegra}",
        fixes=(Manual(text="install NVIDIA's torch wheel for this JetPack and its Python"),),
        because=("dist:torch",),
    )


RULES = (old_ptxas, no_bitsandbytes, server_build_on_jetson)
