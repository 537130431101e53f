"""Builds that differ in their local version alone: not found, or silently taken for another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from answers import best, pins
from fakes import target
from index import local_wheel
from lockworld import pyproject

from envbuild.core.requirementstxt import parse_requirements
from envbuild.core.uvlock import versions_in
from envbuild.errors import InputError, RefusedError

if TYPE_CHECKING:
    from lockworld import World

PYTHON = ("--python", "3.11")
INSTALLED = "import torch; print(torch.__version__)"


def installed(world: World) -> str:
    answer = world.uv("run", "--no-sync", *PYTHON, "python", "-c", INSTALLED)
    return answer.stdout.strip()


def torch_in_every_file(world: World) -> set[str]:
    """Return the versions of torch that the files of a lock name."""
    named = parse_requirements(world.read("lockfiles/requirements.cu128.txt"))["torch"]
    locked = versions_in(world.read("uv.lock"))["torch"]
    pylock = re.search(r'name = "torch"\nversion = "([^"]+)"', world.read(PYLOCK))
    constraint = re.search(r'"torch==([^"]+)",', world.read("pyproject.toml"))
    assert pylock is not None
    assert constraint is not None
    return {named, locked, pylock[1], constraint[1]}


PYLOCK = "lockfiles/pylock.cu128.toml"


def test_loc_h1_a_local_pin_gets_the_index_that_alone_serves_it(world: World) -> None:
    world.write(pyproject("torch==2.7.0+cu128", "tqdm"))
    world.lock()
    text = world.read("pyproject.toml")
    assert 'torch = { index = "pytorch-cu128" }' in text
    table = text.partition('name = "pytorch-cu128"')[2]
    assert f'url = "{world.index.urls.pytorch}/cu128"\nexplicit = true' in table
    page = f"{world.index.urls.pytorch}/cu128/torch/"
    assert f"--find-links {page}" in world.read("lockfiles/requirements.cu128.txt")
    assert torch_in_every_file(world) == {"2.7.0+cu128"}
    assert world.uv("lock", "--check", *PYTHON).returncode == 0


@pytest.mark.parametrize(
    "requirement", ["torch==2.7.0", "torch>=2.7,<2.8", "torch~=2.7.0", "torch"]
)
def test_loc_h3_a_requirement_that_admits_every_build_is_bound_to_one(
    world: World, requirement: str
) -> None:
    world.write(pyproject(requirement))
    world.lock()
    assert torch_in_every_file(world) == {"2.7.0+cu128"}


def test_a_torch_that_only_a_dependency_names_is_bound_too(world: World) -> None:
    world.write(pyproject("peft"))
    world.lock()
    assert torch_in_every_file(world) == {"2.7.0+cu128"}


def test_loc_h4_a_range_does_not_take_the_higher_local_version_of_another_cuda(
    world: World,
) -> None:
    """`2.7.0+cu128` sorts above `2.7.0+cu126`, which is no reason to take it."""
    more = 'cuda = "12.6"'
    world.write(pyproject("torch>=2.7,<2.8", torch=">=2.7,<2.8", gpus=("A100",), more=more))
    world.lock()
    assert torch_in_every_file(world) == {"2.7.0+cu126"}
    world.uv("lock", "--upgrade", *PYTHON)
    assert versions_in(world.read("uv.lock"))["torch"] == "2.7.0+cu126"


@pytest.mark.parametrize(
    ("driver", "pin"),
    [(None, "torch==2.11.0+cu130"), (">=570", "torch==2.11.0+cu129")],
)
def test_a_range_is_pinned_to_the_newest_cuda_that_the_driver_allows(
    driver: str | None, pin: str
) -> None:
    where = target("12.0", python="3.12", driver=driver)
    assert pins(best(where, "torch>=2.11,<2.12"))["torch"] == pin


def test_loc_h2_the_lock_replaces_a_build_that_a_bare_pin_calls_satisfied(own_world: World) -> None:
    own_world.write(pyproject("torch==2.7.0"))
    own_world.lock()
    own_world.uv("venv", *PYTHON, ".venv")
    pypi, whl = str(own_world.index.urls.pypi), str(own_world.index.urls.pytorch)
    for index in (pypi, f"{whl}/cu126"):
        by_hand = ("pip", "install", "--no-config", "--no-deps", "--index-url", index)
        own_world.uv(*by_hand, "torch==2.7.0")
        assert installed(own_world) == "2.7.0", "a bare pin is satisfied by whatever is there"
    own_world.uv("pip", "sync", "lockfiles/requirements.cu128.txt")
    assert installed(own_world) == "2.7.0+cu128"


def test_uv_pip_in_the_project_takes_no_other_build_either(own_world: World) -> None:
    own_world.write(pyproject("torch"))
    own_world.lock()
    own_world.uv("venv", *PYTHON, ".venv")
    pypi = str(own_world.index.urls.pypi)
    answer = own_world.uv("pip", "install", "--index-url", pypi, "torch", check=False)
    assert answer.returncode != 0
    assert "torch==2.7.0+cu128" in answer.stderr


def test_a_pin_that_no_local_version_satisfies_is_named_as_such(world: World) -> None:
    """`===` compares text, so that it means the build without a local version."""
    world.write(pyproject("torch===2.7.0"))
    with pytest.raises(RefusedError) as caught:
        world.lock()
    assert "`torch===2.7.0` excludes torch 2.7.0+cu128" in caught.value.message


def test_a_local_pin_against_the_cuda_of_the_target_is_an_error_of_the_project(
    world: World,
) -> None:
    world.write(pyproject("torch", torch="2.7.0+cu126", more='cuda = "12.8"'))
    with pytest.raises(InputError, match=r"\+cu126"):
        world.lock()


def test_a_local_version_that_no_index_has_is_refused_with_one_that_exists(world: World) -> None:
    world.write(pyproject("torch==2.7.0+cu129"))
    with pytest.raises(RefusedError) as caught:
        world.lock()
    assert "torch==2.7.0+cu129" in caught.value.message
    assert "gives torch 2.7.0+cu128" in (caught.value.hint or "")


def test_a_plain_build_of_pypi_is_not_taken_where_the_index_has_the_right_one(
    own_world: World,
) -> None:
    """PyPI may serve a plain release of the same version with another CUDA."""
    newest = local_wheel("torch", "2.7.0.post1", "cp311-cp311-manylinux_2_28_x86_64")
    own_world.index.add_pypi(newest)
    own_world.write(pyproject("torch>=2.7.0,<2.8", torch=">=2.7,<2.8"))
    own_world.lock()
    assert torch_in_every_file(own_world) == {"2.7.0+cu128"}


def test_two_targets_of_one_project_hold_two_builds_of_one_release(world: World) -> None:
    second = '\n[tool.envbuild.targets.cpu]\npython = "3.11"\ncuda = "cpu"\ntorch = "2.7.0"\n'
    world.write(pyproject("torch==2.7.0") + second)
    world.lock()
    assert torch_in_every_file(world) == {"2.7.0+cu128"}
    cpu = parse_requirements(world.read("lockfiles/requirements.cpu.txt"))
    assert cpu["torch"] == "2.7.0+cpu"
