"""The examples: each is valid, and each sample says what is to come of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from envbuild.core.project.manifest import parse_project
from envbuild.errors import InputError
from envbuild.model.project import Layer

if TYPE_CHECKING:
    from envbuild.model.project import Project

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SHOWN = sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml"))
SAMPLES = sorted(path.parent.name for path in EXAMPLES.glob("samples/*/pyproject.toml"))
OUTCOMES = tomllib.loads((EXAMPLES / "samples/expected.toml").read_text(encoding="utf-8"))[
    "outcome"
]


def text_of(folder: str) -> str:
    return (EXAMPLES / folder / "pyproject.toml").read_text(encoding="utf-8")


def own_requirements(project: Project) -> list[str]:
    """Give the main requirements: a lock made in the checkout adds a group of its own."""
    return [str(one.requirement) for one in project.requirements if not one.group]


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_is_valid_and_leaves_nothing_to_be_said(name: str) -> None:
    project = parse_project(text_of(name))
    assert project.name == name
    assert project.targets
    assert project.notes == ()


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_is_explained_in_three_lines(name: str) -> None:
    lines = (EXAMPLES / name / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3


def test_the_pip_example_differs_only_in_its_layer() -> None:
    project = parse_project(text_of("ptv3-blackwell"))
    pip = parse_project(text_of("ptv3-pip"))
    assert (project.layer, pip.layer) == (Layer.PROJECT, Layer.PIP)
    assert own_requirements(pip) == own_requirements(project)
    assert pip.targets == project.targets


def test_the_transitive_example_has_a_lock_with_the_wrong_torch() -> None:
    project = parse_project(text_of("ptv3-transitive"))
    if "constraint-dependencies" in project.text:
        pytest.skip("this checkout's example was locked, which mends it")
    assert "torch" not in {one.requirement.name for one in project.requirements}
    lock = tomllib.loads((EXAMPLES / "ptv3-transitive/uv.lock").read_text(encoding="utf-8"))
    (torch,) = (package for package in lock["package"] if package["name"] == "torch")
    assert torch["version"] == "2.11.0"
    assert torch["source"] == {"registry": "https://pypi.org/simple"}


def test_each_sample_has_an_outcome() -> None:
    assert sorted(OUTCOMES) == SAMPLES
    assert "locks" in OUTCOMES.values()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_valid_or_refused_for_the_reason_expected(name: str) -> None:
    try:
        project = parse_project(text_of(f"samples/{name}"))
    except InputError as error:
        assert OUTCOMES[name] != "locks"
        assert re.search(OUTCOMES[name], error.message)  # noqa: PT017
    else:
        assert project.targets
