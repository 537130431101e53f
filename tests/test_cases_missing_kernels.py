"""GPUs that a build holds no code for: cards newer than the wheel, and false alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from answers import WHL, best, errors, pins, proof, refused
from fakes import linux, pinned, target
from index import local_wheel
from lockworld import pyproject

from envbuild.core.gpus import parse_gpu
from envbuild.core.uvlock import versions_in
from envbuild.model.finding import Severity
from envbuild.model.project import BuildSpec, IndexUrls
from envbuild.model.target import Platform

if TYPE_CHECKING:
    from lockworld import World

    from envbuild.model.finding import Finding

BLACKWELL = target("12.0")
SPARK = target("12.1", python="3.12", platform=Platform.LINUX_AARCH64)
PYPI_ONLY = IndexUrls(pytorch=None)


def codes(found: tuple[Finding, ...], code: str) -> list[Finding]:
    return [one for one in found if one.code == code]


@pytest.mark.parametrize("torch", ["2.5.1", "2.6.0"])
def test_krn_h1_a_torch_that_stops_at_sm_90_is_refused_with_its_archs(torch: str) -> None:
    error = refused(BLACKWELL, f"torch=={torch}")
    assert "has no code for sm_120: SASS sm_50 … sm_90, no PTX" in error.message
    assert "gives torch 2." in (error.hint or "")


def test_the_same_torch_fits_an_older_card() -> None:
    assert pins(best(target("9.0"), "torch==2.6.0"))["torch"] == "torch==2.6.0+cu126"


@pytest.mark.parametrize("torch", ["2.7.0", "2.7.1"])
def test_pypi_alone_has_no_2_7_for_the_card(torch: str) -> None:
    error = refused(BLACKWELL, f"torch=={torch}", indexes=PYPI_ONLY)
    assert f"torch {torch} from PyPI (CUDA 12.6) has no code for sm_120" in error.message


def test_pypi_alone_has_the_code_from_2_8_on() -> None:
    stack = best(BLACKWELL, "torch==2.8.0", indexes=PYPI_ONLY)
    assert pins(stack)["torch"] == "torch==2.8.0"


def test_an_exact_bare_pin_leads_to_the_build_that_has_the_code() -> None:
    assert pins(best(BLACKWELL, "torch==2.7.1"))["torch"] == "torch==2.7.1+cu128"


def test_a_set_with_torch_of_pypi_is_refused_with_the_build_to_take() -> None:
    found = proof(pinned("torch==2.7.0"), where=BLACKWELL)
    assert errors(found)["EB104"].message.startswith("torch 2.7.0 from PyPI is built for CUDA 12.6")
    assert errors(found)["EB104"].hint == "take `torch==2.7.0+cu128` from pytorch-cu128"


def test_the_code_is_read_from_the_build_and_not_from_its_cuda_version() -> None:
    """CUDA 12.6 and 12.8 builds of one release differ in code, CUDA 13 dropped the oldest cards."""
    old = proof(
        pinned("torch==2.8.0+cu126", index=f"{WHL}/cu126"),
        where=BLACKWELL,
        page="cu126",
        torch="2.8.0+cu126",
    )
    assert "no code for sm_120" in errors(old)["EB401"].message
    volta = target("7.0", torch="==2.11.*", python="3.12")
    assert pins(best(volta, "torch"))["torch"].endswith("+cu126")


def test_krn_h2_an_exact_pin_of_a_dependency_decides_the_build_and_not_torch_alone(
    own_world: World,
) -> None:
    engine = local_wheel(
        "engine", "0.10.0", requires=("torch==2.7.0", "torchaudio==2.7.0", "torchvision==0.22.0")
    )
    own_world.index.add_pypi(engine)
    own_world.write(pyproject("engine==0.10.0", torch=">=2", gpus=("RTX 5090",)))
    report = own_world.lock()
    held = versions_in(own_world.read("uv.lock"))
    assert {held[name] for name in ("torch", "torchaudio")} == {"2.7.0+cu128"}
    assert held["torchvision"] == "0.22.0+cu128"
    assert held["nvidia-nccl-cu12"] == "2.26.2", "what torch itself pins came with it"
    (target_report,) = report.targets
    turned_down = {
        rejection.candidate.label: rejection.refusals[0].reason
        for rejection in target_report.rejections
    }
    assert "no code for sm_120" in turned_down["torch 2.7.0 from PyPI (CUDA 12.6)"]
    assert "engine depend on torchvision==0.22.0" in turned_down["torch 2.8.0+cu128"]


def test_a_newer_torch_over_the_nccl_of_the_old_one_is_found() -> None:
    nccl = "nvidia_nccl_cu12-2.26.2-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    found = proof(
        pinned("torch==2.8.0"),
        pinned("nvidia-nccl-cu12==2.26.2", nccl),
        where=BLACKWELL,
        torch="2.8.0",
    )
    missing = errors(found)["EB301"]
    assert any("ncclCommWindowRegister" in line for line in missing.evidence)
    assert missing.hint == "`nvidia-nccl-cu12>=2.27.3`"


def test_krn_h3_spconv_with_an_old_nvrtc_is_told_about_on_a_newer_card() -> None:
    stack = best(BLACKWELL, "torch==2.7.0", "spconv-cu120==2.3.6")
    (note,) = (note for note in stack.notes if "spconv" in note)
    assert "spconv-cu120 2.3.6" in note
    assert "sm_120" in note
    assert "NVRTC 12.0" in note


def test_a_locked_spconv_with_an_old_nvrtc_is_a_warning() -> None:
    found = proof(
        pinned("torch==2.7.0+cu128", index=f"{WHL}/cu128"),
        pinned("spconv-cu120==2.3.6", linux("spconv_cu120-2.3.6")),
        pinned("cumm-cu120==0.4.11", linux("cumm_cu120-0.4.11")),
        where=BLACKWELL,
    )
    (jit,) = (one for one in codes(found, "EB402") if "spconv" in one.subject)
    assert jit.severity is Severity.WARNING
    assert "NVRTC 12.0" in jit.message
    assert errors(found) == {}, "spconv does not link torch: its C++ ABI is no reason against it"


def test_the_same_spconv_is_fine_on_the_card_it_has_code_for() -> None:
    stack = best(target("8.6"), "torch==2.7.0", "spconv-cu120==2.3.6")
    assert [note for note in stack.notes if "spconv" in note] == []


def test_spconv_and_cumm_built_from_their_repositories_need_no_wheel() -> None:
    builds = tuple(
        BuildSpec(name=name, git=f"https://github.com/{owner}/{name}@{'a' * 40}")
        for owner, name in (("traveller59", "spconv"), ("FindDefinition", "cumm"))
    )
    stack = best(BLACKWELL, "torch==2.7.0", "spconv", builds=builds)
    assert {build.project for build in stack.builds} == {"spconv", "cumm"}
    assert [note for note in stack.notes if "NVRTC" in note] == []


def test_krn_h4_trap_sm_121_runs_the_code_of_sm_120_and_nothing_is_said() -> None:
    stack = best(SPARK, "torch==2.9.*")
    assert pins(stack)["torch"] == "torch==2.9.1+cu130"
    assert stack.notes == ()


def test_krn_h4_the_ptxas_of_an_older_triton_does_not_know_sm_121() -> None:
    found = proof(
        pinned("torch==2.9.1+cu130", linux("torch-2.9.1+cu130", "cp312", "aarch64")),
        pinned("triton==3.5.1", linux("triton-3.5.1", "cp312", "aarch64")),
        where=SPARK,
        page="cu130",
        torch="2.9.1+cu130",
    )
    (ptxas,) = codes(found, "EB405")
    assert ptxas.severity is Severity.WARNING
    assert "does not know sm_121" in ptxas.message
    assert "torch itself runs" in ptxas.message
    assert "TRITON_PTXAS_PATH" in (ptxas.hint or "")
    assert errors(found) == {}


@pytest.mark.parametrize(
    ("capability", "triton", "said"),
    [
        ("12.1", "3.4.0", True),
        ("12.1", "3.6.0", False),
        ("10.3", "3.5.0", True),
        ("11.0", "3.6.0", True),
        ("12.0", "3.4.0", False),
        ("9.0", "3.5.1", False),
        ("12.1", "not-a-version", False),
    ],
)
def test_which_ptxas_knows_which_card(capability: str, triton: str, *, said: bool) -> None:
    found = proof(pinned(f"triton=={triton}", "triton.whl"), where=target(capability))
    assert bool(codes(found, "EB405")) is said


def test_krn_h5_a_cuda_from_before_the_card_is_named() -> None:
    where = target("12.0", python="3.10", cuda="==11.6", torch="==1.13.1")
    error = refused(where, "torch")
    assert "CUDA 11.6 does not compile for sm_120" in error.message
    assert "CUDA 11.8 does not" not in error.message


def test_an_old_cuda_that_knows_the_card_is_not_blamed() -> None:
    error = refused(target("8.6", cuda="==11.6", torch="==1.13.1"), "torch")
    assert "does not compile" not in error.message


def test_two_cards_of_different_age_get_a_build_with_code_for_both() -> None:
    where = target("7.5", "12.0", torch="==2.7.*")
    assert pins(best(where, "torch"))["torch"] == "torch==2.7.1+cu128"


@pytest.mark.parametrize("name", ["RTX 5090", "RTX 5070", "RTX PRO 6000 Blackwell"])
def test_the_cards_of_the_reports_are_sm_120(name: str) -> None:
    assert parse_gpu(name).capability.sm == "sm_120"
