"""flash-attn's release wheels for a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes import FakeFacts, FakeSource, candidate, context, cuda, linux, target, wheel

from envbuild.model.facts import TorchBuild
from envbuild.model.project import BuildSpec, Prefer
from envbuild.model.stack import IndexPin, Refusal, SourceBuild
from envbuild.model.wheel import PageKind
from envbuild.providers.flashattn import extend
from envbuild.providers.interface import Extension

if TYPE_CHECKING:
    from envbuild.model.stack import Candidate

NAMES = (
    "2.8.3+cu12torch2.8cxx11abiTRUE",
    "2.8.3+cu12torch2.7cxx11abiTRUE",
    "2.8.3+cu12torch2.7cxx11abiFALSE",
    "2.8.3+cu13torch2.9cxx11abiTRUE",
    "2.7.4.post1+cu12torch2.7cxx11abiTRUE",
    "2.7.4.post1+cu12torch2.6cxx11abiFALSE",
    "2.6.3+cu123torch2.4cxx11abiFALSE",
    "2.6.3+cu118torch2.4cxx11abiFALSE",
)
SOURCE = FakeSource(
    files=tuple(
        wheel(f"flash-attn {name.partition('+')[0]}", linux(f"flash_attn-{name}"), sha256=None)
        for name in NAMES
    )
)
FACTS = FakeFacts(
    keys={PageKind.FLASH_ATTN: ("2.6.3", "2.8.3", "2.7.4.post1", "2.9.0b1", "odd")},
    builds=(
        TorchBuild(torch="2.6.0", cuda=cuda("12.4"), on_pypi=True, cxx11_abi=False),
        TorchBuild(torch="2.7.0", cuda=cuda("12.8"), on_pypi=False, cxx11_abi=True),
    ),
)


def answer(
    requirement: str, chosen: Candidate, prefer: Prefer | None = None
) -> Extension | Refusal:
    builds = () if prefer is None else (BuildSpec(name="flash_attn", prefer=prefer),)
    here = context(target("8.0"), requirement, source=SOURCE, facts=FACTS, builds=builds)
    return extend(chosen, here)


@pytest.mark.parametrize(
    ("requirement", "where", "torch", "expected"),
    [
        ("flash-attn", "cu128", "2.7.0+cu128", "2.8.3+cu12torch2.7cxx11abitrue"),
        ("flash-attn<2.8", "cu128", "2.7.0+cu128", "2.7.4.post1+cu12torch2.7cxx11abitrue"),
        ("flash-attn==2.8.3", "cu126", "2.8.0+cu126", "2.8.3+cu12torch2.8cxx11abitrue"),
        ("flash-attn", "cu124", "2.6.0+cu124", "2.7.4.post1+cu12torch2.6cxx11abifalse"),
        ("flash-attn", "cu130", "2.9.1+cu130", "2.8.3+cu13torch2.9cxx11abitrue"),
        ("flash-attn", "cu121", "2.4.0+cu121", "2.6.3+cu123torch2.4cxx11abifalse"),
        ("flash-attn", "cu118", "2.4.0+cu118", "2.6.3+cu118torch2.4cxx11abifalse"),
    ],
)
def test_torch_cuda_major_and_abi_must_match(
    requirement: str, where: str, torch: str, expected: str
) -> None:
    found = answer(requirement, candidate(where, torch))
    assert isinstance(found, Extension)
    (pin,) = found.pins
    assert isinstance(pin, IndexPin)
    assert pin.wheel.version == expected


def test_no_wheel_is_a_refusal_unless_source_is_allowed() -> None:
    chosen = candidate("cu130", "2.10.0+cu130")
    found = answer("flash-attn>=2.8", chosen)
    assert isinstance(found, Refusal)
    assert found.reason == (
        "no release of `flash-attn>=2.8` has a wheel for torch 2.10.0+cu130, "
        "Python 3.11 on linux-x86_64"
    )
    assert answer("flash-attn>=2.8", chosen, Prefer.WHEEL) == found
    built = answer("flash-attn>=2.8", chosen, Prefer.WHEEL_OR_SOURCE)
    assert isinstance(built, Extension)
    assert [p.version for p in built.pins if isinstance(p, SourceBuild)] == ["2.8.3"]


def test_source_is_preferred_when_the_build_table_says_so() -> None:
    found = answer("flash-attn==2.7.2", candidate("cu128", "2.7.0+cu128"), Prefer.SOURCE)
    assert isinstance(found, Extension)
    builds = [p for p in found.pins if isinstance(p, SourceBuild)]
    assert [(p.version, p.runtime_requires) for p in builds] == [("2.7.2", ("einops",))]


def test_no_cpu_build() -> None:
    found = answer("flash-attn", candidate("cpu", "2.7.0+cpu"))
    assert isinstance(found, Refusal)
    assert found.reason == "flash-attn has no CPU build"


def test_nothing_wanted_nothing_pinned() -> None:
    assert answer("numpy", candidate("cu128", "2.7.0+cu128")) == Extension()
