"""What the build of a source tree satisfies: its release, and nothing more."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from envbuild.core.treebuild import released, satisfies, spellings

NVIDIAS = "2.8.0a0+5228986c39.nv25.5"


@pytest.mark.parametrize(
    ("version", "release"),
    [
        (NVIDIAS, "2.8.0+5228986c39.nv25.5"),
        ("0.22.0a0", "0.22.0"),
        ("2.9.0a0+git1234abc", "2.9.0+git1234abc"),
        ("2.8.0", None),
        ("2.8.0rc1", None),
        ("2.8.0a1", None),
        ("2.8.0a0.dev20250101", None),
        ("2.8.0.dev20250101+cu128", None),
        ("no a0 version", None),
    ],
)
def test_the_release_of_a_tree(version: str, release: str | None) -> None:
    assert released(version) == release
    assert spellings(version) == ((version,) if release is None else (version, release))


@pytest.mark.parametrize(
    ("version", "wanted", "answer"),
    [
        (NVIDIAS, ">=2.8", True),
        (NVIDIAS, "==2.8.*", True),
        (NVIDIAS, f"=={NVIDIAS}", True),
        (NVIDIAS, ">2.8", False),
        (NVIDIAS, "<2.8", False),
        (NVIDIAS, ">=2.8.1", False),
        (NVIDIAS, "<2.9,>=2.7", True),
        ("2.8.0rc1", ">=2.8", False),
        ("2.8.0.dev20250101", ">=2.8", False),
    ],
)
def test_what_a_version_satisfies(version: str, wanted: str, *, answer: bool) -> None:
    assert satisfies(version, SpecifierSet(wanted)) is answer
