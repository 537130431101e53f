"""The solver on the catalog that comes with envbuild: requests of real projects."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from fakes import project, target

from envbuild.catalog.reader import Catalog
from envbuild.model.project import BuildSpec, Prefer
from envbuild.model.stack import IndexPin, PypiPin, SourceBuild
from envbuild.model.target import Platform
from envbuild.providers.impossible import impossible
from envbuild.providers.solve import solve

if TYPE_CHECKING:
    from envbuild.errors import RefusedError
    from envbuild.model.stack import Stack
    from envbuild.model.target import Target
    from envbuild.providers.solve import Solutions

ARM = Platform.LINUX_AARCH64
PTV3 = ("torch", "torchvision", "spconv", "peft>=0.19.0", "timm")
POINTCEPT = (
    "torch",
    "torchvision",
    "torchaudio",
    "torch-cluster",
    "torch-scatter",
    "torch-sparse",
    "torch-geometric",
    "spconv-cu126",
    "flash-attn",
)


@cache
def catalog() -> Catalog:
    return Catalog.load()


def search(where: Target, *wanted: str, builds: tuple[BuildSpec, ...] = ()) -> Solutions:
    found = project(where, *wanted, builds=builds)
    return solve(found, where, source=catalog(), facts=catalog())


def best(where: Target, *wanted: str, builds: tuple[BuildSpec, ...] = ()) -> Stack:
    return next(search(where, *wanted, builds=builds))


def refused(where: Target, *wanted: str) -> RefusedError:
    solutions = search(where, *wanted)
    assert list(solutions) == []
    return impossible(solutions)


def requirements(stack: Stack) -> dict[str, str]:
    return {
        pin.project: pin.requirement for pin in stack.pins if isinstance(pin, IndexPin | PypiPin)
    }


@pytest.mark.parametrize(
    ("torch", "pins"),
    [
        (
            "==2.7.0",
            {
                "torch": "torch==2.7.0+cu128",
                "torchvision": "torchvision==0.22.0+cu128",
                "torchaudio": "torchaudio==2.7.0+cu128",
                "spconv-cu126": "spconv-cu126==2.3.8",
            },
        ),
        (
            "==2.7.*",
            {
                "torch": "torch==2.7.1+cu128",
                "torchvision": "torchvision==0.22.1+cu128",
                "torchaudio": "torchaudio==2.7.1+cu128",
                "spconv-cu126": "spconv-cu126==2.3.8",
            },
        ),
    ],
)
def test_ptv3_on_two_blackwells(torch: str, pins: dict[str, str]) -> None:
    stack = best(target("12.0", "10.0", torch=torch), *PTV3)
    assert requirements(stack) == pins
    assert any("cannot compile for sm_100 and sm_120" in note for note in stack.notes)


def test_ptv3_rejects_the_torch_that_pypi_serves() -> None:
    solutions = search(target("12.0", "10.0", torch="==2.7.0"), *PTV3)
    reasons = [r.refusals[0].reason for r in solutions.rejections]
    assert (
        "torch 2.7.0 from PyPI (CUDA 12.6) has no code for sm_120, sm_100: "
        "SASS sm_50 … sm_90, no PTX"
    ) in reasons


def test_pointcept_with_pyg_and_flash_attn() -> None:
    own = (
        BuildSpec(name="pointops", path="libs/pointops"),
        BuildSpec(name="flash-attn", prefer=Prefer.WHEEL),
    )
    stack = best(target("12.0", torch="==2.7.*"), *POINTCEPT, builds=own)
    assert requirements(stack) == {
        "torch": "torch==2.7.1+cu128",
        "torchvision": "torchvision==0.22.1+cu128",
        "torchaudio": "torchaudio==2.7.1+cu128",
        "torch-cluster": "torch-cluster==1.6.3+pt27cu128",
        "torch-scatter": "torch-scatter==2.1.2+pt27cu128",
        "torch-sparse": "torch-sparse==0.6.18+pt27cu128",
        "spconv-cu126": "spconv-cu126==2.3.8",
        "flash-attn": "flash-attn==2.8.3.post1+cu12torch2.7cxx11abitrue",
    }
    assert [build.project for build in stack.builds] == ["pointops"]


def test_pointcept_without_a_torch_takes_the_newest_that_all_have_wheels_for() -> None:
    stack = best(target("12.0"), *POINTCEPT)
    assert stack.candidate.public == "2.8.0"
    assert stack.builds == ()


def test_every_pin_of_an_index_fits_the_accelerator_of_torch() -> None:
    for stack in search(target("9.0", python="3.12"), "torch", "torchvision", "torch-scatter"):
        accelerator = stack.candidate.accelerator
        for pin in stack.pins:
            if isinstance(pin, IndexPin):
                assert pin.wheel.version.endswith(accelerator)


def test_a_t4_still_has_the_newest_torch() -> None:
    stack = best(target("7.5"), "torch", "torchvision")
    assert stack.candidate.cuda is not None
    assert stack.candidate.cuda.major == 13
    assert stack.notes == ()


def test_a_v100_is_left_with_cuda_12_6() -> None:
    solutions = search(target("7.0"), "torch", "torchvision")
    first = next(solutions)
    assert first.candidate.accelerator == "cu126"
    reasons = [r.refusals[0].reason for r in solutions.rejections]
    newest = first.candidate.public
    assert any(
        reason.startswith(f"torch {newest}+cu130 has no code for sm_70") for reason in reasons
    )


def test_a_gb200_takes_the_aarch64_wheels_of_the_index() -> None:
    stack = best(target("10.0", python="3.12", platform=ARM), "torch", "torchvision", "torchaudio")
    assert stack.candidate.cuda is not None
    assert stack.candidate.cuda.major == 13
    wheels = [pin.wheel for pin in stack.pins if isinstance(pin, IndexPin)]
    assert [wheel.project for wheel in wheels] == ["torch", "torchvision", "torchaudio"]
    assert all(wheel.filename.endswith("aarch64.whl") for wheel in wheels)
    assert stack.notes == ()


def test_a_gb200_with_torch_2_7_says_what_is_not_known() -> None:
    where = target("10.0", python="3.12", platform=ARM, torch="==2.7.1")
    stack = best(where, "torch", "torchvision")
    assert requirements(stack)["torch"] == "torch==2.7.1+cu128"
    assert requirements(stack)["torchvision"] == "torchvision==0.22.1"
    assert stack.notes == ("the GPU code of torch 2.7.1+cu128 is not known",)


def test_aarch64_wheels_of_pypi_up_to_2_10_are_no_answer_for_a_gpu() -> None:
    where = target("9.0", python="3.12", platform=ARM, torch="==2.10.*")
    solutions = search(where, "torch")
    assert all("+" in stack.candidate.torch.version for stack in solutions)
    reasons = [r.refusals[0].reason for r in solutions.rejections]
    assert "torch 2.10.0 from PyPI is a CPU build on linux-aarch64" in reasons


def test_a_jetson_orin_has_no_code_in_known_builds_before_cuda_13_2() -> None:
    error = refused(target("8.7", python="3.10", platform=ARM, torch="==2.10.*"), "torch")
    assert "torch 2.10.0+cu130 has no code for sm_87: SASS sm_80 … sm_120" in error.message


def test_a_gb10_runs_the_code_of_sm_120() -> None:
    stack = best(target("12.1", python="3.12", platform=ARM), "torch")
    assert stack.notes == ()


def test_the_cpu_build() -> None:
    stack = best(target(), "torch", "torchvision", "torch-scatter", "spconv")
    assert stack.candidate.accelerator == "cpu"
    wanted = requirements(stack)
    assert wanted["torch"].endswith("+cpu")
    assert wanted["torchvision"].endswith("+cpu")
    assert wanted["torch-scatter"].endswith("cpu")
    assert wanted["spconv"] == "spconv==2.3.8"


def test_python_3_14_with_spconv_is_refused_with_the_python_that_works() -> None:
    error = refused(target("12.0", python="3.14"), "torch", "spconv")
    assert "spconv-cu126 2.3.8 has wheels for Python 3.9 to 3.13" in error.message
    assert error.hint is not None
    assert error.hint.startswith('`python = "3.13"` gives torch ')


def test_cuda_13_with_spconv_is_refused_with_the_cuda_that_works() -> None:
    error = refused(target("12.0", cuda="==13.0"), "torch", "spconv")
    assert error.message.startswith(
        "no build of torch fits target `t`: spconv has no wheel for CUDA 13 "
        '(newest: spconv-cu126) and `cuda = "13.0"` excludes CUDA 12'
    )
    assert error.hint is not None
    assert error.hint.startswith('`cuda = "12.')
    assert "spconv-cu126 2.3.8" in error.hint


def test_an_older_driver_keeps_cuda_13_away() -> None:
    stack = best(target("9.0", driver=">=550"), "torch")
    assert stack.candidate.cuda is not None
    assert stack.candidate.cuda.major == 12


def test_torchaudio_2_11_1_never_goes_with_a_torch_before_2_13() -> None:
    for stack in search(target("9.0", python="3.12", torch=">=2.11,<2.13"), "torchaudio"):
        assert "torchaudio==2.11.1" not in requirements(stack).values()


def test_xformers_belongs_to_exactly_one_torch() -> None:
    stack = best(target("9.0", torch="==2.8.*"), "xformers")
    assert requirements(stack)["xformers"].startswith("xformers==0.0.32")


def test_flash_attn_without_a_wheel_is_compiled_only_when_allowed() -> None:
    where = target("9.0", python="3.12", torch="==2.13.*")
    assert "no release of `flash-attn` has a wheel" in refused(where, "flash-attn").message
    allowed = BuildSpec(name="flash-attn", prefer=Prefer.WHEEL_OR_SOURCE)
    stack = best(where, "flash-attn", builds=(allowed,))
    (built,) = stack.builds
    assert isinstance(built, SourceBuild)
    assert built.version is not None


def test_a_local_pin_of_the_project_is_kept() -> None:
    stack = best(target("12.0"), "torch==2.7.0+cu128", "torch-scatter==2.1.2+pt27cu128")
    assert requirements(stack)["torch-scatter"] == "torch-scatter==2.1.2+pt27cu128"
