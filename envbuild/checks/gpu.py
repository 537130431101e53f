"""EB401, EB402: GPU code in what is installed, against the GPUs it is meant for."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.driver import RULES as _DRIVER_RULES
from envbuild.checks.driver import highest_cuda
from envbuild.checks.gpufixes import build_spconv, nearest_torch, other_build
from envbuild.checks.gpuparts import RULES as _PART_RULES
from envbuild.checks.gpuparts import library_of
from envbuild.checks.owners import owners_for, shortened, torch_cuda
from envbuild.checks.rule import rule
from envbuild.checks.torchpairs import rebuild
from envbuild.core.installedrequires import parsed
from envbuild.core.kernels import (
    Driver,
    Package,
    has_kernels,
    is_companion,
    is_judged,
    judge_code,
)
from envbuild.model.facts import DeviceCode
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual
from envbuild.model.host import Host
from envbuild.model.installed import Installed, Ownership
from envbuild.model.layers import Aim
from envbuild.model.links import DeviceCodes
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.checks.owners import Subject
    from envbuild.model.fix import Fix
    from envbuild.model.links import BinaryCode

# What auditwheel grafts into a wheel: copies of libraries whose kernels the wheel may not use.
_BUNDLED = re.compile(r"/[^/]+\.libs/")
_TORCH_CODE = "code:torch"
_NCCL_HINT = "torch pins its NCCL: another build or release of torch brings another one"
_TORCH_KERNELS = re.compile(r"/libtorch_cuda\w*\.so$")


@rule("EB401", "No code for the GPU", severity=Severity.ERROR)
def no_code(
    installed: Installed,
    ownership: Ownership,
    codes: DeviceCodes,
    aim: Aim,
    facts: Facts,
    host: Host,
) -> Iterator[Finding]:
    """A package holds neither machine code that the GPU runs nor PTX that can be compiled for it.

    **What it finds.** Per package, the architectures that its files hold, read from the files,
    against the GPUs that the environment is meant for: those of the machine, of the lock, or of
    `--gpu`. Code for X.y runs on X.z with z >= y, so sm_86 serves 8.9 and sm_120 serves 12.1. PTX
    does not count where the machine's driver is of an older CUDA than the one that wrote it.

    **Why it matters.** `no kernel image is available for execution on the device`, at the first
    kernel and not on import. A version number does not tell: torch 2.7.0 from PyPI has no code
    for Blackwell, torch 2.7.0+cu128 has. For NCCL it is a warning: one GPU alone does not use it.

    **Example.** torch 2.7.0 has no code for sm_120: SASS sm_50 … sm_90, no PTX.

    **Fix.** Install the build of the same torch that has the code, with its companions
    (`torch==2.7.0+cu128 --index https://download.pytorch.org/whl/cu128`), then replace or rebuild
    every extension. `envbuild lock` with `gpus` in the target chooses no other.
    """
    yield from _unread(installed, ownership, codes).values()
    for subject, finding in _judged(installed, ownership, codes, aim, host):
        if finding.code == "EB401":
            driver = (Manual(text=f"update the driver: {finding.hint}"),) if finding.hint else ()
            yield dataclasses.replace(
                finding,
                evidence=(*finding.evidence, f"GPUs according to {aim.source}"),
                fixes=driver or _fixes(subject, installed, aim, facts=facts, host=host),
                hint=finding.hint or _hint(subject, installed),
                because=_because(subject),
                brings=_brings(subject, finding),
            )


@rule("EB402", "The GPU runs a package only after compiling its PTX", severity=Severity.NOTE)
def jit_only(
    installed: Installed, ownership: Ownership, codes: DeviceCodes, aim: Aim, host: Host
) -> Iterator[Finding]:
    """A package holds no machine code for the GPU, but PTX that the driver compiles for it.

    **What it finds.** Packages that the GPUs aimed at run only by way of PTX.

    **Why it matters.** The first start takes minutes and the result is slower than code made for
    the GPU. The driver must be as new as the CUDA that wrote the PTX, which the files say:
    compatibility within a CUDA major does not extend to PTX. With an older one it is EB401.

    **Example.** sm_120 runs spconv-cu126 2.3.8 only by compiling its compute_90 code.

    **Fix.** None is needed. A build for the GPU's architecture is faster. It is a warning where
    the package also compiles while it runs and cannot do so for the GPU: `spconv-cu120` brings
    NVRTC 12.0. Build cumm and spconv from source for the GPU, as the finding writes it.
    """
    for subject, finding in _judged(installed, ownership, codes, aim, host):
        if finding.code != "EB402":
            continue
        risky = finding.severity is Severity.WARNING
        fixes = (build_spconv(installed, aim.capabilities),) if risky else ()
        yield dataclasses.replace(finding, because=_because(subject), fixes=fixes)


def _unread(
    installed: Installed, ownership: Ownership, codes: DeviceCodes
) -> dict[Subject, Finding]:
    """Return what is not known: a package one of whose files was not read may have the code."""
    groups = owners_for(installed, ownership).group(codes.unread, (o.path for o in codes.unread))
    return {
        subject: Finding(
            code="EB401",
            severity=Severity.UNKNOWN,
            subject=subject.label,
            message=f"the GPU code of {subject.label} is not known",
            evidence=shortened(f"{one.path}: {one.reason}" for one in files),
        )
        for subject, files in groups.items()
        if is_judged(subject.name)
    }


def _hint(subject: Subject, installed: Installed) -> str | None:
    """Say where another NCCL comes from: it is torch's, unless torch pins another one already."""
    torch = installed.find("torch")
    if not subject.name.startswith("nvidia-"):
        return None
    family = subject.name.rpartition("-cu")[0]
    asked = (parsed(text) for text in (torch.requires if torch else ()))
    for need in asked:
        if need is not None and need.name.rpartition("-cu")[0] == family:
            one = subject.distribution if need.name == subject.name else None
            if one is None or not need.specifier.contains(one.version, prereleases=True):
                return f"torch pins `{need.name}{need.specifier}`, another one than this"
    return _NCCL_HINT


def _because(subject: Subject) -> tuple[str, ...]:
    """Name torch's own lack as the reason for that of what is released with it.

    What a library lacks beside symbols, or in another version than torch pins, is no problem of
    its own.
    """
    if subject.name.startswith("nvidia-"):
        wrong = (f"wrong:{subject.name}", f"pin:{subject.name}")
        return (subject.token, _TORCH_CODE, *wrong)
    if is_companion(subject.name):
        return (subject.token, _TORCH_CODE)
    return (subject.token,)


def _brings(subject: Subject, finding: Finding) -> tuple[str, ...]:
    if finding.severity is not Severity.ERROR:
        return ()
    return (*subject.brings, _TORCH_CODE) if subject.name == "torch" else subject.brings


def _driver(aim: Aim, host: Host) -> Driver | None:
    """Return the driver that compiles PTX; that of this machine says nothing of other GPUs."""
    here = {gpu.capability for gpu in host.gpus}
    highest = highest_cuda(host) if here.issuperset(aim.capabilities) else None
    if highest is None:
        return None
    return Driver(label=f"driver {host.compat_driver or host.driver}", cuda=highest)


def _judged(
    installed: Installed, ownership: Ownership, codes: DeviceCodes, aim: Aim, host: Host
) -> Iterator[tuple[Subject, Finding]]:
    driver = _driver(aim, host)
    owners = owners_for(installed, ownership)
    binaries = [one for one in codes.binaries if not _BUNDLED.search(one.path)]
    cuda = torch_cuda(installed)
    unread = _unread(installed, ownership, codes)
    for subject, ones in owners.group(binaries, (one.path for one in binaries)).items():
        if not is_judged(subject.name) or subject in unread:
            continue
        code = _joined(subject, ones, installed)
        package = Package(name=subject.name, label=subject.label)
        for finding in judge_code(package, code, aim.capabilities, cuda=cuda, driver=driver):
            yield subject, _softened(subject, finding)


def _softened(subject: Subject, finding: Finding) -> Finding:
    """Warn only, where a package may well work without the kernels in its files."""
    known = has_kernels(subject.name) or is_companion(subject.name) or not subject.name
    if finding.severity is Severity.ERROR and not known:
        return dataclasses.replace(finding, severity=Severity.WARNING)
    return finding


def _joined(subject: Subject, ones: list[BinaryCode], installed: Installed) -> DeviceCode:
    """Return the code of a package: of the files that count, all together.

    A package may hold kernels that only some GPUs use in files of their own, so one file proves
    nothing against it.
    """
    if subject.name == "torch":
        ones = [one for one in ones if _TORCH_KERNELS.search(one.path)] or ones
    if subject.name == "bitsandbytes":
        library = library_of(installed)
        ones = [one for one in ones if one.path.endswith(f"/{library}")] or ones
    return DeviceCode(
        sass=tuple(sorted({c for one in ones for c in one.code.sass})),
        ptx=tuple(sorted({c for one in ones for c in one.code.ptx})),
        isa=tuple(dict(sorted(pair for one in ones for pair in one.code.isa)).items()),
    )


def _fixes(
    subject: Subject, installed: Installed, aim: Aim, *, facts: Facts, host: Host
) -> tuple[Fix, ...]:
    archs = ";".join(str(capability) for capability in sorted(set(aim.capabilities)))
    one = subject.distribution
    if subject.name.startswith("nvidia-"):
        return ()
    if subject.name == "torch" or is_companion(subject.name):
        gpus, limit = aim.capabilities, highest_cuda(host)
        build = other_build(installed, gpus, facts=facts, limit=limit)
        return (build or nearest_torch(installed, gpus, facts=facts, limit=limit),)
    if one is None or one.origin is not None or one.record is None:
        return (
            Manual(text=f"export TORCH_CUDA_ARCH_LIST='{archs}'"),
            rebuild(one, subject.label, installed),
        )
    return (
        Manual(
            text=f"take a release of {one.name} with code for these GPUs, or build it with"
            f" TORCH_CUDA_ARCH_LIST='{archs}'"
        ),
    )


RULES = (no_code, jit_only, *_DRIVER_RULES, *_PART_RULES)
