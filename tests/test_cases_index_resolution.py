"""Which index supplies a package: open PyTorch indexes, strategies, and names on one index only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from answers import WHL, errors, proof
from fakes import pinned, target
from index import CP311, local_wheel
from lockworld import pyproject

from envbuild.core.project.manifest import parse_project
from envbuild.core.uvlock import versions_in
from envbuild.errors import RefusedError

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


def test_idx_h1_old_copies_on_the_pytorch_index_do_not_shadow_pypi(crowded: World) -> None:
    crowded.write(pyproject("torch", "tqdm>=4.67", "numpy>=2"))
    crowded.lock()
    held = versions_in(crowded.read("uv.lock"))
    assert (held["tqdm"], held["numpy"], held["filelock"]) == ("4.67.1", "2.2.5", "3.18.0")
    assert held["torch"] == "2.7.0+cu128"
    assert crowded.uv("lock", "--check", "--python", "3.11").returncode == 0


def test_idx_h1_only_coupled_packages_are_routed_to_an_explicit_index(crowded: World) -> None:
    crowded.write(pyproject("torch", "tqdm>=4.67"))
    crowded.lock()
    text = crowded.read("pyproject.toml")
    project = parse_project(text, environ=crowded.environ)
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
def test_idx_h2_a_setting_that_lets_torch_come_from_elsewhere_is_named(
    line: str, said: str
) -> None:
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


def test_idx_h3_the_lock_says_so_when_it_is_used_on_another_system(world: World) -> None:
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


def nightly_like(world: World, *, served: bool = True) -> None:
    """Let torch require a triton that PyTorch's index alone serves, and PyPI a newer impostor."""
    world.index.withdraw("/whl/cu128", "torch-2.7.0")  # uv asks one file for what all require
    requires = ("pytorch-triton==3.3.0+git1; platform_system == 'Linux'", "filelock")
    world.index.add_pytorch("cu128", local_wheel("torch", "2.7.0+cu128", CP311, requires=requires))
    if served:
        world.index.add_pytorch("cu128", local_wheel("pytorch-triton", "3.3.0+git1", CP311))
    world.index.add_pypi(
        local_wheel("pytorch-triton", "3.3.0"),
        local_wheel("pytorch-triton", "99.0"),
        local_wheel("torchtriton", "99.0"),
    )


def test_idx_h4_a_name_of_the_pytorch_index_is_not_taken_from_pypi(own_world: World) -> None:
    nightly_like(own_world)
    own_world.write(pyproject("torch"))
    own_world.lock()
    assert versions_in(own_world.read("uv.lock"))["pytorch-triton"] == "3.3.0+git1"
    text = own_world.read("pyproject.toml")
    assert 'pytorch-triton = { index = "pytorch-cu128" }' in text
    assert '"pytorch-triton==3.3.0+git1"' in text
    pylock = own_world.read("lockfiles/pylock.cu128.toml").partition('name = "pytorch-triton"')[2]
    assert pylock.partition("index = ")[2].startswith(f'"{own_world.index.urls.pytorch}/cu128"')
    own_world.uv("lock", "--upgrade", "--python", "3.11")
    assert versions_in(own_world.read("uv.lock"))["pytorch-triton"] == "3.3.0+git1"


def test_an_impostor_on_pypi_is_no_substitute_for_what_the_index_lacks(own_world: World) -> None:
    nightly_like(own_world, served=False)
    own_world.write(pyproject("torch"))
    with pytest.raises(RefusedError) as caught:
        own_world.lock()
    assert "another index's pytorch-triton is not PyTorch's" in caught.value.message


def test_a_required_impostor_is_refused(own_world: World) -> None:
    nightly_like(own_world)
    own_world.write(pyproject("torch", "torchtriton"))
    with pytest.raises(RefusedError) as caught:
        own_world.lock()
    assert "pytorch-cu128 has no `torchtriton`" in caught.value.message
    assert "the project without `torchtriton`" in (caught.value.hint or "")
    assert not (own_world.root / "uv.lock").exists()


def test_idx_h4_a_dependency_that_brings_an_impostor_is_refused(own_world: World) -> None:
    nightly_like(own_world)
    own_world.index.add_pypi(local_wheel("carrier", "1.0", requires=("torchtriton",)))
    own_world.write(pyproject("torch", "carrier"))
    with pytest.raises(RefusedError) as caught:
        own_world.lock()
    assert "another index's torchtriton is not PyTorch's" in caught.value.message


@pytest.mark.parametrize(
    ("index", "foreign"), [("https://pypi.org/simple", True), ("", True), (f"{WHL}/cu128", False)]
)
def test_the_proof_of_a_set_looks_at_where_such_a_name_comes_from(
    index: str, *, foreign: bool
) -> None:
    torch = pinned("torch==2.7.0+cu128", index=f"{WHL}/cu128")
    found = proof(
        torch, pinned("pytorch-triton==3.3.0", index=index), where=target("9.0"), with_torch=True
    )
    assert ("EB113" in errors(found)) is foreign
    if foreign:
        assert "expected PyTorch's index" in errors(found)["EB113"].message


def test_triton_itself_is_on_both_and_may_come_from_pypi(world: World) -> None:
    world.write(pyproject("torch"))
    world.lock()
    pylock = world.read("lockfiles/pylock.cu128.toml").partition('name = "triton"')[2]
    assert pylock.partition("index = ")[2].startswith(f'"{world.index.urls.pypi}"')
