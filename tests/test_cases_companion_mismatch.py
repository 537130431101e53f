"""torchvision, torchaudio and torchcodec of another torch, or of another build of the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from answers import WHL, best, errors, pins, proof, refused
from fakes import pinned, target
from lockworld import pyproject

from envbuild.core.uvlock import versions_in
from envbuild.model.finding import Severity
from envbuild.model.target import Platform

if TYPE_CHECKING:
    from lockworld import World

    from envbuild.model.finding import Finding

AMPERE = target("8.6")
BLACKWELL = target("12.0")


def beside(torch: str, companion: str) -> tuple[Finding, ...]:
    """Prove a companion beside a torch of PyTorch's index, each from its own page."""
    page = torch.partition("+")[2]
    theirs = companion.partition("+")[2]
    index = f"{WHL}/{theirs}" if theirs else "https://pypi.org/simple"
    return proof(
        pinned(f"torch=={torch}", index=f"{WHL}/{page}"),
        pinned(companion, index=index),
        where=AMPERE,
        page=page,
        torch=torch,
    )


def test_cmp_h1_torch_downgraded_alone_under_a_newer_torchvision() -> None:
    found = errors(beside("2.4.0+cu121", "torchvision==0.20.1+cu124"))
    pair = found["EB103"]
    assert "torchvision 0.20.1+cu124 works with torch >=2.5,<2.6" in pair.message
    assert "2.4.0+cu121" in pair.message
    assert pair.hint == "take `torchvision==0.19.0+cu121`"
    assert "built for cu124, torch 2.4.0+cu121 for cu121" in found["EB102"].message


def test_cmp_h2_same_public_version_but_built_for_another_accelerator() -> None:
    (found,) = errors(beside("2.6.0+cu124", "torchvision==0.21.0+cu126")).values()
    assert found.code == "EB102"
    assert (
        found.message == "torchvision 0.21.0+cu126 is built for cu126, torch 2.6.0+cu124 for cu124"
    )
    assert found.hint == "take `torchvision==0.21.0+cu124` from the index of torch"
    assert "torch 2.6.0 for cu126 uses the new C++ ABI, for cu124 the old one" in found.evidence


@pytest.mark.parametrize("companion", ["torchvision==0.21.0", "torchaudio==2.6.0"])
def test_a_companion_of_pypi_is_the_build_for_the_cuda_of_pypi(companion: str) -> None:
    (found,) = errors(beside("2.6.0+cu126", companion)).values()
    assert "is built for cu124, torch 2.6.0+cu126 for cu126" in found.message
    assert found.hint == f"take `{companion}+cu126` from the index of torch"
    assert errors(beside("2.6.0+cu124", companion)) == {}, "PyPI's own torch has that CUDA"


@pytest.mark.parametrize("version", ["0.20.1", "0.21.0", "0.22.1", "0.24.0"])
def test_every_torchvision_that_is_one_off_is_found(version: str) -> None:
    found = errors(beside("2.8.0+cu128", f"torchvision=={version}+cu128"))
    assert found["EB103"].hint == "take `torchvision==0.23.0+cu128`"


@pytest.mark.parametrize("version", ["2.5.1", "2.6.0", "2.7.0", "2.9.0", "2.9.1"])
def test_every_torchaudio_that_is_one_off_is_found(version: str) -> None:
    found = errors(beside("2.8.0+cu128", f"torchaudio=={version}"))
    assert "locked is 2.8.0+cu128" in found["EB103"].message
    assert found["EB103"].hint == "take `torchaudio==2.8.0+cu128`"


def test_cmp_h3_torchaudio_far_newer_than_torch() -> None:
    found = proof(
        pinned("torch==1.13.1"),
        pinned("torchaudio==2.1.0"),
        where=AMPERE,
        page="cu117",
        torch="1.13.1",
    )
    assert "torchaudio 2.1.0 works with torch ==2.1.0" in errors(found)["EB103"].message


def test_the_released_trio_has_no_finding_against_it() -> None:
    for companion in ("torchvision==0.23.0+cu128", "torchaudio==2.8.0+cu128"):
        assert errors(beside("2.8.0+cu128", companion)) == {}


def test_cmp_h4_torchcodec_names_no_torch_and_is_paired_by_its_symbols() -> None:
    found = proof(
        pinned("torch==2.10.0"),
        pinned("torchcodec==0.9.1"),
        where=AMPERE,
        torch="2.10.0",
    )
    pair = errors(found)["EB103"]
    assert "torchcodec 0.9.1 works with torch >=2.8,<2.10" in pair.message
    assert "metadata names no torch" in pair.evidence[0]
    assert pair.hint == "take `torchcodec==0.10.0`"


def test_cmp_h4_an_open_torchcodec_gets_the_release_for_the_torch() -> None:
    for torch, codec in (("2.10.0", "0.10.0"), ("2.9.1", "0.9.1"), ("2.7.0", "0.7.0")):
        where = target("10.0", torch=f"=={torch}")
        assert pins(best(where, "torch", "torchcodec"))["torchcodec"] == f"torchcodec=={codec}"


def test_a_torchcodec_of_another_torch_is_refused_with_both_names() -> None:
    error = refused(target("10.0", python="3.13"), "torch==2.10.0", "torchcodec==0.9.1")
    assert "goes with torchcodec 0.10.0, not `torchcodec==0.9.1`" in error.message


def test_cmp_h4_trap_a_missing_libavutil_is_no_reason_against_torchcodec() -> None:
    found = proof(
        pinned("torch==2.10.0"), pinned("torchcodec==0.10.0"), where=AMPERE, torch="2.10.0"
    )
    assert [one for one in found if "torchcodec" in one.subject] == []


@pytest.mark.parametrize(
    ("torch", "companion", "right"),
    [
        ("2.4.0", "torchvision==0.20.1", "torchvision 0.19.0+cu124"),
        ("2.7.0", "torchaudio==2.8.0", "torchaudio 2.7.0+cu128"),
        ("2.7.1", "torchvision==0.22.0", "torchvision 0.22.1+cu128"),
    ],
)
def test_pins_that_do_not_pair_are_refused_with_the_release_that_does(
    torch: str, companion: str, right: str
) -> None:
    error = refused(AMPERE, f"torch=={torch}", companion)
    assert f"goes with {right}, not `{companion}`" in error.message
    assert error.hint is not None


def test_local_pins_of_two_accelerators_are_refused() -> None:
    error = refused(AMPERE, "torch==2.6.0+cu124", "torchvision==0.21.0+cu126")
    assert "torch 2.6.0+cu124 goes with torchvision 0.21.0+cu124" in error.message
    assert "gives torch 2.6.0+cu126 with torchvision 0.21.0+cu126" in (error.hint or "")


def test_the_local_pin_of_a_companion_moves_torch_to_its_accelerator() -> None:
    stack = best(AMPERE, "torch==2.6.0", "torchvision==0.21.0+cu126")
    assert pins(stack)["torch"] == "torch==2.6.0+cu126"


def test_companions_without_local_version_on_aarch64_are_no_mismatch() -> None:
    where = target("9.0", platform=Platform.LINUX_AARCH64)
    found = proof(
        pinned("torch==2.9.1+cu130", index=f"{WHL}/cu130"),
        pinned("torchvision==0.24.1", index=f"{WHL}/cu130"),
        where=where,
        page="cu130",
        torch="2.9.1+cu130",
    )
    assert {one.code for one in found if one.severity is Severity.ERROR} == set()


def test_a_dependency_that_brings_torchvision_gets_the_one_beside_torch(world: World) -> None:
    world.write(pyproject("timm"))
    world.lock()
    held = versions_in(world.read("uv.lock"))
    assert (held["torch"], held["torchvision"]) == ("2.7.0+cu128", "0.22.0+cu128")


def test_a_bare_companion_pin_is_bound_to_the_accelerator_of_torch(world: World) -> None:
    world.write(pyproject("torch==2.7.0", "torchvision==0.22.0", "torchaudio==2.7.0"))
    world.lock()
    pins_ = [
        line for line in world.read("lockfiles/requirements.cu128.txt").split() if "==" in line
    ]
    assert {"torch==2.7.0+cu128", "torchvision==0.22.0+cu128", "torchaudio==2.7.0+cu128"} <= {
        *pins_
    }
