"""The right torch, and beside it only what was built for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from envbuild.core.lockview import shown, torch_minor
from envbuild.core.pairing import pairs, partner, released_with, torch_for
from envbuild.core.pypitorch import pypi_build
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.finding import Finding, Severity
from envbuild.model.stack import IndexPin, SourceBuild

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.lockview import LockView
    from envbuild.model.lock import Pinned
    from envbuild.model.stack import Pin

_COMPANIONS = ("torchvision", "torchaudio")
"""Built for each accelerator, on whose page of PyTorch's index they lie."""


def wrong_pairs(view: LockView) -> Iterator[Finding]:
    """EB103: a release that does not work with the locked torch, whatever its metadata says."""
    torch = view.torch
    if torch is None:
        return
    for package in view.lock.packages:
        known = torch_for(view.facts, package.name, package.version)
        known = known or released_with(view.facts, package.name, package.version)
        if package is torch or known is None or pairs(known, torch.version):
            continue
        pairing = view.facts.pairing(package.name, public_of(package.version))
        works = pairing.torch if pairing else known
        text = f"{shown(package)} works with torch {works}, locked is {torch.version}"
        evidence = (pairing.source,) if pairing and pairing.source else ()
        yield _error("EB103", package, text, evidence=evidence, hint=_hint(view, package))


def _hint(view: LockView, package: Pinned) -> str | None:
    wanted = instead(view, package)
    return f"take `{wanted}`" if wanted else None


def instead(view: LockView, package: Pinned) -> str | None:
    """Return the requirement to take in the place of a companion that does not belong to torch."""
    torch = view.torch
    version = partner(view.facts, package.name, torch.version, view.cuda) if torch else None
    if torch is None or version is None:
        return None
    bound = local_of(package.version) or package.name in _COMPANIONS
    local = local_of(torch.version) if bound else ""
    return f"{package.name}=={version}{f'+{local}' if local else ''}"


def built_for_another(view: LockView) -> Iterator[Finding]:
    """EB103: a wheel whose file name says another torch minor or C++ ABI."""
    torch, minor = view.torch, torch_minor(view)
    if torch is None:
        return
    build = view.facts.torch_build(public_of(torch.version), view.cuda)
    abi = build.cxx11_abi if build else None
    for package in view.lock.packages:
        built = view.built_for(package)
        if built is None or package is torch:
            continue
        if built.torch_minor not in (None, minor):
            text = (
                f"{shown(package)} is built for torch {built.torch_minor}, locked is torch {minor}"
            )
            yield _error("EB103", package, text)
        if built.cxx11_abi is not None and abi is not None and built.cxx11_abi is not abi:
            text = f"{shown(package)} is built for the other C++ ABI than {shown(torch)}"
            yield _error("EB103", package, text)


def wrong_torch(view: LockView) -> Iterator[Finding]:
    """EB104: a torch without GPU support, or of another CUDA than the target's."""
    torch = view.torch
    if torch is None or view.target.is_cpu:
        return
    if local_of(torch.version) == "cpu":
        yield _error("EB104", torch, f"{shown(torch)} is the CPU build, the target has GPUs")
    elif not local_of(torch.version) and not _is_candidate(view, torch):
        yield from _from_pypi(view, torch)
    elif view.lock.cuda is not None and str(view.cuda) != view.lock.cuda:
        text = f"{shown(torch)} is built for CUDA {view.cuda}, the lock says {view.lock.cuda}"
        yield _error("EB104", torch, text)


def _is_candidate(view: LockView, torch: Pinned) -> bool:
    """Whether the locked torch is the very wheel that was chosen.

    Old aarch64 builds of PyTorch's index carry no local version, as PyPI's never do.
    """
    name = view.stack.candidate.torch.filename
    return any(artifact.filename == name for artifact in torch.artifacts)


def _from_pypi(view: LockView, torch: Pinned) -> Iterator[Finding]:
    platform = view.target.platform
    build = pypi_build(view.facts, torch.version, machine=platform.machine)
    if build is not None and build.cuda is None:
        text = f"{shown(torch)} from PyPI is a CPU build on {platform.value}"
        yield _error("EB104", torch, text, hint=_index_hint(view))
    elif build is not None and str(build.cuda) != view.lock.cuda:
        text = f"{shown(torch)} from PyPI is built for CUDA {build.cuda}"
        wanted = f"{text}, the target takes {view.stack.candidate.label}"
        yield _error("EB104", torch, wanted, hint=_index_hint(view))


def _index_hint(view: LockView) -> str:
    wheel = view.stack.candidate.torch
    return f"take `torch=={wheel.version}` from {wheel.page.name}"


def not_the_stack(view: LockView) -> Iterator[Finding]:
    """EB104: a package locked at another version than the solver chose."""
    for pin in view.stack.pins:
        package = view.package(pin.project)
        if package is not None and not _is_pin(package, pin):
            wanted = pin.wheel.version if isinstance(pin, IndexPin) else _requirement(pin)
            text = f"{shown(package)} is locked, the solver chose {wanted}"
            yield _error("EB104", package, text)


def _is_pin(package: Pinned, pin: Pin) -> bool:
    if isinstance(pin, IndexPin):
        return package.version == pin.wheel.version or any(
            artifact.filename == pin.wheel.filename for artifact in package.artifacts
        )
    if isinstance(pin, SourceBuild):
        return True
    return Requirement(pin.requirement).specifier.contains(package.version, prereleases=True)


def _requirement(pin: Pin) -> str:
    return "" if isinstance(pin, SourceBuild) else f"`{pin.requirement}`"


def unbuilt_sdists(view: LockView, coupled: frozenset[str]) -> Iterator[Finding]:
    """EB105: a coupled package that would be compiled without being asked for.

    Built in isolation it would be compiled against whatever torch the build brings.
    """
    known = {build.project for build in (*view.lock.builds, *view.stack.builds)}
    names = coupled | {pin.project for pin in view.stack.pins}
    for package in view.lock.packages:
        if package.name in names - known and view.wheel(package) is None:
            yield _error(
                "EB105",
                package,
                f"{shown(package)} has no wheel for the target and no entry in the build table",
                hint=f'`{package.name} = {{ prefer = "source" }}` in `[tool.envbuild.build]`',
            )


def _error(
    code: str,
    package: Pinned,
    message: str,
    *,
    evidence: tuple[str, ...] = (),
    hint: str | None = None,
) -> Finding:
    return Finding(
        code=code,
        severity=Severity.ERROR,
        subject=shown(package),
        message=message,
        evidence=evidence,
        hint=hint,
    )
