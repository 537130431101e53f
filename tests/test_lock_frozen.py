"""A base that is kept: what it holds is locked around, and nothing of it is locked."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from envmaker import EnvMaker, MadeEnv
from lockworld import pyproject

from envbuild.core.pylock import read_target_lock
from envbuild.errors import InputError, RefusedError
from envbuild.model.report import Outcome
from envbuild.render.nextstep import install_command
from envbuild.render.rows import count_words, pin_rows

if TYPE_CHECKING:
    from pathlib import Path

    from lockworld import World

    from envbuild.model.lock import TargetLock

IMAGE = "nvcr.io/nvidia/pytorch:25.05-py3"
NVIDIAS = "2.8.0a0+5228986c39.nv25.05"
NORMAL = "2.8.0a0+5228986c39.nv25.5"
BASE = f'base = "{IMAGE}"'


def image(tmp_path: Path, torch: str = NVIDIAS, cuda: str | None = "12.9") -> MadeEnv:
    """Make an unpacked image as NVIDIA's are laid out, with a torch of its own."""
    made = EnvMaker(tmp_path / "image", image=True).standalone("usr")
    made.torch(torch, cuda=cuda, requires=["filelock", "sympy==1.13.1", "networkx"])
    made.install("numpy", "1.26.4")
    made.install("filelock", "3.18.0", requires=["six>=1.17; extra == 'more'"])
    made.install("typing_extensions", "4.13.2")
    return made


def write(world: World, *dependencies: str, more: str = BASE, torch: str = "2.8.0a0") -> None:
    text = pyproject(*dependencies, layer="pip", more=more)
    line = f'torch = "{torch}"' if torch != "2.8.0a0" else ""
    world.write(text.replace('torch = "2.7.0"', line))


def lock_of(world: World) -> TargetLock:
    path = "lockfiles/pylock.cu128.toml"
    return read_target_lock(world.read(path), path=path)


def test_nothing_of_the_base_is_locked_and_the_rest_is_locked_around_it(
    world: World, tmp_path: Path
) -> None:
    write(world, "torch", "peft", "scipy", "numpy")
    report = world.lock(base_root=str(image(tmp_path).root))
    lock = lock_of(world)
    assert report.outcome is Outcome.WRITTEN
    assert [p.name for p in lock.packages] == ["peft", "pyyaml", "scipy", "tqdm"]
    assert lock.base == IMAGE
    assert lock.frozen is not None
    assert lock.frozen.torch == NVIDIAS
    assert lock.frozen.python == "/usr/bin/python3"
    assert f"torch=={NORMAL}" in [package.pin for package in lock.frozen.packages]
    assert lock.cuda == "12.9"
    assert pin_rows(report.targets[0]) == (("torch", NORMAL, "the build of torch that was chosen"),)
    assert count_words(report.targets[0].lock) == "4 packages on top of 4 of the base, all hashed"
    assert report.targets[0].notes == (f"the GPU code of torch {NORMAL} is not known",)
    assert install_command(report) == "envbuild dockerfile --target cu128"
    assert "torch" not in world.read("lockfiles/requirements.cu128.txt").replace("pytorch", "")


@pytest.mark.parametrize("wanted", ["torch>=2.8", "torch==2.8.*", f"torch=={NORMAL}"])
def test_the_build_of_a_tree_is_what_its_release_is(
    world: World, tmp_path: Path, wanted: str
) -> None:
    write(world, wanted, "peft")
    report = world.lock(base_root=str(image(tmp_path).root))
    assert pin_rows(report.targets[0])[0][:2] == ("torch", NORMAL)
    assert [p.name for p in lock_of(world).packages] == ["peft", "pyyaml", "tqdm"]
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_what_is_added_may_want_the_release_too(world: World, tmp_path: Path) -> None:
    write(world, "wants-torch-2-8")
    world.lock(base_root=str(image(tmp_path).root))
    assert [p.name for p in lock_of(world).packages] == ["wants-torch-2-8"]


@pytest.mark.parametrize("wanted", ["torch>2.8", "torch<2.8", "torch>=2.9"])
def test_the_build_of_a_tree_is_no_other_release(world: World, tmp_path: Path, wanted: str) -> None:
    write(world, wanted)
    with pytest.raises(RefusedError, match="the base has torch"):
        world.lock(base_root=str(image(tmp_path).root))


def test_that_the_gpu_code_of_the_bases_torch_is_not_known_is_said(
    world: World, tmp_path: Path
) -> None:
    write(world, "torch")
    report = world.lock(base_root=str(image(tmp_path).root))
    assert f"the GPU code of torch {NORMAL} is not known" in report.targets[0].notes


def test_a_version_of_the_base_binds_what_is_added(world: World, tmp_path: Path) -> None:
    made = image(tmp_path)
    made.install("six", "1.16.0")
    write(world, "six>=1.17")
    with pytest.raises(RefusedError, match=r"the base has six 1\.16\.0, which is kept"):
        world.lock(base_root=str(made.root))


def test_a_dependency_that_the_base_cannot_satisfy_is_refused(world: World, tmp_path: Path) -> None:
    made = image(tmp_path)
    made.install("mpmath", "1.0.0")
    write(world, "torch", "sympy")
    with pytest.raises(RefusedError, match="mpmath"):
        world.lock(base_root=str(made.root))


def test_locking_again_needs_no_base(world: World, tmp_path: Path) -> None:
    write(world, "torch", "peft")
    world.lock(base_root=str(image(tmp_path).root))
    before = world.files()
    assert world.lock(check=True).outcome is Outcome.FRESH
    assert world.lock().outcome is Outcome.UNCHANGED
    assert world.lock(upgrade=True).outcome is Outcome.UNCHANGED
    assert world.files() == before
    write(world, "torch", "peft", "einops")
    assert world.lock().outcome is Outcome.WRITTEN
    assert "einops" in [package.name for package in lock_of(world).packages]


def test_a_base_that_was_never_read_is_asked_for(world: World) -> None:
    write(world, "torch")
    with pytest.raises(InputError, match=r"it is not known what `nvcr\.io") as caught:
        world.lock()
    assert "--base-root" in str(caught.value.hint)


def test_another_image_is_read_anew(world: World, tmp_path: Path) -> None:
    write(world, "torch")
    world.lock(base_root=str(image(tmp_path).root))
    write(world, "torch", more=BASE.replace("25.05", "25.06"))
    with pytest.raises(InputError, match=r"the lock is for `nvcr\.io/nvidia/pytorch:25\.05-py3`"):
        world.lock()


def test_an_extra_of_a_frozen_package_brings_what_the_base_lacks(
    world: World, tmp_path: Path
) -> None:
    write(world, "filelock[more]")
    world.lock(base_root=str(image(tmp_path).root))
    assert [p.name for p in lock_of(world).packages] == ["six"]
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_an_extra_that_was_not_recorded_is_asked_for(world: World, tmp_path: Path) -> None:
    write(world, "filelock")
    world.lock(base_root=str(image(tmp_path).root))
    write(world, "filelock[more]")
    with pytest.raises(InputError, match=r"`filelock\[more\]` is asked for"):
        world.lock()


def test_no_published_wheel_is_put_on_a_torch_of_the_bases_maker(
    world: World, tmp_path: Path
) -> None:
    root = str(image(tmp_path).root)
    write(world, "torch", "torchvision")
    with pytest.raises(RefusedError, match="the base's own build, which no wheel of torchvision"):
        world.lock(base_root=root)
    write(world, "torch", "flash-attn==2.8.3")
    with pytest.raises(RefusedError, match='flash-attn = "source"'):
        world.lock(base_root=root)


def test_an_extension_is_compiled_against_the_torch_of_the_base(
    world: World, tmp_path: Path
) -> None:
    more = f'{BASE}\n[tool.envbuild.build]\nflash-attn = "source"'
    write(world, "torch", "flash-attn==2.8.3", more=more)
    made = image(tmp_path).install("packaging", "25.0").install("psutil", "7.0.0")
    world.lock(base_root=str(made.root))
    lock = lock_of(world)
    assert [build.project for build in lock.builds] == ["flash-attn"]
    assert "torch" not in [package.name for package in lock.packages]


def test_companions_are_matched_where_the_torch_is_one_of_pytorchs_own(
    world: World, tmp_path: Path
) -> None:
    write(world, "torch", "torchvision", "torch-scatter")
    world.lock(base_root=str(image(tmp_path, "2.7.0+cu128", "12.8").root))
    pins = {package.name: package.version for package in lock_of(world).packages}
    assert pins["torchvision"] == "0.22.0+cu128"
    assert pins["torch-scatter"].endswith("+pt27cu128")
    assert "torch" not in pins


def test_an_interpreter_of_this_machine_is_a_base(world: World, tmp_path: Path) -> None:
    made = EnvMaker(tmp_path).venv("kept")
    made.torch("2.8.0+cu128", metadata="2.8.0", cuda="12.8")
    python = tmp_path / "kept" / "bin" / "python"
    write(world, "torch", "peft", more=f'base-python = "{python}"')
    world.lock()
    lock = lock_of(world)
    assert lock.base is None
    assert lock.frozen is not None
    assert lock.frozen.python == str(python)
    assert [package.pin for package in lock.frozen.packages] == ["torch==2.8.0"]


def test_an_interpreter_that_was_changed_is_noticed(world: World, tmp_path: Path) -> None:
    made = EnvMaker(tmp_path).venv("kept")
    made.torch("2.8.0+cu128", metadata="2.8.0", cuda="12.8")
    made.install("numpy", "1.26.4")
    python = tmp_path / "kept" / "bin" / "python"
    write(world, "torch", "peft", more=f'base-python = "{python}"')
    world.lock()
    said = len(world.notes)
    assert world.lock(check=True).outcome is Outcome.FRESH
    assert len(world.notes) == said, "nothing new is there to be told"
    made.uninstall("torch", "2.8.0")
    made.torch("2.8.0+cu129", metadata="2.8.0", cuda="12.9")
    made.uninstall("numpy", "1.26.4")
    made.install("numpy", "2.2.5")
    report = world.lock(check=True)
    assert report.outcome is Outcome.STALE
    texts = {change.text for change in report.changes}
    assert {
        "CUDA 12.8 -> 12.9",
        "the base: numpy 1.26.4 -> 2.2.5",
        "the base: its torch is the build 2.8.0+cu129, the lock says 2.8.0+cu128",
    } <= texts
    assert world.lock().outcome is Outcome.WRITTEN
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_an_interpreter_that_is_elsewhere_is_as_the_lock_says(world: World, tmp_path: Path) -> None:
    made = EnvMaker(tmp_path).venv("kept")
    made.torch("2.8.0+cu128", metadata="2.8.0", cuda="12.8")
    python = tmp_path / "kept" / "bin" / "python"
    write(world, "torch", "peft", more=f'base-python = "{python}"')
    world.lock()
    (tmp_path / "kept").rename(tmp_path / "gone")
    assert world.lock(check=True).outcome is Outcome.FRESH
    assert any("is not on this machine" in note for note in world.notes)


@pytest.mark.parametrize(
    ("torch", "cuda", "line", "message"),
    [
        ("2.8.0a0+nv1", "12.9", '\ncuda = "13.0"', "exclude CUDA 12.9"),
        ("2.8.0a0+nv1", None, "", "has no code for GPUs"),
        ("2.8.0a0+nv1", "12.4", "", "CUDA 12.4 .* does not compile for sm_100"),
    ],
)
def test_a_torch_that_is_not_for_the_target_is_refused(
    world: World, tmp_path: Path, torch: str, cuda: str | None, line: str, message: str
) -> None:
    write(world, "torch", more=BASE + line)
    with pytest.raises(RefusedError, match=message):
        world.lock(base_root=str(image(tmp_path, torch, cuda).root))


def test_a_torch_of_another_version_is_refused(world: World, tmp_path: Path) -> None:
    write(world, "torch", torch="2.7.0")
    with pytest.raises(RefusedError, match=r"the base has torch .* `torch` of the target is"):
        world.lock(base_root=str(image(tmp_path).root))


def test_a_base_of_another_python_is_refused(world: World, tmp_path: Path) -> None:
    made = EnvMaker(tmp_path / "image", image=True).standalone("usr", python="3.12")
    write(world, "torch")
    with pytest.raises(InputError, match=r"is Python 3\.12, target `cu128` wants 3\.11"):
        world.lock(base_root=str(made.root))


def test_the_packages_of_debians_local_prefix_are_those_of_its_interpreter(
    world: World, tmp_path: Path
) -> None:
    """NVIDIA's images have their torch in `/usr/local`, and their interpreter in `/usr`."""
    EnvMaker(tmp_path / "image", image=True).standalone("usr")
    root = tmp_path / "image"
    site = root / "usr/local/lib/python3.11/dist-packages"
    site.mkdir(parents=True)
    MadeEnv(prefix=root / "usr/local", site=site).torch(NVIDIAS, cuda="12.9")
    write(world, "torch", "peft")
    world.lock(base_root=str(root))
    lock = lock_of(world)
    assert lock.frozen is not None
    assert (lock.frozen.torch, lock.frozen.python) == (NVIDIAS, "/usr/bin/python3")
    shutil.rmtree(root / "usr/bin")
    with pytest.raises(InputError, match="found no interpreter in"):
        world.lock(base_root=str(root))


def test_a_base_without_torch_leaves_torch_to_the_solver(world: World, tmp_path: Path) -> None:
    made = EnvMaker(tmp_path / "image", image=True).standalone("usr")
    made.install("numpy", "1.26.4")
    write(world, "torch", "numpy", torch="2.7.0")
    world.lock(base_root=str(made.root))
    pins = {package.name: package.version for package in lock_of(world).packages}
    assert pins["torch"] == "2.7.0+cu128"
    assert "numpy" not in pins


def test_a_version_that_no_requirement_can_name_is_kept_too(world: World, tmp_path: Path) -> None:
    made = image(tmp_path)
    made.install("tqdm", "dev-build")
    write(world, "peft")
    world.lock(base_root=str(made.root))
    lock = lock_of(world)
    assert lock.frozen is not None
    assert lock.frozen.unversioned == ("tqdm",)
    assert "tqdm" not in [package.name for package in lock.packages]
    assert any("tqdm" in note for note in world.notes)


def test_a_base_needs_the_layer_pip(world: World, tmp_path: Path) -> None:
    world.write(pyproject("torch", more=BASE))
    with pytest.raises(InputError, match="layer `pip`"):
        world.lock(base_root=str(image(tmp_path).root))


def test_a_base_on_the_command_line_needs_one_in_the_project(world: World, tmp_path: Path) -> None:
    world.write(pyproject("torch", layer="pip"))
    with pytest.raises(InputError, match="no target that is locked has one"):
        world.lock(base_root=str(image(tmp_path).root))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('base = "-v /:/x"', "wanted the reference of an image"),
        ('base = "a b"', "wanted the reference of an image"),
        ('base-python = "python3"', "wanted the absolute path of an interpreter"),
    ],
)
def test_keys_that_are_no_base_are_refused(world: World, line: str, message: str) -> None:
    write(world, "torch", more=line)
    with pytest.raises(InputError, match=message):
        world.lock()
