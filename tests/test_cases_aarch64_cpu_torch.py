"""Arm machines that get a torch without CUDA, and Jetsons that get one made for servers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from answers import WHL, best, catalog, errors, pins, proof, refused
from casedoctor import PLAIN, card, torch_env
from fakes import linux, pinned, target
from index import local_wheel
from lockworld import pyproject

from envbuild.core.candidates import on_pypi
from envbuild.core.gpus import parse_gpu
from envbuild.core.uvlock import versions_in
from envbuild.model.project import IndexUrls
from envbuild.model.target import Platform

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from lockworld import World

    from envbuild.model.target import Target

ARM = Platform.LINUX_AARCH64
PYPI_ONLY = IndexUrls(pytorch=None)


def arm(capability: str, torch: str | None = None, python: str = "3.12") -> Target:
    return target(capability, platform=ARM, python=python, torch=torch)


@pytest.mark.parametrize("torch", ["2.8.0", "2.9.1", "2.10.0"])
def test_pypi_up_to_2_10_has_a_cpu_build_for_arm(torch: str) -> None:
    error = refused(arm("9.0"), f"torch=={torch}", indexes=PYPI_ONLY)
    assert f"torch {torch} from PyPI is a CPU build on linux-aarch64" in error.message


@pytest.mark.parametrize("torch", ["2.11.0", "2.13.0"])
def test_pypi_from_2_11_on_has_cuda_13_for_arm(torch: str) -> None:
    stack = best(arm("9.0"), f"torch=={torch}", indexes=PYPI_ONLY)
    assert pins(stack)["torch"] == f"torch=={torch}"
    assert str(stack.candidate.cuda) == "13.0"


def test_on_x86_64_the_same_release_of_pypi_has_cuda() -> None:
    assert best(target("9.0"), "torch==2.10.0", indexes=PYPI_ONLY).candidate.cuda is not None


@pytest.mark.parametrize(
    ("torch", "pin"), [("==2.10.*", "torch==2.10.0+cu130"), ("==2.9.*", "torch==2.9.1+cu130")]
)
def test_arm_h1_an_arm_server_gets_the_cuda_build_of_the_index(torch: str, pin: str) -> None:
    stack = best(arm("9.0", torch), "torch")
    assert pins(stack)["torch"] == pin
    assert stack.candidate.torch.page.key == "cu130"


def test_arm_h1_a_locked_cpu_build_of_pypi_is_refused_with_the_build_to_take() -> None:
    found = proof(
        pinned("torch==2.10.0", linux("torch-2.10.0", machine="aarch64")),
        where=arm("9.0", python="3.11"),
        page="cu130",
        torch="2.10.0+cu130",
    )
    wrong = errors(found)["EB104"]
    assert wrong.message == "torch 2.10.0 from PyPI is a CPU build on linux-aarch64"
    assert wrong.hint == "take `torch==2.10.0+cu130` from pytorch-cu130"


def test_a_cpu_target_on_arm_is_no_mistake() -> None:
    where = target(platform=ARM, torch="==2.10.*", python="3.12")
    assert best(where, "torch").candidate.cuda is None


def test_every_known_build_says_what_pypi_serves_to_arm() -> None:
    cuda = {build.torch for build in catalog().torch_builds() if on_pypi(build, ARM) and build.cuda}
    assert "2.11.0" in cuda
    assert not {"2.7.0", "2.8.0", "2.9.1", "2.10.0"} & cuda


@pytest.mark.parametrize("gpu", ["Jetson AGX Orin", "Jetson Orin Nano"])
def test_arm_h2_a_jetson_orin_is_told_of_its_own_wheels(gpu: str) -> None:
    orin = str(parse_gpu(gpu).capability)
    error = refused(arm(orin, "==2.9.*", "3.10"), "torch")
    assert "sm_87" in error.message
    assert "a Jetson needs NVIDIA's own wheels for its JetPack" in error.message


def test_a_server_build_whose_code_is_not_known_is_no_answer_for_an_orin() -> None:
    error = refused(arm("8.7", "==2.8.*", "3.11"), "torch")
    assert "torch 2.8.0+cu129 is made for servers and has no code for sm_87" in error.message


def test_from_cuda_13_2_on_an_orin_is_told_which_jetpack_it_takes() -> None:
    stack = best(arm("8.7"), "torch")
    assert pins(stack)["torch"].endswith("+cu132")
    (note,) = (note for note in stack.notes if "Jetson" in note)
    assert "JetPack whose driver supports CUDA 13.2" in note


@pytest.mark.parametrize("capability", ["9.0", "10.0", "12.1", "11.0"])
def test_no_word_of_jetpack_to_any_other_arm_machine(capability: str) -> None:
    stack = best(arm(capability), "torch")
    assert [note for note in stack.notes if "JetPack" in note] == []


def test_a_locked_server_build_has_no_code_for_an_orin() -> None:
    found = proof(
        pinned(
            "torch==2.11.0+cu130",
            linux("torch-2.11.0+cu130", machine="aarch64"),
            index=f"{WHL}/cu130",
        ),
        where=arm("8.7", python="3.11"),
        page="cu130",
        torch="2.11.0+cu130",
    )
    assert errors(found)["EB401"].message == "torch 2.11.0+cu130 has no code for sm_87"


def test_a_lock_for_arm_made_on_another_machine_holds_the_cuda_build(own_world: World) -> None:
    text = pyproject("torch", "tqdm", gpus=("GH200",), more='platform = "linux-aarch64"')
    own_world.write(text)
    own_world.lock()
    held = versions_in(own_world.read("uv.lock"))
    assert held["torch"] == "2.7.0+cu128"
    names = own_world.read("lockfiles/pylock.cu128.toml")
    assert "aarch64" in names
    assert "x86_64.whl" not in names


def test_arm_h3_a_package_without_a_set_for_mac_cannot_drag_torch_down(own_world: World) -> None:
    """A universal resolution would go back to a release with wheels for every system."""
    ancient = local_wheel("torch", "1.11.0", "py3-none-any")
    own_world.index.add_pypi(ancient)
    own_world.write(pyproject("torch", torch=">=1.11"))
    own_world.lock()
    assert versions_in(own_world.read("uv.lock"))["torch"] == "2.8.0+cu128"
    own_world.uv("lock", "--upgrade", "--python", "3.11")
    assert versions_in(own_world.read("uv.lock"))["torch"] == "2.8.0+cu128"


def test_arm_h3_a_requirement_that_takes_torch_down_is_said_with_its_reason(
    own_world: World,
) -> None:
    own_world.write(pyproject("torch", torch=">=2"))
    own_world.lock()
    own_world.index.add_pypi(local_wheel("oldfriend", "1.0", requires=("torch<2.8",)))
    own_world.write(pyproject("torch", "oldfriend", torch=">=2"))
    (report,) = own_world.lock().targets
    (note,) = (note for note in report.notes if "goes down" in note)
    assert note.startswith("torch goes down from 2.8.0+cu128 to 2.7.0+cu128: ")
    assert "oldfriend" in note
    assert "torch<2.8" in note


def test_an_upgrade_of_torch_is_not_spoken_of_as_going_down(own_world: World) -> None:
    own_world.write(pyproject("torch", torch="==2.7.0"))
    own_world.lock()
    own_world.write(pyproject("torch", torch="==2.8.0"))
    (report,) = own_world.lock().targets
    assert [note for note in report.notes if "goes down" in note] == []


SERVER = replace(PLAIN, machine="aarch64")


@pytest.mark.parametrize("named", [True, False])
def test_arm_h1_doctor_finds_the_cpu_build(doctor: Doctor, tmp_path: Path, *, named: bool) -> None:
    env = torch_env(tmp_path, "2.10.0+cpu", metadata="2.10.0", archs="")
    words = ("--gpu", "GB200") if named else ()
    gpus = () if named else (card("NVIDIA GB200", "10.0"),)
    answer = doctor(env, *words, host=replace(SERVER, gpus=gpus, driver="580.95.05"))
    assert answer.code == 1
    assert answer.first.startswith("error EB104: torch 2.10.0+cpu is the CPU build, ")
    assert "torch==2.10.0+cu130" in answer.repair
    assert answer.repair.endswith("--index https://download.pytorch.org/whl/cu130")


def test_arm_h1_trap_nobody_speaks_of_a_gpu(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.10.0+cpu", metadata="2.10.0", archs="")
    assert doctor(env, "--fail-on", "note", host=SERVER).code == 0


@pytest.mark.parametrize(
    ("torch", "archs", "code"), [("2.8.0+cpu", "", "EB104"), ("2.9.0+cu130", "sm_90", "EB407")]
)
def test_arm_h2_doctor_tells_a_jetson_of_its_own_wheels(
    doctor: Doctor, tmp_path: Path, *, torch: str, archs: str, code: str
) -> None:
    env = torch_env(tmp_path, torch, archs=archs, python="3.10")
    gpus = (card("Jetson AGX Orin", "8.7"),)
    answer = doctor(env, "--ignore", "EB401", host=replace(SERVER, tegra="35.4.1", gpus=gpus))
    assert answer.code == 1
    assert answer.first.startswith(f"error {code}: torch {torch}"), answer.first
    assert "35.4.1" in answer.first
    assert "JetPack" in answer.repair
