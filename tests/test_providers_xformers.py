"""xformers for a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakes import FakeFacts, FakeSource, candidate, context, cuda, linux, target, wheel

from envbuild.model.facts import Pairing, TorchBuild
from envbuild.model.stack import IndexPin, PypiPin, Refusal
from envbuild.providers.interface import Extension
from envbuild.providers.xformers import extend

if TYPE_CHECKING:
    from envbuild.model.stack import Candidate

SOURCE = FakeSource(
    files=(
        wheel("cu126", linux("xformers-0.0.30", "cp311"), requires=("torch==2.7.0",)),
        wheel("pypi", linux("xformers-0.0.32.post2"), requires=("torch==2.8.0",)),
        wheel("pypi", linux("xformers-0.0.35"), requires=("torch>=2.10",)),
    )
)
FACTS = FakeFacts(
    builds=(
        TorchBuild(torch="2.11.0", cuda=cuda("13.0"), on_pypi=True),
        TorchBuild(torch="2.10.0", cuda=cuda("12.8"), on_pypi=True),
        TorchBuild(torch="2.8.0", cuda=cuda("12.8"), on_pypi=True),
        TorchBuild(torch="2.8.0", cuda=cuda("12.6"), on_pypi=False),
    ),
    pairs=(Pairing(project="xformers", version="0.0.30", torch="==2.7.0"),),
)


def answer(chosen: Candidate, requirement: str = "xformers") -> Extension | Refusal:
    return extend(chosen, context(target("8.0"), requirement, source=SOURCE, facts=FACTS))


def test_the_index_of_torch_comes_first() -> None:
    found = answer(candidate("cu126", "2.7.0+cu126"))
    assert isinstance(found, Extension)
    assert isinstance(found.pins[0], IndexPin)
    assert found.pins[0].requirement == "xformers==0.0.30"


def test_pypi_serves_the_cuda_that_torch_had_there() -> None:
    found = answer(candidate("cu128", "2.8.0+cu128"))
    assert isinstance(found, Extension)
    assert isinstance(found.pins[0], PypiPin)
    assert found.pins[0].requirement == "xformers==0.0.32.post2"
    assert isinstance(answer(candidate("cu126", "2.8.0+cu126")), Refusal)


def test_a_range_counts_with_the_cuda_of_the_oldest_torch() -> None:
    assert isinstance(answer(candidate("cu128", "2.11.0+cu128")), Extension)
    assert isinstance(answer(candidate("cu130", "2.11.0+cu130")), Refusal)


def test_refusals_say_what_is_missing() -> None:
    found = answer(candidate("cu128", "2.7.0+cu128"), "xformers>=0.0.29")
    assert isinstance(found, Refusal)
    assert found.reason == (
        "no release of `xformers>=0.0.29` is built for torch 2.7.0+cu128 "
        "and Python 3.11 on linux-x86_64"
    )
    cpu = answer(candidate("cpu", "2.7.0+cpu"))
    assert isinstance(cpu, Refusal)
    assert cpu.reason == "xformers has no CPU build"
    assert answer(candidate("cpu", "2.7.0+cpu"), "numpy") == Extension()
