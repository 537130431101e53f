"""The rule for which GPU runs which code."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from fakes import capability, code, cuda
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.archs import Coverage, coverage, describe, runs, toolkit_knows
from envbuild.model.facts import DeviceCode

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability

DESKTOP = [
    capability(text)
    for text in (
        "5.0",
        "6.0",
        "7.0",
        "7.5",
        "8.0",
        "8.6",
        "8.9",
        "9.0",
        "10.0",
        "10.3",
        "12.0",
        "12.1",
    )
]


@pytest.mark.parametrize(
    ("built", "gpu", "expected"),
    [
        ("sm_86", "8.9", True),
        ("sm_120", "12.1", True),
        ("sm_121", "12.0", False),
        ("sm_80", "9.0", False),
        ("sm_90", "12.0", False),
        ("sm_70", "7.5", True),
        ("sm_80", "8.7", False),
        ("sm_86", "8.7", False),
        ("sm_87", "8.7", True),
        ("sm_87", "8.9", False),
        ("sm_70", "7.2", False),
        ("sm_100", "10.1", False),
        ("sm_110", "10.1", True),
        ("sm_101", "11.0", True),
        ("sm_100", "10.3", True),
        ("sm_100a", "10.3", False),
        ("sm_100a", "10.0", True),
        ("sm_100f", "10.3", True),
        ("sm_100f", "12.0", False),
        ("sm_90a", "9.0", True),
        ("sm_120a", "12.1", False),
        ("sm_110a", "10.1", False),
    ],
)
def test_machine_code_runs(built: str, gpu: str, *, expected: bool) -> None:
    assert runs(capability(built), capability(gpu)) is expected


def test_cuda_13_2_lifts_the_exception_of_orin() -> None:
    assert not runs(capability("sm_80"), capability("8.7"), cuda=cuda("13.0"))
    assert runs(capability("sm_80"), capability("8.7"), cuda=cuda("13.2"))
    assert not runs(capability("sm_100"), capability("10.1"), cuda=cuda("13.2"))


@pytest.mark.parametrize(
    ("text", "gpu", "expected"),
    [
        ("sm_80 sm_90", "9.0", Coverage.NATIVE),
        ("sm_80 sm_90", "12.0", Coverage.NONE),
        ("sm_80 sm_90 compute_90", "12.0", Coverage.JIT),
        ("sm_80 compute_90", "8.0", Coverage.NATIVE),
        ("sm_90 compute_90", "8.0", Coverage.NONE),
        ("sm_90a compute_90a", "10.0", Coverage.NONE),
        ("sm_80 compute_100f", "12.0", Coverage.NONE),
        ("compute_52", "12.0", Coverage.JIT),
    ],
)
def test_coverage(text: str, gpu: str, expected: Coverage) -> None:
    assert coverage(code(text), capability(gpu)) is expected


plain = st.sampled_from(DESKTOP)


@given(built=plain, gpu=plain, newer=plain)
def test_what_runs_on_a_gpu_runs_on_newer_ones_of_its_major(
    built: ComputeCapability, gpu: ComputeCapability, newer: ComputeCapability
) -> None:
    if newer.major == gpu.major and newer >= gpu and runs(built, gpu):
        assert runs(built, newer)


@given(ptx=plain, gpu=plain)
def test_ptx_serves_exactly_the_gpus_as_new_as_itself(
    ptx: ComputeCapability, gpu: ComputeCapability
) -> None:
    found = coverage(DeviceCode(sass=(), ptx=(ptx,)), gpu)
    assert found is (Coverage.JIT if ptx <= gpu else Coverage.NONE)


@given(sass=st.lists(plain, max_size=4), ptx=st.lists(plain, max_size=2), gpu=plain, more=plain)
def test_more_code_never_makes_coverage_worse(
    sass: list[ComputeCapability],
    ptx: list[ComputeCapability],
    gpu: ComputeCapability,
    more: ComputeCapability,
) -> None:
    before = coverage(DeviceCode(sass=tuple(sass), ptx=tuple(ptx)), gpu)
    after = coverage(DeviceCode(sass=(*sass, more), ptx=tuple(ptx)), gpu)
    assert after.value <= before.value


def test_no_gpu_runs_machine_code_of_another_major() -> None:
    for built, gpu in product(DESKTOP, DESKTOP):
        assert not (built.major != gpu.major and runs(built, gpu))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sm_90 sm_50 sm_80", "SASS sm_50 … sm_90, no PTX"),
        ("sm_75 compute_120", "SASS sm_75, PTX compute_120"),
        ("compute_52 compute_90", "no SASS, PTX compute_52, compute_90"),
        ("", "no SASS, no PTX"),
    ],
)
def test_describe(text: str, expected: str) -> None:
    assert describe(code(text)) == expected


@pytest.mark.parametrize(
    ("toolkit", "gpu", "expected"),
    [
        ("12.6", "12.0", False),
        ("12.8", "12.0", True),
        ("13.0", "7.0", False),
        ("12.9", "7.0", True),
        ("13.0", "7.5", True),
        ("12.9", "11.0", False),
    ],
)
def test_toolkit_knows(toolkit: str, gpu: str, *, expected: bool) -> None:
    assert toolkit_knows(cuda(toolkit), capability(gpu)) is expected
