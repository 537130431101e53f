"""Which index supplies a package: open PyTorch indexes, strategies, and names on one index only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from index import local_wheel
from lockworld import pyproject

from envbuild.core.projectfile import parse_project
from envbuild.core.uvlock import versions_in

if TYPE_CHECKING:
    from lockworld import World

PYTORCH = "https://download.pytorch.org/whl/cu128"
OLD = (
    local_wheel("filelock", "3.9.0"),
    local_wheel("numpy", "1.24.1"),
    local_wheel("tqdm", "4.64.1"),
)
"""Old copies of ordinary packages, as PyTorch's index carries them."""


def with_uv(text: str, *lines: str) -> str:
    return text.replace("package = false", "\n".join(["package = false", *lines]))


def index_table(url: str, more: str = "") -> str:
    return f'\n[[tool.uv.index]]\nname = "torch-wheels"\nurl = "{url}"\n{more}'


@pytest.fixture
def crowded(own_world: World) -> World:
    """Return a world whose PyTorch index holds old copies of ordinary packages."""
    own_world.index.add_pytorch("cu128", *OLD)
    return own_world


def test_old_copies_on_the_pytorch_index_do_not_shadow_pypi(crowded: World) -> None:
    crowded.write(pyproject("torch", "tqdm>=4.67", "numpy>=2"))
    crowded.lock()
    held = versions_in(crowded.read("uv.lock"))
    assert (held["tqdm"], held["numpy"], held["filelock"]) == ("4.67.1", "2.2.5", "3.18.0")
    assert held["torch"] == "2.7.0+cu128"
    assert crowded.uv("lock", "--check", "--python", "3.11").returncode == 0


def test_only_coupled_packages_are_routed_to_an_explicit_index(crowded: World) -> None:
    crowded.write(pyproject("torch", "tqdm>=4.67"))
    crowded.lock()
    text = crowded.read("pyproject.toml")
    project = parse_project(text)
    assert project.notes == ()
    sources = text.partition("[tool.uv.sources]")[2].partition("[[")[0]
    assert {line.partition(" = ")[0] for line in sources.split("\n") if " = " in line} == {
        "torch",
        "torchaudio",
        "torchvision",
    }
    (table,) = (part for part in text.split("[[tool.uv.index]]") if "/whl/cu128" in part)
    assert "explicit = true" in table


def test_an_open_pytorch_index_becomes_explicit_and_the_user_is_told(crowded: World) -> None:
    open_index = index_table(f"{crowded.index.urls.pytorch}/cu128")
    crowded.write(pyproject("torch", "tqdm>=4.67") + open_index)
    crowded.lock()
    (note,) = crowded.notes
    assert "`torch-wheels`" in note
    assert "old copies of ordinary packages" in note
    assert "[tool.uv.sources]" in note
    (own,) = (part for part in crowded.read("pyproject.toml").split("[[") if "torch-wheels" in part)
    assert "explicit = true" in own
    held = versions_in(crowded.read("uv.lock"))
    assert (held["tqdm"], held["filelock"]) == ("4.67.1", "3.18.0")
    assert crowded.lock(check=True).changes == ()
    assert len(crowded.notes) == 1, "an explicit index is nothing to speak of"


def test_an_open_index_of_another_host_stays_as_it_is(crowded: World) -> None:
    table = index_table(str(crowded.index.urls.pypi))
    crowded.write(pyproject("torch") + table)
    crowded.lock()
    assert table.strip() in crowded.read("pyproject.toml")
    assert crowded.notes == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('index-strategy = "unsafe-best-match"', "highest version of all indexes wins"),
        ('index-strategy = "unsafe-first-match"', "from any index"),
        (f'extra-index-url = ["{PYTORCH}"]', f"`{PYTORCH}` in `extra-index-url`"),
        (f'find-links = ["{PYTORCH}/torch"]', "in `find-links`"),
        (f'index-url = "{PYTORCH}"', "the default index of [tool.uv] is PyTorch's"),
        ('torch-backend = "auto"', "only `uv pip` obeys"),
    ],
)
def test_a_setting_that_lets_torch_come_from_elsewhere_is_named(line: str, said: str) -> None:
    (note,) = parse_project(with_uv(pyproject("torch"), line)).notes
    assert said in note
    assert line.partition(" = ")[0] in note or line.startswith("index-url")


def test_credentials_of_an_open_index_are_not_repeated() -> None:
    url = PYTORCH.replace("https://", "https://user:secret@")
    (note,) = parse_project(with_uv(pyproject("torch"), f'extra-index-url = ["{url}"]')).notes
    assert "secret" not in note


@pytest.mark.parametrize(
    "lines",
    [
        'index-strategy = "first-index"',
        'extra-index-url = ["https://mirror.example/whl/cu128"]',
        'find-links = ["wheels"]',
    ],
)
def test_harmless_settings_are_not_spoken_of(lines: str) -> None:
    assert parse_project(with_uv(pyproject("torch"), lines)).notes == ()


def test_an_explicit_pytorch_index_is_not_spoken_of() -> None:
    text = pyproject("torch") + index_table(PYTORCH, "explicit = true\n")
    assert parse_project(text).notes == ()


def test_the_lock_says_so_when_it_is_used_on_another_system(world: World) -> None:
    world.write(pyproject("torch"))
    world.lock()
    answer = world.uv(
        "sync",
        "--locked",
        "--dry-run",
        "--python",
        "3.11",
        "--python-platform",
        "macos",
        check=False,
    )
    assert answer.returncode != 0
    assert "not compatible with the lockfile's supported environments" in answer.stderr
