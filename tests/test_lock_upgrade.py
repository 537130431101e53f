"""Fresh, stale, kept, upgraded, offline, incomplete: a lock over time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import tomllib
from artefacts import addresses, exported, installed, pylocked, versions
from index import local_wheel
from lockworld import pyproject

from envbuild.errors import WorldError
from envbuild.model.report import Outcome
from envbuild.world.http import HttpClient
from envbuild.world.liveindex import LiveIndex
from envbuild.world.pagecache import PageCache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lockworld import World

    from envbuild.model.wheel import WheelFile

PYLOCK = "lockfiles/pylock.cu128.toml"
REQUIREMENTS = "lockfiles/requirements.cu128.txt"
FILES = (PYLOCK, REQUIREMENTS, "pyproject.toml", "uv.lock")


@pytest.fixture(name="locked")
def a_locked_world(world: World) -> World:
    world.write(pyproject("torch", "peft", "six"))
    assert world.lock().outcome is Outcome.WRITTEN
    return world


def edited(world: World, path: str, old: str, new: str) -> None:
    text = world.read(path)
    assert old in text
    world.write(text.replace(old, new), path)


def stale(world: World) -> dict[str, list[str]]:
    """Check the lock, expect it to be stale and nothing to be written, and return the changes."""
    before = world.state()
    report = world.lock(check=True)
    assert world.state() == before
    assert report.outcome is Outcome.STALE
    assert {change.file for change in report.changes} == set(report.files)
    changes: dict[str, list[str]] = {}
    for change in report.changes:
        changes.setdefault(change.file, []).append(change.text)
    return changes


def test_a_fresh_lock_is_fresh_and_nothing_is_touched(locked: World) -> None:
    before = locked.state()
    report = locked.lock(check=True)
    assert (report.outcome, report.changes, report.files) == (Outcome.FRESH, (), ())
    assert not report.incomplete
    assert locked.state() == before


def test_a_pin_edited_by_hand(locked: World) -> None:
    edited(locked, REQUIREMENTS, "six==1.17.0", "six==1.16.0")
    assert stale(locked) == {REQUIREMENTS: ["six: the file has 1.16.0, the lock has 1.17.0"]}


def test_a_hash_edited_in_the_requirements(locked: World) -> None:
    digest = pylocked(locked.read(PYLOCK))["six"].hashes
    edited(locked, REQUIREMENTS, next(iter(digest)), "0" * 64)
    assert list(stale(locked)) == [REQUIREMENTS]


def test_a_hash_edited_in_the_pylock(locked: World) -> None:
    (digest,) = pylocked(locked.read(PYLOCK))["six"].hashes
    edited(locked, PYLOCK, digest, "0" * 64)
    (text,) = stale(locked)[PYLOCK]
    assert text == (
        f"six 1.17.0: the hash of six-1.17.0-py3-none-any.whl is {digest}, the lock says {'0' * 64}"
    )


def test_the_hash_of_the_torch_edited_in_the_pylock(locked: World) -> None:
    (digest,) = pylocked(locked.read(PYLOCK))["torch"].hashes
    edited(locked, PYLOCK, digest, "0" * 64)
    (text,) = stale(locked)[PYLOCK]
    assert digest in text
    assert text.startswith("torch 2.7.0+cu128: the hash of torch-2.7.0+cu128-cp311")


def test_a_package_of_uv_lock_moved_by_hand(locked: World) -> None:
    """The lock files follow what the user did to uv.lock, and say that they are behind."""
    locked.uv("lock", "--upgrade-package", "six==1.16.0")
    moved = versions(exported(locked))
    assert moved["six"] == "1.16.0"
    changes = stale(locked)
    assert changes[PYLOCK] == ["six 1.17.0 -> 1.16.0"]
    assert changes[REQUIREMENTS] == ["six: the file has 1.17.0, the lock has 1.16.0"]
    assert locked.lock().outcome is Outcome.WRITTEN
    assert versions(pylocked(locked.read(PYLOCK))) == versions(exported(locked)) == moved
    assert locked.lock(check=True).outcome is Outcome.FRESH
    locked.uv("lock", "--check")


def test_a_coupled_package_of_uv_lock_moved_by_hand_comes_back(locked: World) -> None:
    before = locked.files()
    edited(locked, "pyproject.toml", '"torch==2.7.0+cu128"', '"torch==2.8.0+cu128"')
    locked.uv("lock")
    assert versions(exported(locked))["torch"] == "2.8.0+cu128"
    changes = stale(locked)
    assert "torch 2.8.0+cu128 -> 2.7.0+cu128" in changes["uv.lock"]
    locked.lock()
    assert versions(exported(locked))["torch"] == "2.7.0+cu128"
    assert locked.files() == before


def test_a_requirement_added_with_uv_add(locked: World) -> None:
    locked.uv("add", "--no-sync", "iniconfig")
    changes = stale(locked)
    assert changes[PYLOCK] == ["iniconfig 2.1.0 added"]
    assert REQUIREMENTS in changes
    locked.lock()
    assert pylocked(locked.read(PYLOCK))["iniconfig"].version == "2.1.0"
    locked.uv("lock", "--check")


def test_a_requirement_added_by_hand(locked: World) -> None:
    edited(locked, "pyproject.toml", '"six"', '"six", "iniconfig"')
    changes = stale(locked)
    assert changes[PYLOCK] == ["iniconfig 2.1.0 added"]
    assert changes["uv.lock"] == ["iniconfig 2.1.0 added"]


def test_a_requirement_removed(locked: World) -> None:
    edited(locked, "pyproject.toml", ', "six"', "")
    assert stale(locked)[PYLOCK] == ["six 1.17.0 removed"]


def test_another_torch(locked: World) -> None:
    edited(locked, "pyproject.toml", 'torch = "2.7.0"', 'torch = "2.8.0"')
    changes = stale(locked)
    for line in ("torch 2.7.0+cu128 -> 2.8.0+cu128", "cuDNN 9.7.1.26 -> 9.10.2.21"):
        assert line in changes[PYLOCK]
        assert line in changes["uv.lock"]
    assert changes["pyproject.toml"] == [
        "[tool.uv] does not bind the packages to the locked builds"
    ]


def test_another_cuda_says_which_gpus_are_lost(world: World) -> None:
    world.write(pyproject("torch", gpus=["T4"], more='cuda = "12.6"'))
    world.lock()
    edited(world, "pyproject.toml", 'cuda = "12.6"', 'cuda = "12.8"')
    lines = stale(world)[PYLOCK]
    assert "CUDA 12.6 -> 12.8" in lines
    assert "sm_70 lost" in lines
    assert "sm_120 gained" in lines


@pytest.mark.parametrize("path", [PYLOCK, REQUIREMENTS, "uv.lock"])
def test_a_missing_file(locked: World, path: str) -> None:
    before = locked.files()
    (locked.root / path).unlink()
    assert stale(locked) == {path: ["is missing"]}
    report = locked.lock()
    assert report.files == (path,)
    assert locked.files() == before


def test_deleted_lockfiles(locked: World) -> None:
    before = locked.files()
    for path in (PYLOCK, REQUIREMENTS):
        (locked.root / path).unlink()
    (locked.root / "lockfiles").rmdir()
    assert stale(locked) == {PYLOCK: ["is missing"], REQUIREMENTS: ["is missing"]}
    locked.lock()
    assert locked.files() == before


def test_settings_of_uv_taken_out_by_hand(locked: World) -> None:
    edited(locked, "pyproject.toml", 'torch = { index = "pytorch-cu128" }\n', "")
    assert list(stale(locked)) == ["pyproject.toml"]


def test_broken_files_are_stale_and_written_anew(locked: World) -> None:
    before = locked.files()
    for path in (PYLOCK, REQUIREMENTS, "uv.lock"):
        locked.write("<<<<<<< ours\n", path)
        assert list(stale(locked)) == [path]
        locked.lock()
        assert locked.files() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda world: (world.root / PYLOCK).unlink(),
        lambda world: edited(world, "pyproject.toml", '"2.7.0"', '"2.8.0"'),
    ],
    ids=["missing", "torch"],
)
def test_a_dry_run_says_what_it_would_write_and_writes_nothing(
    locked: World, change: Callable[[World], object]
) -> None:
    change(locked)
    before = locked.state()
    report = locked.lock(dry_run=True)
    assert locked.state() == before
    assert report.outcome is Outcome.WOULD_WRITE
    assert PYLOCK in report.files
    assert locked.lock().files == report.files


def newer(world: World, *names: str) -> World:
    """Publish newer releases, and return the world as it is when the caches have run out."""
    for name in names:
        world.index.add_pypi(local_wheel(name, "99.0"))
    return replace(world, cache=world.cache.with_name("later"))


def test_a_newer_release_does_not_move_a_lock(own_world: World) -> None:
    own_world.write(pyproject("torch", "peft", "six"))
    own_world.lock()
    before = own_world.files()
    later = newer(own_world, "six", "tqdm")
    assert later.lock(check=True).outcome is Outcome.FRESH
    assert later.lock().outcome is Outcome.UNCHANGED
    assert later.files() == before
    (later.root / PYLOCK).unlink()
    later.lock()
    assert later.files() == before


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_an_upgrade_moves_the_package_named_and_no_other(own_world: World, layer: str) -> None:
    own_world.write(pyproject("torch", "peft", "six", layer=layer))
    own_world.lock()
    before = versions(pylocked(own_world.read(PYLOCK)))
    later = newer(own_world, "six", "tqdm")
    report = later.lock(upgrade_packages=("six",))
    assert report.outcome is Outcome.WRITTEN
    after = versions(pylocked(later.read(PYLOCK)))
    assert after == {**before, "six": "99.0"}
    assert later.lock(check=True).outcome is Outcome.FRESH
    if layer == "project":
        assert versions(exported(later)) == after


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_an_upgrade_without_names_moves_everything(own_world: World, layer: str) -> None:
    own_world.write(pyproject("torch", "peft", "six", layer=layer))
    own_world.lock()
    later = newer(own_world, "six", "tqdm")
    later.lock(upgrade=True)
    after = versions(pylocked(later.read(PYLOCK)))
    assert (after["six"], after["tqdm"], after["torch"]) == ("99.0", "99.0", "2.7.0+cu128")


def test_a_looser_wish_keeps_the_torch_until_it_is_upgraded(world: World) -> None:
    world.write(pyproject("torch", "torchvision", "torch-scatter", "six", torch="2.7.*"))
    world.lock()
    edited(world, "pyproject.toml", 'torch = "2.7.*"', 'torch = ">=2.7"')
    assert world.lock().outcome is Outcome.UNCHANGED
    edited(world, "pyproject.toml", '"torch-scatter", ', "")
    assert world.lock().outcome is Outcome.WRITTEN
    assert pylocked(world.read(PYLOCK))["torch"].version == "2.7.0+cu128"
    world.lock(upgrade_packages=("torch",))
    after = versions(pylocked(world.read(PYLOCK)))
    assert (after["torch"], after["torchvision"]) == ("2.8.0+cu128", "0.23.0+cu128")
    assert world.lock(check=True).outcome is Outcome.FRESH


@pytest.mark.parametrize("layer", ["project", "pip"])
@pytest.mark.parametrize("gone", ["torch-scatter", "flash-attn", "spconv", "timm"])
def test_a_requirement_that_goes_leaves_nothing(
    world: World, tmp_path: Path, layer: str, gone: str
) -> None:
    fresh = replace(world, root=tmp_path / "fresh")
    fresh.write(pyproject("torch", "six", layer=layer))
    fresh.lock()
    world.write(pyproject("torch", gone, "six", layer=layer))
    world.lock()
    edited(world, "pyproject.toml", f'"{gone}", ', "")
    world.lock()
    assert world.lock(check=True).outcome is Outcome.FRESH
    assert {path: text for path, text in world.files().items() if path != "pyproject.toml"} == {
        path: text for path, text in fresh.files().items() if path != "pyproject.toml"
    }
    assert tomllib.loads(world.read("pyproject.toml")) == tomllib.loads(
        fresh.read("pyproject.toml")
    )


def test_offline_works_with_a_warm_cache_and_no_server(own_world: World, tmp_path: Path) -> None:
    catalog = own_world.catalog
    own_world.write(pyproject("torch", "peft", "six"))
    own_world.lock(source=catalog)
    fresh = replace(own_world, root=tmp_path / "fresh")
    fresh.write(pyproject("torch", "peft", "six"))
    own_world.index.__exit__()
    assert fresh.lock(source=catalog, offline=True).outcome is Outcome.WRITTEN
    assert fresh.files() == own_world.files()
    assert fresh.lock(source=catalog, offline=True, check=True).outcome is Outcome.FRESH


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_offline_with_a_cold_cache_fails_clearly(world: World, tmp_path: Path, layer: str) -> None:
    world.write(pyproject("torch", "six", layer=layer))
    cold = replace(world, cache=tmp_path / "cold")
    with pytest.raises(WorldError, match=r"offline, and uv's cache does not hold") as failed:
        cold.lock(source=world.catalog, offline=True)
    assert failed.value.exit_code == 3
    assert failed.value.hint == "run `envbuild lock` once without `--offline`"
    assert list(world.files()) == ["pyproject.toml"]


def test_without_a_hash_nothing_is_written(world: World) -> None:
    world.write(pyproject("torch", "torch-scatter", "six"))
    with pytest.raises(WorldError, match=r"no sha256 is known for torch-scatter==2\.1\.2\+pt27"):
        world.lock(source=world.catalog)
    assert list(world.files()) == ["pyproject.toml"]


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_an_incomplete_lock_says_so_and_a_live_lock_completes_it(world: World, layer: str) -> None:
    world.write(pyproject("torch", "torch-scatter", "six", layer=layer))
    report = world.lock(source=world.catalog, allow_unhashed=True)
    assert report.incomplete
    lines = [line for line in world.read(REQUIREMENTS).splitlines() if "unhashed" in line]
    assert lines == ["torch-scatter==2.1.2+pt27cu128  # unhashed: the lock is incomplete"]
    assert "torch-scatter" not in pylocked(world.read(PYLOCK))
    table = tomllib.loads(world.read(PYLOCK))["tool"]["envbuild"]
    assert table["incomplete"] == ["torch-scatter==2.1.2+pt27cu128"]
    checked = world.lock(source=world.catalog, check=True)
    assert checked.outcome is Outcome.FRESH
    assert checked.incomplete
    completed = world.lock()
    assert completed.outcome is Outcome.WRITTEN
    assert not completed.incomplete
    assert len(pylocked(world.read(PYLOCK))["torch-scatter"].hashes) == 1
    again = world.lock(check=True)
    assert (again.outcome, again.incomplete) == (Outcome.FRESH, False)


class Hashless(LiveIndex):
    """Live pages of hosts that serve no files."""

    def sha256(self, wheel: WheelFile) -> str | None:
        return wheel.sha256


def test_a_hash_that_was_locked_outlives_a_host_that_is_silent(world: World) -> None:
    """`--check` in a place that does not reach PyG must not call a whole lock incomplete."""
    world.write(pyproject("torch", "torch-scatter", "flash-attn", "six"))
    source = Hashless(HttpClient(), PageCache(world.cache / "envbuild"))
    with pytest.raises(WorldError, match="no sha256 is known for flash-attn"):
        world.lock(source=source)
    world.lock()
    before = world.files()
    checked = world.lock(source=source, check=True)
    assert (checked.outcome, checked.incomplete) == (Outcome.FRESH, False)
    edited(world, "pyproject.toml", '"six"', '"six", "iniconfig"')
    world.lock(source=source)
    edited(world, "pyproject.toml", '"six", "iniconfig"', '"six"')
    world.lock(source=source)
    assert world.files() == before


def test_extras_that_the_target_leaves_out_are_hashed_in_uv_lock(world: World) -> None:
    extra = '[project.optional-dependencies]\ngraphs = ["torch-scatter"]'
    world.write(pyproject("torch", more=extra))
    world.lock()
    files = addresses(world.read("uv.lock"))
    assert any("torch_scatter" in address for address in files)
    assert not [address for address, digest in files.items() if len(digest) != 64]
    world.uv("sync", "--locked", "--extra", "graphs")
    assert installed(world.root / ".venv")["torch-scatter"] == "2.1.2+pt27cu128"


CUTOFF = 'exclude-newer = "2026-06-01T00:00:00Z"\n'


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_a_cutoff_holds_for_pypi_and_not_for_coupled_packages(own_world: World, layer: str) -> None:
    """PyTorch's and PyG's pages give no upload times; the coupled builds were chosen before."""
    world = own_world
    recent = "2026-10-01T00:00:00Z"
    world.index.add_pypi(
        replace(local_wheel("six", "99.0"), upload_time=recent),
        replace(local_wheel("spconv-cu126", "2.3.8", SPCONV), upload_time=recent),
    )
    text = pyproject("torch", "torch-scatter", "spconv-cu126", "six", layer=layer)
    world.write(text.replace("[tool.envbuild]\n", f"[tool.envbuild]\n{CUTOFF}"))
    world.lock()
    pins = versions(pylocked(world.read(PYLOCK)))
    assert (pins["six"], pins["torch"]) == ("1.17.0", "2.7.0+cu128")
    assert (pins["torch-scatter"], pins["spconv-cu126"]) == ("2.1.2+pt27cu128", "2.3.8")
    assert world.lock(check=True).outcome is Outcome.FRESH
    if layer == "project":
        world.uv("lock", "--check")
        world.uv("sync", "--locked")
        assert installed(world.root / ".venv") == pins
    edited(world, "pyproject.toml", "2026-06-01", "2026-11-01")
    world.lock(upgrade=True)
    assert pylocked(world.read(PYLOCK))["six"].version == "99.0"


def test_a_cutoff_that_goes_leaves_nothing(world: World) -> None:
    text = pyproject("torch", "six")
    world.write(text)
    world.lock()
    before = world.files()
    edited(world, "pyproject.toml", "[tool.envbuild]\n", f"[tool.envbuild]\n{CUTOFF}")
    world.lock()
    assert "exclude-newer-package" in world.read("pyproject.toml")
    assert world.read("pyproject.toml").count(CUTOFF) == 2
    edited(world, "pyproject.toml", CUTOFF, "")
    world.lock()
    assert world.files() == before


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_a_cutoff_of_uv_itself_holds_too(own_world: World, layer: str) -> None:
    world = own_world
    recent = "2026-10-01T00:00:00Z"
    world.index.add_pypi(replace(local_wheel("six", "99.0"), upload_time=recent))
    text = pyproject("torch", "six", layer=layer)
    world.write(text.replace("[tool.uv]\n", f"[tool.uv]\n{CUTOFF}"))
    world.lock()
    pins = versions(pylocked(world.read(PYLOCK)))
    assert (pins["six"], pins["torch"]) == ("1.17.0", "2.7.0+cu128")
    assert any("remove it there too" in note for note in world.notes)
    assert world.lock(check=True).outcome is Outcome.FRESH


SPCONV = "cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64"
