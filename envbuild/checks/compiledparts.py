"""EB108, EB109 and EB112: compiled parts that are missing, or compiled against something else."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.checks.owners import torch_cuda, torch_label
from envbuild.checks.packagedata import compiled_parts, numpy2_releases
from envbuild.checks.rule import rule
from envbuild.checks.torchpairs import from_source, matching
from envbuild.core.installedrequires import visible
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Manual
from envbuild.model.installed import Installed
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.checks.packagedata import CompiledPart
    from envbuild.model.installed import Distribution

_NUMPY_2 = Version("2.0.0.dev0")
_BAD_MKL = Version("2024.1")
_CONDA_TORCH = frozenset({"pytorch", "torch"})
_FIRST_WITH_NEW_MKL = Version("2.3")


@rule("EB108", "A package is compiled against numpy 1", severity=Severity.ERROR)
def numpy_abi(installed: Installed) -> Iterator[Finding]:
    """Find wheels from before numpy 2 beside numpy 2.

    **What it finds.** torch before 2.3, opencv before 4.10, pandas before 2.2.2 and others whose
    wheels were compiled against numpy 1, with numpy 2 installed. Their metadata has no upper
    bound, so installers combine them.

    **Why it matters.** `A module that was compiled using NumPy 1.x cannot be run in NumPy 2`,
    `RuntimeError: Numpy is not available`, `numpy.core.multiarray failed to import`.

    **Example.** `torch 2.2.2` with `numpy 2.0.0`.

    **Fix.** `uv pip install 'numpy<2'`, or the package's first release for numpy 2.
    """
    numpy = installed.find("numpy")
    version = _version(numpy)
    if numpy is None or version is None or version < _NUMPY_2:
        return
    for name, first, source in numpy2_releases():
        one = installed.find(name)
        found = _version(one)
        if one is None or found is None or found >= Version(first) or one.installer == "conda":
            continue
        yield Finding(
            code="EB108",
            severity=Severity.ERROR,
            subject=one.label,
            message=f"{one.label} is compiled against numpy 1, found {numpy.label}",
            evidence=(f"{name} {first} is the first release for numpy 2", source),
            hint=f"`numpy<2`, or `{name}>={first}`",
            fixes=(Install(requirements=("numpy<2",)),),
            brings=(f"dist:{name}", *((f"import:{name}",) if name != "torch" else ())),
        )


def _version(one: Distribution | None) -> Version | None:
    try:
        return Version(one.version) if one else None
    except InvalidVersion:
        return None


@rule("EB109", "A package has no compiled part", severity=Severity.ERROR)
def hollow(installed: Installed, facts: Facts) -> Iterator[Finding]:
    """Find extension packages that were installed without what they are for.

    **What it finds.** flash-attn as `py3-none-any`, mmcv without `mmcv/_ext`, xformers without
    `_C`, torch-scatter, -sparse and -cluster with nothing but `*_cpu.so` beside a CUDA torch. It
    goes by the files of RECORD; editable and in-place installs are left alone.

    **Why it matters.** The install succeeds, and so may the import: the failure comes in
    training, as `No module named 'flash_attn_2_cuda'` or `Not compiled with CUDA support`.

    **Example.** `FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE`, and no released wheel for this torch.

    **Fix.** Install a wheel that was built for this torch, or build it against this torch, past the
    cache: `uv pip install --no-build-isolation --no-cache --reinstall-package NAME NAME`.
    """
    torch = installed.torch
    if torch is not None and torch.hip is not None:
        return
    for part in compiled_parts():
        one = installed.find(part.name)
        if one is not None and _is_hollow(one, part, installed):
            yield _hollow(one, part, installed, facts)


def _is_hollow(one: Distribution, part: CompiledPart, installed: Installed) -> bool:
    if one.record is None or one.editable or one.installer == "conda":
        return False
    if part.cuda and torch_cuda(installed) is None:
        return False
    version = _version(one)
    if part.since and (version is None or version < Version(part.since)):
        return False
    paths = [entry.path for entry in one.record if entry.path.endswith(".so")]
    return not any(fnmatchcase(path, pattern) for path in paths for pattern in part.parts)


def _hollow(one: Distribution, part: CompiledPart, installed: Installed, facts: Facts) -> Finding:
    only = [entry.path for entry in one.record or () if entry.path.endswith(".so")]
    what = "has only *_cpu.so" if part.cuda and only else "has no compiled part"
    tags = f" (wheel tag {one.tags[0]})" if one.tags else ""
    fix = matching(one, installed, facts) or from_source(one, installed)
    torch = f", found {torch_label(installed)}" if installed.torch else ""
    return Finding(
        code="EB109",
        severity=part.severity,
        subject=one.label,
        message=f"{one.label} {what}{tags}{torch}",
        evidence=(f"none of its files is {' or '.join(part.parts)}", part.how, part.source),
        hint=f"it ends with `{part.error}`",
        fixes=(fix,),
        brings=(f"dist:{one.name}", f"import:{one.name}"),
    )


@rule("EB112", "conda's torch and an MKL that lacks a symbol", severity=Severity.ERROR)
def conda_mkl(installed: Installed) -> Iterator[Finding]:
    """Find conda's torch before 2.3 beside MKL 2024.1 or newer.

    **What it finds.** torch installed by conda, which links MKL as a library of its own; MKL
    dropped the symbols of its profiler in 2024.1. Wheels have MKL linked in and do not mind.

    **Why it matters.** `libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent`.

    **Example.** `pytorch 2.2.2` and `mkl 2024.1.0` in one conda environment.

    **Fix.** `conda install 'mkl<2024.1'`, or torch's wheel.
    """
    mkl = next((one for one in visible(installed) if one.name == "mkl"), None)
    found = _version(mkl)
    if mkl is None or found is None or found < _BAD_MKL:
        return
    for one in visible(installed):
        version = _version(one)
        if one.name not in _CONDA_TORCH or one.installer != "conda" or version is None:
            continue
        if version < _FIRST_WITH_NEW_MKL:
            yield Finding(
                code="EB112",
                severity=Severity.ERROR,
                subject=one.label,
                message=f"conda's {one.label} needs MKL before 2024.1, found {mkl.label}",
                evidence=("pytorch/pytorch#123097", "symbol iJIT_NotifyEvent"),
                fixes=(Manual(text="conda install 'mkl<2024.1'"),),
                brings=("dist:torch", "symbol:iJIT_NotifyEvent", "import:torch"),
            )
            return


RULES = (numpy_abi, hollow, conda_mkl)
