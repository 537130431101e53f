"""EB604: the architectures that extensions are built for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.checks.owners import torch_cuda, torch_label, torch_public
from envbuild.checks.rule import rule
from envbuild.checks.toolkit import is_of_another_cuda, toolkit_of
from envbuild.core.archs import Coverage, coverage
from envbuild.core.buildtools import nvcc_since, nvcc_wanted, torch_since
from envbuild.model.builds import Builds
from envbuild.model.cuda import ComputeCapability
from envbuild.model.facts import DeviceCode
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Export, Manual
from envbuild.model.host import Host
from envbuild.model.installed import Installed
from envbuild.model.layers import Aim

if TYPE_CHECKING:
    from envbuild.model.fix import Fix

_VARIABLE = "TORCH_CUDA_ARCH_LIST"
_SEPARATORS = re.compile(r"[;,\s]+")
# torch.utils.cpp_extension takes names of generations as well.
_GENERATION = re.compile(
    r"(?:kepler(?:\+tesla)?|maxwell(?:\+tegra)?|pascal|volta|turing|ampere(?:\+tegra)?|ada|hopper"
    r"|blackwell(?:\+tegra)?)(?:\+ptx)?",
    re.IGNORECASE,
)
# torch's CMake files replace `2.1` by `2.1(2.0)` in what the GPUs say of themselves.
_DETECTION = (
    "`2.1` becomes `2.1(2.0)` in select_compute_arch.cmake of torch 2.5.1 to 2.15.0; 2026-11-29"
)
_GB10 = ComputeCapability(major=12, minor=1)
# Measured: up to here torch raises IndexError without the variable and without a GPU.
_LAST_RAISING = Version("2.8.99")


@rule(
    "EB604", "The list of GPU architectures for builds is unset or wrong", severity=Severity.ERROR
)
def arch_list(
    installed: Installed, host: Host, aim: Aim | None, builds: Builds
) -> Iterator[Finding]:
    """Extensions are compiled for what `TORCH_CUDA_ARCH_LIST` names, else for the GPUs seen.

    **What it finds.** The variable is unset and no GPU is visible, as
    in `docker build`; it names an architecture that torch or nvcc does not know yet or no longer,
    or nvcc does not know the GPU that is seen; or none of what it names runs on the GPUs that the
    environment is meant for. A GB10 is a warning: without the variable CMake builds for 2.0.

    **Why it matters.** `IndexError: list index out of range` in `_get_cuda_arch_flags`, `Unknown
    CUDA arch (10.0) or GPU not supported`, `nvcc fatal: Unsupported gpu architecture
    'compute_120'`, or an extension that builds and then has no kernel for the GPU.

    **Example.** TORCH_CUDA_ARCH_LIST=10.0 with torch 2.5.1, which knows 9.0a at most.

    **Fix.** `export TORCH_CUDA_ARCH_LIST='10.0;12.0'`, with the capabilities of the GPUs the
    environment is for (`envbuild gpus` lists them). Where torch or nvcc does not know them, raise
    torch or the toolkit; a shorter list builds what does not run.
    """
    if torch_cuda(installed) is None:
        return
    text = host.variable(_VARIABLE)
    if text is None:
        yield from _without_list(installed, host, aim, builds)
        return
    words = [word for word in _SEPARATORS.split(text) if word]
    if any(_GENERATION.fullmatch(word) for word in words):
        return
    parsed = {word: _parsed(word) for word in words}
    capabilities = [capability for word in words if (capability := parsed[word]) is not None]
    for word, capability in parsed.items():
        if capability is None:
            yield _finding(f"`{word}` of {_VARIABLE} is no architecture", (_set(aim),), builds)
    for capability in dict.fromkeys(capabilities):
        yield from _unknown(capability, _VARIABLE, installed, host, builds)
    yield from _uncovered(words, capabilities, aim, builds)


def _parsed(word: str) -> ComputeCapability | None:
    try:
        return ComputeCapability.parse(word.lower().removesuffix("+ptx"))
    except ValueError:
        return None


def _without_list(
    installed: Installed, host: Host, aim: Aim | None, builds: Builds
) -> Iterator[Finding]:
    """Judge what torch builds for by itself: the GPUs it sees, of which it knows the code."""
    if not host.gpus:
        yield _unset(installed, aim, builds)
        for capability in dict.fromkeys(aim.capabilities if aim else ()):
            yield from _unknown(capability, aim.source if aim else "", installed, host, builds)
        return
    for capability, name in {gpu.capability: gpu.name for gpu in host.gpus}.items():
        if not _is_news(capability, installed):
            yield from _unknown(capability, name, installed, host, builds)
        if capability == _GB10:
            yield _finding(
                f"{_VARIABLE} is unset and {name} is 12.1: builds by CMake make 2.0 of it, and"
                " end with `Unsupported gpu architecture 'compute_20'`",
                (Export(variable=_VARIABLE, value="12.1"),),
                builds,
                evidence=(_DETECTION,),
                severity=Severity.WARNING,
            )


def _unset(installed: Installed, aim: Aim | None, builds: Builds) -> Finding:
    raises = _is_raising(torch_public(installed))
    consequence = "raises IndexError" if raises else "chooses the architectures itself"
    return _finding(
        f"{_VARIABLE} is unset and no GPU is visible: torch {consequence}",
        (_set(aim),),
        builds,
        severity=Severity.ERROR if raises else Severity.WARNING,
    )


def _is_raising(public: str | None) -> bool:
    try:
        return Version(public or "") <= _LAST_RAISING
    except InvalidVersion:
        return False


def _set(aim: Aim | None) -> Fix:
    capabilities = aim.capabilities if aim else ()
    names = ";".join(str(capability) for capability in sorted(set(capabilities)))
    if names:
        return Export(variable=_VARIABLE, value=names)
    return Manual(
        text=f"export {_VARIABLE} with the capabilities of the GPUs meant, like '9.0;12.0'"
    )


def _is_news(capability: ComputeCapability, installed: Installed) -> bool:
    """Whether the installed torch is from before a GPU."""
    since, public = torch_since(capability), torch_public(installed)
    return bool(since and public) and Version(public or "") < Version(since or "")


def _unknown(
    capability: ComputeCapability, who: str, installed: Installed, host: Host, builds: Builds
) -> Iterator[Finding]:
    """Say that torch does not know what is named, else that nvcc does not.

    The nvcc of another CUDA major than torch's compiles nothing at all, which is EB601.
    """
    name = f"{capability.major}.{capability.minor}"
    if _is_news(capability, installed):
        since = torch_since(capability)
        yield _finding(
            f"{torch_label(installed)} does not know {name} ({who}), torch {since} does",
            (Manual(text=f"install torch {since} or newer; do not shorten the list"),),
            builds,
            subject=torch_label(installed),
            because=("code:torch",),
        )
        return
    toolkit = toolkit_of(host)
    if toolkit is None or toolkit.version is None or is_of_another_cuda(toolkit, installed):
        return
    want = nvcc_wanted(toolkit.version, capability)
    if want is not None:
        yield _finding(
            f"nvcc {toolkit.version} does not compile for {name} ({who}), wanted {want}",
            (_newer_toolkit(capability, want, host),),
            builds,
            subject=toolkit.path,
        )


def _newer_toolkit(capability: ComputeCapability, want: str, host: Host) -> Fix:
    """Name a toolkit that is there and knows the GPU, else the packages to install."""
    for one in host.toolkits:
        if one.nvcc and one.version and nvcc_wanted(one.version, capability) is None:
            return Export(variable="CUDA_HOME", value=one.path)
    first = nvcc_since(capability)
    if first is None:
        return Manual(text=f"install {want} and set CUDA_HOME to it")
    return Manual(
        text=(
            f"install {want} (apt-get install -y cuda-toolkit-{first.major}-{first.minor}, or a"
            f" `-devel` image) and export CUDA_HOME=/usr/local/cuda-{first}"
        )
    )


def _uncovered(
    words: list[str], capabilities: list[ComputeCapability], aim: Aim | None, builds: Builds
) -> Iterator[Finding]:
    """Say which GPU would find no code in what is built."""
    if aim is None or len(words) != len(capabilities) or not capabilities:
        return
    ptx = [c for c, w in zip(capabilities, words, strict=True) if w.upper().endswith("+PTX")]
    code = DeviceCode(sass=tuple(capabilities), ptx=tuple(ptx))
    lost = [gpu for gpu in aim.capabilities if coverage(code, gpu) is Coverage.NONE]
    if lost:
        names = " and ".join(gpu.sm for gpu in sorted(set(lost)))
        yield _finding(
            f"{_VARIABLE}={';'.join(words)} gives no code for {names} ({aim.source})",
            (_set(aim),),
            builds,
        )


def _finding(
    message: str,
    fixes: tuple[Fix, ...],
    builds: Builds,
    *,
    severity: Severity = Severity.ERROR,
    subject: str = _VARIABLE,
    evidence: tuple[str, ...] = (),
    because: tuple[str, ...] = (),
) -> Finding:
    return Finding(
        code="EB604",
        severity=severity,
        subject=subject,
        message=message,
        evidence=evidence,
        fixes=fixes,
        because=because,
        brings=tuple(f"build:{one}" for one in builds.packages),
    )


RULES = (arch_list,)
