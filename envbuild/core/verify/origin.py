"""Packages that only PyTorch's index serves come from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envbuild.core.lockview import shown
from envbuild.core.wanted import holds
from envbuild.model.finding import Finding, Severity
from envbuild.model.stack import IndexPin

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from envbuild.core.lockview import LockView
    from envbuild.model.target import Target

INDEX_ONLY = frozenset(
    {"pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu", "torchtriton"}
)
"""Names that PyTorch publishes on its own index alone.

Whoever registers one of them elsewhere is somebody else: in December 2022 a `torchtriton` on PyPI
stole what it found on the machines that installed a nightly torch.
"""


def index_only(
    requires: Iterable[tuple[str, ...]], target: Target, *, without: Collection[str]
) -> tuple[Requirement, ...]:
    """Return what wheels require on a target that PyTorch's index alone serves.

    uv would look for it on the default index, where the name may be anybody's.
    """
    found: dict[str, Requirement] = {}
    for text in (text for needs in requires for text in needs):
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name in INDEX_ONLY and name not in without and holds(requirement, target):
            requirement.marker = None
            found[name] = requirement
    return tuple(found.values())


def foreign_origin(view: LockView) -> Iterator[Finding]:
    """EB113: a package of PyTorch's index that another index would supply."""
    ours = {pin.wheel.page.url for pin in view.stack.pins if isinstance(pin, IndexPin)}
    for package in view.lock.packages:
        if package.name in INDEX_ONLY and package.index not in ours:
            yield Finding(
                code="EB113",
                severity=Severity.ERROR,
                subject=shown(package),
                message=(
                    f"{shown(package)} comes from {package.index or 'an address of its own'},"
                    " expected PyTorch's index, which alone publishes it"
                ),
                evidence=tuple(artifact.url for artifact in package.artifacts[:1]),
                hint=f"do not install it; route `{package.name}` to the index that serves torch",
            )
