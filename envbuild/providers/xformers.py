"""xformers: each release belongs to one torch, on PyTorch's index or on PyPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from envbuild.core.candidates import belongs, on_pypi
from envbuild.core.context import fitting
from envbuild.core.indexpages import pypi_page
from envbuild.core.pairing import pairs, torch_for
from envbuild.core.wanted import accepts, asked
from envbuild.model.stack import IndexPin, PypiPin, Refusal
from envbuild.model.wheel import PageKind
from envbuild.providers.interface import Extension, Provider, served

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.cuda import CudaVersion
    from envbuild.model.stack import Candidate, Pin
    from envbuild.model.wheel import WheelFile

PROJECT = "xformers"


def extend(candidate: Candidate, context: Context) -> Extension | Refusal:
    """Pin the release for exactly the candidate's torch and CUDA."""
    if not served(context, frozenset({PROJECT})):
        return Extension()
    wanted = asked(context.wanted, PROJECT)
    if candidate.cuda is None:
        reason = "xformers has no CPU build"
        return Refusal(project=PROJECT, reason=reason, excludes=wanted)
    pin = _from_index(candidate, context) or _from_pypi(candidate, context)
    if pin is not None:
        return Extension(pins=(pin,))
    where = context.target.machines
    reason = f"no release of `{wanted}` is built for {candidate.label} and {where}"
    return Refusal(project=PROJECT, reason=reason, excludes=wanted)


def _from_index(candidate: Candidate, context: Context) -> Pin | None:
    page = candidate.torch.page
    if page.kind is not PageKind.PYTORCH:
        return None
    for wheel in fitting(context, page, PROJECT):
        if belongs(wheel, candidate.accelerator) and _suits(wheel, candidate, context):
            return IndexPin(wheel=wheel, reason=f"built for {candidate.label}")
    return None


def _from_pypi(candidate: Candidate, context: Context) -> Pin | None:
    for wheel in fitting(context, pypi_page(context.indexes), PROJECT):
        if _suits(wheel, candidate, context) and _pypi_cuda(wheel, context) == candidate.cuda:
            reason = f"built for torch {candidate.public} of PyPI, with the same CUDA"
            return PypiPin(project=PROJECT, specifier=f"=={wheel.version}", reason=reason)
    return None


def _suits(wheel: WheelFile, candidate: Candidate, context: Context) -> bool:
    return accepts(context.wanted, PROJECT, wheel.version) and pairs(
        _torch(wheel, context), candidate.public
    )


def _torch(wheel: WheelFile, context: Context) -> SpecifierSet | None:
    requires = context.source.requires_dist(wheel)
    return torch_for(context.facts, PROJECT, wheel.version, requires)


def _pypi_cuda(wheel: WheelFile, context: Context) -> CudaVersion | None:
    """Return the CUDA of a release on PyPI: that of the oldest torch on PyPI it belongs to."""
    torch = _torch(wheel, context) or SpecifierSet()
    builds = [
        build
        for build in context.facts.torch_builds()
        if on_pypi(build, context.target.platform) and torch.contains(build.torch)
    ]
    return builds[-1].cuda if builds else None


PROVIDER = Provider(name="xformers", projects=frozenset({PROJECT}), extend=extend)
