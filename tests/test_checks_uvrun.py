"""EB501 in every place that a requirement may stand in: `uv run` replaces torch 2.7.0 by 2.11.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from index import CP311, LocalIndex, local_wheel
from uvplace import Place

from envbuild.checks.layers import RULES
from envbuild.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEXT = "the next `uv run` will replace torch 2.7.0+cu128 by 2.11.0"
PYLOCK = ("pip", "compile", "pyproject.toml", "--format", "pylock.toml", "-o", "pylock.toml")


@pytest.fixture(name="place")
def a_place(tmp_path: Path) -> Iterator[Place]:
    """Return a place whose PyPI has torch 2.11.0, and whose cu128 has 2.7.0+cu128."""
    with LocalIndex() as index:
        index.add_pypi(
            local_wheel("torch", "2.11.0", CP311),
            local_wheel("peft", "0.19.0", requires=("torch>=1.13",)),
            local_wheel("six", "1.17.0"),
        )
        index.add_pytorch("cu128", local_wheel("torch", "2.7.0+cu128", CP311))
        yield Place(folder=tmp_path, index=index)


def swap(place: Place) -> None:
    """Install the torch that nobody locked, as a person does."""
    index = f"{place.index.urls.pytorch}/cu128"
    place.uv("pip", "install", "--no-deps", "--index-url", index, "torch==2.7.0+cu128")


@pytest.mark.parametrize(
    ("tables", "flags", "said"),
    [
        ('dependencies = ["peft"]', (), NEXT),
        ('dependencies = ["six"]\n[dependency-groups]\ndev = ["torch"]', (), NEXT),
        (
            'dependencies = ["six"]\n[project.optional-dependencies]\ngpu = ["peft"]',
            ("--extra", "gpu"),
            "`uv run --extra gpu` will replace torch 2.7.0+cu128 by 2.11.0",
        ),
        (
            'dependencies = ["six"]\n[dependency-groups]\ngpu = ["torch"]',
            ("--group", "gpu"),
            "`uv run --group gpu` will replace torch 2.7.0+cu128 by 2.11.0",
        ),
    ],
    ids=["transitive", "default group", "extra", "group"],
)
def test_a_requirement_of_the_project(
    place: Place, tables: str, flags: tuple[str, ...], said: str
) -> None:
    place.project(tables)
    place.uv("sync", "--python", "3.11", *flags)
    assert place.judged(RULES) == []
    swap(place)
    (finding,) = place.judged(RULES)
    assert (finding.code, finding.message) == ("EB501", said)
    assert finding.severity is (Severity.WARNING if flags else Severity.ERROR)


@pytest.mark.parametrize(
    ("root", "said"),
    [
        ('"a"', NEXT),
        ('"six"', "`uv run --all-packages` will replace torch 2.7.0+cu128 by 2.11.0"),
    ],
    ids=["required by the root", "a member alone"],
)
def test_a_member_of_a_workspace(place: Place, root: str, said: str) -> None:
    sources = "[tool.uv.sources]\na = { workspace = true }" if root == '"a"' else ""
    workspace = '[tool.uv]\npackage = false\n[tool.uv.workspace]\nmembers = ["pkgs/a"]'
    place.project(f"dependencies = [{root}]", workspace, sources)
    place.project('dependencies = ["peft"]', at="pkgs/a", name="a")
    place.uv("sync", "--python", "3.11", "--all-packages")
    assert place.judged(RULES) == []
    swap(place)
    for project in (None, "pkgs/a"):
        (finding,) = place.judged(RULES, project=project)
        assert (finding.code, finding.message) == ("EB501", said)


@pytest.mark.parametrize("managed", [True, False])
def test_both_layers(place: Place, *, managed: bool) -> None:
    place.project('dependencies = ["peft"]')
    place.uv("sync", "--python", "3.11")
    place.uv(*PYLOCK)
    if not managed:
        place.project('dependencies = ["peft"]', "[tool.uv]\nmanaged = false")
    swap(place)
    finding = next(one for one in place.judged(RULES) if one.code == "EB501")
    alone = "torch 2.7.0+cu128 is installed, pylock.toml says 2.11.0"
    assert finding.message == (NEXT if managed else alone)


@pytest.mark.parametrize(
    ("name", "flags", "severity"),
    [
        ("pylock.toml", ("--format", "pylock.toml"), Severity.ERROR),
        ("requirements.gpu.txt", ("--generate-hashes",), Severity.ERROR),
        ("requirements-gpu.txt", ("--generate-hashes",), Severity.ERROR),
        ("requirements.txt", ("--generate-hashes",), Severity.ERROR),
        ("requirements.txt", (), Severity.WARNING),
    ],
)
def test_a_lock_without_a_project(
    place: Place, name: str, flags: tuple[str, ...], severity: Severity
) -> None:
    (place.folder / "in").write_text("peft\n", "utf-8")
    place.uv("venv", "--python", "3.11")
    place.uv("pip", "compile", "in", "-o", name, *flags)
    place.uv("pip", "sync", name)
    assert place.judged(RULES) == []
    swap(place)
    (finding,) = place.judged(RULES)
    assert finding.message == f"torch 2.7.0+cu128 is installed, {name} says 2.11.0"
    assert finding.severity is severity


def test_a_pin_by_hand_admits_every_local_version(place: Place) -> None:
    place.uv("venv", "--python", "3.11")
    swap(place)
    for text in ("torch==2.7.0\n", "torch==2.7.0+cu128\n", "torch>=2.7\n", "torch\n"):
        (place.folder / "requirements.txt").write_text(text, "utf-8")
        assert place.judged(RULES) == []
    (place.folder / "requirements.txt").write_text("torch==2.7.0+cu126\n", "utf-8")
    assert [one.code for one in place.judged(RULES)] == ["EB501"]
