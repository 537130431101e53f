"""The build of torch that PyPI serves: one for each release and machine, with no local version."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.facts import TorchBuild
    from envbuild.ports import Facts


def pypi_build(facts: Facts, torch: str, *, machine: str) -> TorchBuild | None:
    """Return PyPI's build of a release for ``x86_64`` or ``aarch64``; None if unknown."""
    for build in facts.torch_builds():
        at_pypi = build.on_pypi if machine == "x86_64" else build.on_pypi_aarch64
        if at_pypi and build.torch == torch:
            return build
    return None


def accelerator_of(build: TorchBuild) -> str:
    """Return ``cu128``, or ``cpu``."""
    return build.cuda.tag if build.cuda else "cpu"
