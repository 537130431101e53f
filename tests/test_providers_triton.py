"""triton from the index of torch, where PyPI has no wheel of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import FakeFacts, FakeSource, candidate, context, linux, target, wheel

from envbuild.model.stack import IndexPin
from envbuild.model.target import Platform
from envbuild.providers.triton import extend

NEEDS = ('triton==3.3.0; platform_system == "Linux"', "numpy")
ON_PYTORCH = (
    wheel("cu128", linux("triton-3.4.0", machine="aarch64")),
    wheel("cu128", linux("triton-3.3.0", machine="aarch64")),
    wheel("cu128", linux("triton-3.3.0")),
)


def pins(
    *on_pypi: str, platform: Platform = Platform.LINUX_AARCH64, needs: tuple[str, ...] = NEEDS
) -> tuple[list[str], FakeSource]:
    found = candidate("cu128", "2.7.0+cu128")
    torch = replace(found.torch, requires_dist=needs)
    source = FakeSource(files=(*ON_PYTORCH, *(wheel("pypi", name) for name in on_pypi)))
    where = target("9.0", platform=platform)
    answer = extend(replace(found, torch=torch), context(where, source=source, facts=FakeFacts()))
    assert all(isinstance(pin, IndexPin) for pin in answer.pins)
    return [pin.wheel.filename for pin in answer.pins if isinstance(pin, IndexPin)], source


def test_the_release_that_torch_requires_is_taken_from_the_index_of_torch() -> None:
    assert pins(linux("triton-3.3.0"))[0] == [linux("triton-3.3.0", machine="aarch64")]


def test_what_pypi_has_is_left_to_uv() -> None:
    assert pins(linux("triton-3.3.0", machine="aarch64"))[0] == []


@pytest.mark.parametrize(
    "needs", [(), ('triton==3.3.0; platform_machine == "x86_64"',), ("triton==9.9",)]
)
def test_a_torch_that_needs_no_triton_gets_none(needs: tuple[str, ...]) -> None:
    assert pins(needs=needs)[0] == []


def test_on_x86_64_nothing_is_asked_for() -> None:
    found, source = pins(platform=Platform.LINUX_X86_64)
    assert (found, source.asked) == ([], [])
