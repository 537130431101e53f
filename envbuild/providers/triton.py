"""triton on aarch64: PyPI has no wheel of its older releases there, the index of torch has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envbuild.core.context import fitting
from envbuild.core.indexpages import pypi_page
from envbuild.core.wanted import holds
from envbuild.model.stack import IndexPin
from envbuild.model.target import Platform
from envbuild.model.wheel import PageKind
from envbuild.providers.interface import Extension, Provider

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.stack import Candidate

PROJECT = "triton"


def extend(candidate: Candidate, context: Context) -> Extension:
    """Pin the triton that torch requires to torch's own index where PyPI has no wheel of it.

    On x86_64 PyPI has every release, so its page is not asked for.
    """
    page = candidate.torch.page
    needed = _needed(candidate, context)
    if needed is None or page.kind in (PageKind.PYPI, PageKind.BASE):
        return Extension()
    on_pypi = fitting(context, pypi_page(context.indexes), PROJECT)
    if any(needed.specifier.contains(wheel.version) for wheel in on_pypi):
        return Extension()
    for wheel in fitting(context, page, PROJECT):
        if needed.specifier.contains(wheel.version):
            reason = f"PyPI has no `{needed}` for {context.target.platform.value}"
            return Extension(pins=(IndexPin(wheel=wheel, reason=reason),))
    return Extension()


def _needed(candidate: Candidate, context: Context) -> Requirement | None:
    if context.target.platform is not Platform.LINUX_AARCH64:
        return None
    for text in context.source.requires_dist(candidate.torch) or ():
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) == PROJECT and holds(requirement, context.target):
            requirement.marker = None
            return requirement
    return None


PROVIDER = Provider(name="triton", projects=frozenset({PROJECT}), extend=extend)
