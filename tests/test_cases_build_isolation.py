"""Kind build-isolation: an sdist that imports torch, or pkg_resources, in a build of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from answers import best, pins, refused
from fakes import target
from index import local_wheel, make_sdist
from lockworld import pyproject

from envbuild.core.requirementstxt import parse_requirements
from envbuild.core.uvlock import versions_in

if TYPE_CHECKING:
    from lockworld import World

PYTHON = ("--python", "3.11")
MMCV = '[tool.envbuild.build]\nmmcv = { prefer = "source" }\n'


def test_iso_h1_flash_attn_comes_as_the_wheel_of_its_release(world: World) -> None:
    """PyPI has its sdist alone, whose build in isolation finds no torch."""
    world.write(pyproject("torch", "flash-attn>=2.7.3"))
    world.lock()
    text = world.read("pyproject.toml")
    assert '"flash-attn==2.8.3+cu12torch2.7cxx11abitrue"' in text
    wheel = "flash_attn-2.8.3%2Bcu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"
    assert wheel in world.read("lockfiles/pylock.cu128.toml")
    assert wheel in world.read("lockfiles/requirements.cu128.txt")
    assert "no-build-isolation" not in text
    world.uv("sync", *PYTHON)


def test_iso_h1_the_wheel_is_that_of_the_torch() -> None:
    where = target("10.0", python="3.11", torch="==2.7.0")
    assert pins(best(where, "torch", "flash-attn>=2.7.3"))["flash-attn"].endswith(
        "+cu12torch2.7cxx11abitrue"
    )


def test_iso_h2_a_page_that_answers_and_is_empty() -> None:
    error = refused(target("8.0", python="3.11"), "torch==2.13.0", "torch-scatter")
    assert "PyG's page `torch-2.13.0+cu130` has no torch-scatter" in error.message
    assert "gives torch 2.12.1+cu130 with torch-scatter 2.1.2+pt212cu130" in (error.hint or "")


def test_iso_h2_an_open_torch_gets_the_newest_that_has_wheels() -> None:
    found = pins(best(target("8.0", python="3.11"), "torch", "torch-scatter"))
    assert found["torch"] == "torch==2.12.1+cu130"
    assert found["torch-scatter"] == "torch-scatter==2.1.2+pt212cu130"


@pytest.fixture(name="mmcv")
def a_project_that_builds_mmcv(own_world: World) -> World:
    """Return one in front of an index whose newest setuptools has no pkg_resources."""
    own_world.index.add_sdist("mmcv", "2.2.0", make_sdist("mmcv", "2.2.0"))
    own_world.index.add_pypi(local_wheel("setuptools", "84.2.1"))
    own_world.write(pyproject("torch", "mmcv==2.2.0", more=MMCV))
    own_world.lock()
    return own_world


def test_iso_h3_set_h2_setuptools_is_locked_below_82(mmcv: World) -> None:
    pinned = parse_requirements(mmcv.read("lockfiles/requirements.cu128.txt"))
    assert pinned["setuptools"] == "80.1.0"
    assert versions_in(mmcv.read("uv.lock"))["setuptools"] == "80.1.0"
    assert "setuptools<82" in mmcv.read("pyproject.toml")
