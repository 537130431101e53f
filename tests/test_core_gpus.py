"""GPU names: every name of the data in every spelling, short forms, and what is ambiguous."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.gpus import (
    UnknownGpuError,
    find_gpu,
    known_capabilities,
    known_gpus,
    parse_gpu,
)
from envbuild.model.cuda import ComputeCapability

BEFORE = ["", "NVIDIA ", "nvidia-", "  "]
AFTER = ["", " 80GB", " (24 GB)", "-16GB", " PCIe", "-SXM4-80GB", " Laptop GPU", " HBM3", "®"]
BETWEEN = [" ", "-", "_", "", "  "]
CASES = [str, str.lower, str.upper, str.title]


@given(
    st.sampled_from(known_gpus()),
    st.sampled_from(BEFORE),
    st.sampled_from(AFTER),
    st.sampled_from(BETWEEN),
    st.sampled_from(CASES),
)
def test_every_name_in_every_spelling(gpu, before, after, between, case) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    spelled = case(before + gpu.name.replace(" ", between) + after)
    assert find_gpu(spelled).capability == gpu.capability, spelled


def test_every_name_as_it_stands() -> None:
    wrong = [gpu.name for gpu in known_gpus() if find_gpu(gpu.name).capability != gpu.capability]
    assert not wrong


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("RTX PRO 2000 Blackwell", "12.0"),
        ("rtxpro2000blackwell", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
        ("RTX PRO 4500", "12.0"),
        ("5090", "12.0"),
        ("RTX 5090D", "12.0"),
        ("DGX Spark", "12.1"),
        ("NVIDIA GB10", "12.1"),
        ("B200", "10.0"),
        ("DGX B200", "10.0"),
        ("GB200 NVL72", "10.0"),
        ("GB300", "10.3"),
        ("Jetson Thor", "11.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("H100 SXM5", "9.0"),
        ("NVIDIA GH200 480GB", "9.0"),
        ("H20", "9.0"),
        ("RTX 4090 Laptop GPU", "8.9"),
        ("GeForce RTX 4070 Ti SUPER", "8.9"),
        ("RTX 4000 Ada", "8.9"),
        ("L40S", "8.9"),
        ("Jetson Orin Nano 8GB", "8.7"),
        ("Orin", "8.7"),
        ("A6000", "8.6"),
        ("3060ti", "8.6"),
        ("NVIDIA A10G", "8.6"),
        ("A100-SXM4-80GB", "8.0"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("Tesla A100", "8.0"),
        ("A800 40GB Active", "8.0"),
        ("tesla-t4", "7.5"),
        ("Quadro RTX 4000", "7.5"),
        ("Titan RTX", "7.5"),
        ("Xavier", "7.2"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("TX2", "6.2"),
        ("GTX 1080 Ti", "6.1"),
        ("P100", "6.0"),
        ("Jetson Nano", "5.3"),
    ],
)
def test_names_that_people_write(name: str, capability: str) -> None:
    assert str(find_gpu(name).capability) == capability


@pytest.mark.parametrize(
    ("name", "among"),
    [
        ("RTX 4000", {"7.5", "8.9", "12.0"}),
        ("RTX 6000", {"7.5", "8.9", "12.0"}),
        ("5000", {"7.5", "8.9", "12.0"}),
        ("TITAN X", {"5.2", "6.1"}),
        ("Titan", {"3.5", "7.5"}),
    ],
)
def test_an_ambiguous_name_lists_what_it_can_mean(name: str, among: set[str]) -> None:
    with pytest.raises(UnknownGpuError, match="wanted the full name") as caught:
        find_gpu(name)
    assert set(re.findall(r"\((\d+\.\d)\)", str(caught.value))) == among


@pytest.mark.parametrize(
    ("name", "choice"),
    [("RTX PRO 200 Blackwell", "RTX PRO 2000 Blackwell"), ("GeForce RTX 4099", "GeForce RTX 4090")],
)
def test_an_unknown_name_has_neighbours(name: str, choice: str) -> None:
    with pytest.raises(UnknownGpuError) as caught:
        find_gpu(name)
    assert choice in caught.value.choices


@pytest.mark.parametrize(
    "name", ["", "NVIDIA", "RTX", "GPU", "MI300X", "GTX 4090", "RTX A6000 Ada", "80GB", "Ti"]
)
def test_what_means_no_gpu(name: str) -> None:
    with pytest.raises(ValueError, match="wanted the name of an NVIDIA GPU"):
        find_gpu(name)


@given(st.text())
def test_any_text_is_a_gpu_or_an_error(text: str) -> None:
    try:
        gpu = parse_gpu(text)
    except UnknownGpuError:
        return
    assert gpu.capability in known_capabilities()


def test_capabilities_in_both_spellings() -> None:
    for capability in known_capabilities():
        assert parse_gpu(str(capability)).capability == capability
        assert parse_gpu(capability.sm).capability == capability


@pytest.mark.parametrize(
    ("text", "choice"), [("9.0a", "9.0"), ("12.5", "12.0"), ("sm_122", "12.1")]
)
def test_a_capability_that_no_gpu_has(text: str, choice: str) -> None:
    with pytest.raises(UnknownGpuError, match="compute capability") as caught:
        parse_gpu(text)
    assert choice in caught.value.choices


def test_the_data() -> None:
    gpus = known_gpus()
    assert len({gpu.name for gpu in gpus}) == len(gpus)
    assert {gpu.capability for gpu in gpus} <= set(known_capabilities())
    assert all(gpu.source and not gpu.capability.suffix for gpu in gpus)
    assert [gpu.capability for gpu in gpus] == sorted(
        (gpu.capability for gpu in gpus), reverse=True
    )
    assert {gpu.name for gpu in gpus if gpu.arm} >= {"GB10", "GB200", "GH200", "Jetson AGX Orin"}
    assert known_capabilities()[-1] == ComputeCapability(major=12, minor=1)
