"""One CUDA in a locked set: no twins that overwrite each other, no mix of majors or builds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.lockview import cuda_major, shown
from envbuild.core.pypitorch import accelerator_of, pypi_build
from envbuild.core.twins import twin_pairs
from envbuild.core.verify.pairs import instead
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.cuda import CudaVersion
from envbuild.model.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.lockview import LockView
    from envbuild.model.lock import Pinned

_COMPANIONS = ("torchvision", "torchaudio")
_MOST_PATHS = 3


def twins(view: LockView) -> Iterator[Finding]:
    """EB101: two builds of one CUDA library that own the same paths."""
    for a, b in twin_pairs(view.lock.packages):
        shared = view.facts.shared_paths(a.name, b.name)
        if not shared:
            continue
        keep, drop = (a, b) if _is_torchs(view, a) else (b, a)
        yield Finding(
            code="EB101",
            severity=Severity.ERROR,
            subject=shown(drop),
            message=(
                f"`{a.name}` {a.version} and `{b.name}` {b.version} both own {len(shared)} paths,"
                " the one installed last overwrites the other"
            ),
            evidence=shared[:_MOST_PATHS],
            hint=f"only {shown(keep)} belongs to torch; find out what requires `{drop.name}`",
        )


def mixed_majors(view: LockView) -> Iterator[Finding]:
    """EB102: packages of another CUDA major than torch's."""
    if view.torch is None or view.cuda is None:
        return
    reported = {
        package.name
        for a, b in twin_pairs(view.lock.packages)
        for package in (a, b)
        if view.facts.shared_paths(a.name, b.name)
    }
    foreign: dict[int, list[Pinned]] = {}
    for package in view.lock.packages:
        major = cuda_major(view, package)
        if major is not None and major != view.cuda.major and package.name not in reported:
            foreign.setdefault(major, []).append(package)
    for major, packages in sorted(foreign.items()):
        names = ", ".join(package.name for package in packages)
        yield Finding(
            code="EB102",
            severity=Severity.ERROR,
            subject=shown(packages[0]),
            message=(
                f"{names} {'belongs' if len(packages) == 1 else 'belong'} to CUDA {major},"
                f" {shown(view.torch)} to CUDA {view.cuda.major}"
            ),
            evidence=tuple(shown(package) for package in packages),
        )


def mixed_builds(view: LockView) -> Iterator[Finding]:
    """EB102: torch and what is released or built with it for different accelerators.

    Builds of one CUDA major differ in their C++ ABI and in the kernels they register.
    """
    torch = view.torch
    if torch is None:
        return
    ours = view.cuda.tag if view.cuda else "cpu"
    for package in view.lock.packages:
        theirs = _accelerator(view, package)
        if package.name == "torch" or theirs is None or ours.startswith(theirs):
            continue
        if theirs != "cpu" and ours != "cpu" and theirs[:4] != ours[:4]:
            continue  # another major, which mixed_majors reports
        yield Finding(
            code="EB102",
            severity=Severity.ERROR,
            subject=shown(package),
            message=f"{shown(package)} is built for {theirs}, {shown(torch)} for {ours}",
            evidence=(package.index, *_abis(view, public_of(torch.version), theirs)),
            hint=f"take `{instead(view, package) or package.name}` from the index of torch",
        )


def _abis(view: LockView, torch: str, theirs: str) -> Iterator[str]:
    """Say so where the builds of one torch release differ in their C++ ABI."""
    full = re.fullmatch(r"cu\d{3}", theirs)
    other = view.facts.torch_build(torch, CudaVersion.parse(theirs)) if full else None
    own = view.facts.torch_build(torch, view.cuda)
    if own and other and {own.cxx11_abi, other.cxx11_abi} == {True, False}:
        new, old = (theirs, own.cuda) if other.cxx11_abi else (own.cuda, theirs)
        yield f"torch {torch} for {_tag(new)} uses the new C++ ABI, for {_tag(old)} the old one"


def _tag(cuda: CudaVersion | str | None) -> str:
    return cuda.tag if isinstance(cuda, CudaVersion) else cuda or "the CPU"


def _accelerator(view: LockView, package: Pinned) -> str | None:
    built = view.built_for(package)
    if built is not None:
        return built.accelerator
    torch = view.torch
    if package.name not in _COMPANIONS or torch is None or local_of(package.version):
        return None
    if package.index == torch.index or (view.cuda and view.cuda.tag in package.index):
        return None
    machine = view.target.platform.machine
    build = pypi_build(view.facts, public_of(torch.version), machine=machine)
    return accelerator_of(build) if build else None


def _is_torchs(view: LockView, package: Pinned) -> bool:
    return view.cuda is not None and cuda_major(view, package) == view.cuda.major
