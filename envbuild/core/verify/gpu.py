"""Code for every GPU of the target in every wheel with device code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.kernels import (
    Driver,
    Package,
    has_kernels,
    is_companion,
    is_judged,
    judge_code,
)
from envbuild.core.lockview import shown
from envbuild.core.project.targetversions import oldest_driver
from envbuild.core.ptxisa import cuda_of_driver
from envbuild.core.torchcode import known_torch_code
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.finding import Finding, Severity
from envbuild.model.target import Platform
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.lockview import LockView
    from envbuild.model.facts import DeviceCode
    from envbuild.model.lock import Pinned


def device_code(view: LockView) -> Iterator[Finding]:
    """EB401 and EB402: wheels whose code a GPU cannot run, or runs only after compiling PTX."""
    if view.target.is_cpu or not view.target.gpus:
        return
    unknown: list[Pinned] = []
    for package in view.lock.packages:
        code = _code(view, package)
        if code is not None:
            named = Package(name=package.name, label=shown(package))
            gpus = [gpu.capability for gpu in view.target.gpus]
            yield from judge_code(named, code, gpus, cuda=view.cuda, driver=_driver(view))
        elif _has_kernels(package):
            unknown.append(package)
    if unknown:
        yield _not_known([shown(package) for package in unknown])


def _driver(view: LockView) -> Driver | None:
    oldest = oldest_driver(view.target.driver)
    cuda = cuda_of_driver(oldest) if oldest is not None else None
    return None if cuda is None else Driver(label=f"driver {oldest}", cuda=cuda)


def _not_known(packages: list[str]) -> Finding:
    alone = len(packages) == 1
    return Finding(
        code="EB401",
        severity=Severity.UNKNOWN,
        subject=packages[0] if alone else f"{len(packages)} packages",
        message="the GPU code is not known" + ("" if alone else f" of {', '.join(packages)}"),
    )


def _has_kernels(package: Pinned) -> bool:
    if has_kernels(package.name):
        return True
    return is_companion(package.name) and "cu" in local_of(package.version)


def _code(view: LockView, package: Pinned) -> DeviceCode | None:
    wheel = view.wheel(package)
    torch = view.stack.candidate.torch
    if package.name == "torch" and torch.page.kind is PageKind.BASE:
        return known_torch_code(view.facts, torch, view.cuda, view.target.platform)
    if package.name == "torch":
        build = view.facts.torch_build(public_of(package.version), view.cuda)
        x86 = view.target.platform is Platform.LINUX_X86_64
        known = (build.code_x86_64 if x86 else build.code_aarch64) if build else None
        if known is not None:
            return known
    if wheel is None or not is_judged(package.name):
        return None
    return view.facts.device_code(wheel.filename)
