"""Files of a lock that change, vanish, are withdrawn or come in part; another Python's locks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from index import Fault, local_wheel
from lockworld import LINUX, pyproject

from envbuild.core.uvlock import requires_python_in, versions_in
from envbuild.errors import RefusedError, WorldError
from envbuild.model.finding import Severity
from envbuild.model.report import Outcome

if TYPE_CHECKING:
    from index import LocalWheel
    from lockworld import World

    from envbuild.model.finding import Finding
    from envbuild.model.report import LockReport

PYTHON = ("--python", "3.11")
TORCH = "torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl"
CUDNN = "nvidia_cudnn_cu12-9.7.1.26"


@pytest.fixture
def locked(own_world: World) -> World:
    """Return a world with a locked project."""
    own_world.write(pyproject("torch", "tqdm"))
    own_world.lock()
    own_world.notes.clear()
    return own_world


def on_another_machine(world: World) -> World:
    """Return the same project and index, with nothing in any cache."""
    return replace(world, cache=world.cache.parent / "fresh", notes=[])


def changes(report: LockReport) -> list[str]:
    return [change.text for change in report.changes]


def withdrawn(report: LockReport) -> list[Finding]:
    return [one for target in report.targets for one in target.findings if one.code == "EB114"]


def republish(world: World, filename: str) -> LocalWheel:
    """Put other bytes under the name of a wheel of PyTorch's index, page and all."""
    served = world.index.resources[f"/whl/cu128/{filename}.metadata"].body.decode()
    requires = re.findall(r"^Requires-Dist: (.*)$", served, re.MULTILINE)
    name, version, *tag = filename.removesuffix(".whl").split("-")
    files = {f"{name}/__init__.py": b"changed = True\n"}
    wheel = local_wheel(name, version, "-".join(tag), requires=requires, files=files)
    world.index.add_pytorch("cu128", wheel)
    return wheel


def test_a_vanished_build_is_named_before_nothing_else_fits(locked: World) -> None:
    sha256 = re.search(
        rf'{re.escape(TORCH.replace("+", "%2B"))}".*"([0-9a-f]{{64}})"', pylock(locked)
    )
    locked.index.withdraw("/whl/cu128", "torch-2.7.0")
    with pytest.raises(RefusedError) as caught:
        locked.lock(check=True)
    (note,) = locked.notes
    assert "`torch==2.7.0+cu128` of the lock is gone from" in note
    assert f"{locked.index.urls.pytorch}/cu128" in note
    assert sha256 is not None
    assert f"{TORCH} (sha256 {sha256[1]})" in note, "what to look for elsewhere"
    assert "gives torch 2.8.0+cu128" in (caught.value.hint or "")


def pylock(world: World) -> str:
    return world.read("lockfiles/pylock.cu128.toml")


def test_a_vanished_build_gives_way_to_the_next_and_that_is_said(own_world: World) -> None:
    own_world.write(pyproject("torch", gpus=("A100",)))
    own_world.lock()
    own_world.index.withdraw("/whl/cu128", "torch-2.7.0")
    report = own_world.lock()
    assert any("torch==2.7.0+cu128" in note and "is gone from" in note for note in own_world.notes)
    assert "torch 2.7.0+cu128 -> 2.7.0+cu126" in changes(report)


def test_nothing_is_said_to_be_gone_while_it_is_there(locked: World) -> None:
    locked.write(pyproject("torch", "tqdm", "einops"))
    locked.lock()
    locked.lock(upgrade=True)
    assert locked.notes == []


def test_lck_h1_a_vanished_library_is_named_with_the_file_that_was_locked(locked: World) -> None:
    locked.index.withdraw("/pypi", CUDNN)
    fresh = on_another_machine(locked)
    with pytest.raises(RefusedError) as caught:
        fresh.lock(check=True)
    assert "nvidia-cudnn-cu12==9.7.1.26" in caught.value.message
    assert any(
        "`nvidia-cudnn-cu12==9.7.1.26` of the lock is gone from" in note and CUDNN in note
        for note in fresh.notes
    )


def test_lck_h1_h2_the_libraries_of_nvidia_come_from_pypi_whatever_the_index_of_torch_holds(
    own_world: World,
) -> None:
    """PyTorch's index mirrors them, dropped one for two days, and served other bytes of another."""
    other = {"nvidia/nvtx/__init__.py": b"other bytes"}
    own_world.index.add_pytorch(
        "cu128", local_wheel("nvidia-nvtx-cu12", "12.8.55", LINUX, files=other)
    )
    own_world.write(pyproject("torch"))
    own_world.lock()
    files = re.findall(r'url = "([^"]+/nvidia_[^"]+)"', pylock(own_world))
    assert len(files) >= 13
    assert all(url.startswith(f"{own_world.index.base}/pypi/") for url in files)
    own_world.uv("sync", "--locked", *PYTHON)
    own_world.uv("pip", "sync", "lockfiles/requirements.cu128.txt")


def test_uv_refuses_bytes_that_are_not_those_of_the_lock(locked: World) -> None:
    republish(locked, TORCH)
    answer = locked.uv("sync", "--frozen", *PYTHON, check=False)
    assert answer.returncode != 0
    assert "Hash mismatch for `torch==2.7.0+cu128`" in answer.stderr
    venv = locked.uv("venv", "--clear", *PYTHON, ".venv", check=False)
    assert venv.returncode == 0
    for file in ("pylock.cu128.toml", "requirements.cu128.txt"):
        answer = locked.uv("pip", "sync", f"lockfiles/{file}", check=False)
        assert "ash mismatch for `torch==2.7.0+cu128`" in answer.stderr


def test_lck_h2_check_says_which_hash_changed_on_the_index_of_torch(locked: World) -> None:
    changed = republish(locked, TORCH)
    report = locked.lock(check=True)
    assert report.outcome is Outcome.STALE
    (said,) = (text for text in changes(report) if TORCH in text)
    assert said.startswith(f"torch 2.7.0+cu128: the hash of {TORCH} is {changed.sha256}, the lock")


def test_lck_h2_check_says_which_hash_changed_on_pypi(locked: World) -> None:
    changed = local_wheel("tqdm", "4.67.1", files={"tqdm/__init__.py": b"changed"})
    locked.index.add_pypi(changed)
    report = on_another_machine(locked).lock(check=True)
    assert report.outcome is Outcome.STALE
    assert any(f"{changed.filename} is {changed.sha256}" in text for text in changes(report))


@pytest.mark.parametrize("file", ["lockfiles/pylock.cu128.toml", "uv.lock"])
def test_a_hash_that_was_edited_by_hand_is_stale(locked: World, file: str) -> None:
    text = locked.read(file)
    digest = re.search(r"[0-9a-f]{64}", text.partition("tqdm-4.67.1")[2])
    assert digest is not None
    locked.write(text.replace(digest[0], "0" * 64), file)
    report = locked.lock(check=True)
    assert report.outcome is Outcome.STALE
    assert report.files == (file,)


def test_lck_h3_a_release_that_was_withdrawn_is_taken_only_when_it_is_named(
    own_world: World,
) -> None:
    bad = replace(local_wheel("transformers", "4.57.0"), yanked=True)
    own_world.index.add_pypi(bad, local_wheel("transformers", "4.56.0"))
    own_world.write(pyproject("torch", "transformers"))
    assert withdrawn(own_world.lock()) == []
    assert versions_in(own_world.read("uv.lock"))["transformers"] == "4.56.0"

    own_world.write(pyproject("torch", "transformers==4.57.0"))
    (found,) = withdrawn(own_world.lock())
    assert found.severity is Severity.WARNING
    assert found.message == "`transformers==4.57.0` is yanked, its authors withdrew it"
    assert found.hint == "ask for another version than `transformers==4.57.0`"
    assert withdrawn(own_world.lock(check=True)) == [found], "as long as it is locked"


def test_a_withdrawn_build_of_torch_is_left_for_another(own_world: World) -> None:
    own_world.write(pyproject("torch", gpus=("A100",)))
    own_world.lock()
    (wheel,) = (w for n, w in own_world.index.listed("/whl/cu128").items() if n == TORCH)
    own_world.index.add_pytorch("cu128", replace(wheel, yanked=True))
    own_world.lock()
    assert versions_in(own_world.read("uv.lock"))["torch"] == "2.7.0+cu126"
    assert any("`torch==2.7.0+cu128` of the lock was yanked" in note for note in own_world.notes)


def test_lck_h3_a_uv_lock_for_another_python_is_named_as_such(locked: World) -> None:
    text = locked.read("uv.lock")
    locked.write(
        text.replace('requires-python = "==3.11.*"', 'requires-python = "==3.10.*"'), "uv.lock"
    )
    assert locked.uv("sync", "--locked", *PYTHON, check=False).returncode != 0
    report = locked.lock(check=True)
    assert changes(report) == ["is for Python ==3.10.*, the project wants ==3.11.*"]
    locked.lock()
    assert locked.read("uv.lock") == text


def test_a_target_that_moves_to_another_python_is_named_as_such(locked: World) -> None:
    locked.write(pylock(locked).replace('"==3.11.*"', '"==3.10.*"'), "lockfiles/pylock.cu128.toml")
    assert "Python 3.10 -> 3.11" in changes(locked.lock(check=True))


def test_the_python_of_a_uv_lock() -> None:
    assert requires_python_in('version = 1\nrequires-python = ">=3.10, <4"\n') == ">=3.10, <4"
    assert requires_python_in("version = 1\n") == ""


def test_lck_h4_a_download_that_ends_early_is_no_other_hash(own_world: World) -> None:
    own_world.write(pyproject("torch", "flash-attn"))
    wheel = next(
        path
        for path in own_world.index.resources
        if path.startswith("/flash-attn/download/v2.8.3/")
        and "cu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl" in path
    )
    own_world.index.fault(wheel, Fault(half=True))
    with pytest.raises(WorldError) as caught:
        own_world.lock()
    said = f"{caught.value.message} {caught.value.hint}"
    assert "flash_attn-2.8.3" in said
    assert "hash" not in caught.value.message
    assert re.search(r"\d+ of \d+ bytes", said)
    assert not (own_world.root / "uv.lock").exists()
    own_world.index.heal()
    assert own_world.lock().outcome is Outcome.WRITTEN
