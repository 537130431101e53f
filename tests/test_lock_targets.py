"""Several targets in one project: each has its own files, uv.lock is the default one's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import tomllib
from artefacts import addresses, exported, installed, pylocked, required, versions
from lockworld import pyproject

from envbuild.errors import RefusedError
from envbuild.model.report import Outcome

if TYPE_CHECKING:
    from lockworld import World

MORE = """
[tool.envbuild.targets.cu126]
python = "3.11"
gpus = ["T4", "V100"]
torch = "2.7.0"

[tool.envbuild.targets.cpu]
python = "3.11"
cuda = "cpu"
torch = "2.7.0"

[tool.envbuild.targets.arm]
python = "3.11"
platform = "linux-aarch64"
gpus = ["GH200"]
torch = "2.7.0"
"""
TARGETS = ("cu128", "cu126", "cpu", "arm")


@pytest.fixture(name="locked")
def a_locked_world(world: World) -> World:
    world.write(pyproject("torch", "timm", more=MORE))
    assert world.lock().outcome is Outcome.WRITTEN
    return world


def pins_of(world: World, target: str) -> dict[str, str]:
    return versions(pylocked(world.read(f"lockfiles/pylock.{target}.toml")))


def test_each_target_has_its_own_files(locked: World) -> None:
    assert sorted(locked.files()) == sorted(
        [
            *(f"lockfiles/pylock.{target}.toml" for target in TARGETS),
            *(f"lockfiles/requirements.{target}.txt" for target in TARGETS),
            "pyproject.toml",
            "uv.lock",
        ]
    )
    for target in TARGETS:
        requirements = required(locked.read(f"lockfiles/requirements.{target}.txt"))
        assert requirements == pylocked(locked.read(f"lockfiles/pylock.{target}.toml"))
    assert {target: pins_of(locked, target)["torch"] for target in TARGETS} == {
        "cu128": "2.7.0+cu128",
        "cu126": "2.7.0+cu126",
        "cpu": "2.7.0+cpu",
        "arm": "2.7.0+cu128",
    }
    assert locked.lock(check=True).outcome is Outcome.FRESH


def test_each_target_has_the_cuda_libraries_of_its_torch(locked: World) -> None:
    cudnn = {target: pins_of(locked, target).get("nvidia-cudnn-cu12") for target in TARGETS}
    assert (cudnn["cu128"], cudnn["cu126"], cudnn["cpu"]) == ("9.7.1.26", "9.5.1.17", None)
    assert not [name for name in pins_of(locked, "cpu") if name.startswith(("nvidia-", "triton"))]


def test_a_build_without_a_local_version_stands_beside_one_with(locked: World) -> None:
    """On aarch64 torchvision of CUDA's own page carries no local version."""
    assert pins_of(locked, "cu128")["torchvision"] == "0.22.0+cu128"
    assert pins_of(locked, "arm")["torchvision"] == "0.22.0"
    assert pins_of(locked, "arm")["triton"] == "3.3.0"
    files = [a for a in addresses(locked.read("lockfiles/pylock.arm.toml")) if "torchvision" in a]
    assert files == [
        f"{locked.index.base}/whl/cu128/torchvision-0.22.0-cp311-cp311-manylinux_2_28_aarch64.whl"
    ]


def test_a_target_holds_no_file_of_another_platform(locked: World) -> None:
    for target, wrong in (("arm", "x86_64"), ("cu128", "aarch64")):
        text = locked.read(f"lockfiles/pylock.{target}.toml")
        assert not [address for address in addresses(text) if wrong in address]
    assert not [address for address in addresses(locked.read("uv.lock")) if "aarch64" in address]


def test_a_bare_uv_run_installs_the_default_target(locked: World) -> None:
    assert versions(exported(locked)) == pins_of(locked, "cu128")
    locked.uv("run", "python", "-c", "import torch")
    assert installed(locked.root / ".venv") == pins_of(locked, "cu128")


def test_any_target_is_installed_from_its_own_file(locked: World) -> None:
    locked.uv("venv")
    for target in ("cpu", "cu126"):
        locked.uv("pip", "sync", f"lockfiles/pylock.{target}.toml")
        assert installed(locked.root / ".venv") == pins_of(locked, target)


def test_one_target_is_locked_alone(locked: World) -> None:
    before = locked.files()
    for path in before.keys() - {"pyproject.toml"}:
        locked.write("", path)
    report = locked.lock(targets=("cpu",))
    assert sorted(report.files) == ["lockfiles/pylock.cpu.toml", "lockfiles/requirements.cpu.txt"]
    after = locked.files()
    for path in before:
        assert after[path] == (before[path] if path in report.files else after[path])
    assert after["uv.lock"] == ""
    assert after["lockfiles/pylock.arm.toml"] == ""


def test_the_default_target_moves_uv_lock(locked: World) -> None:
    before = locked.files()
    text = before["pyproject.toml"]
    locked.write(text.replace("[tool.envbuild]\n", '[tool.envbuild]\ndefault-target = "cu126"\n'))
    assert locked.lock(check=True).outcome is Outcome.STALE
    assert sorted(locked.lock().files) == ["pyproject.toml", "uv.lock"]
    assert versions(exported(locked)) == pins_of(locked, "cu126")
    uv = tomllib.loads(locked.read("pyproject.toml"))["tool"]["uv"]
    assert uv["sources"]["torch"] == {"index": "pytorch-cu126"}
    assert [index["name"] for index in uv["index"]] == ["pypi", "pytorch-cu126"]
    locked.uv("lock", "--check")
    locked.write(locked.read("pyproject.toml").replace('default-target = "cu126"\n', ""))
    locked.lock()
    assert versions(exported(locked)) == pins_of(locked, "cu128")
    assert {path: text for path, text in locked.files().items() if path != "pyproject.toml"} == {
        path: text for path, text in before.items() if path != "pyproject.toml"
    }


def test_a_cpu_build_from_pypi_is_not_taken_for_a_gpu_on_aarch64(world: World) -> None:
    """PyPI's torch 2.8.0 for aarch64 is a CPU build, and CUDA's own page has none."""
    arm = '[tool.envbuild.targets.arm]\npython = "3.11"\nplatform = "linux-aarch64"\n'
    arm += 'gpus = ["GH200"]\ntorch = "2.8.0"\n'
    world.write(pyproject("torch", more=arm))
    with pytest.raises(RefusedError, match=r"torch 2\.8\.0 from PyPI is a CPU build") as refused:
        world.lock(targets=("arm",))
    assert refused.value.exit_code == 1
    assert list(world.files()) == ["pyproject.toml"]


def test_a_default_target_of_another_platform_is_locked_here(world: World) -> None:
    text = pyproject("torch", "timm", more=MORE)
    world.write(text.replace("[tool.envbuild]\n", '[tool.envbuild]\ndefault-target = "arm"\n'))
    world.lock()
    assert versions(exported(world)) == pins_of(world, "arm")
    assert pins_of(world, "arm")["torchvision"] == "0.22.0"
    world.uv("lock", "--check")
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_requirements_may_differ_by_platform(world: World) -> None:
    world.write(
        pyproject(
            "torch",
            "einops; platform_machine == 'aarch64'",
            "six; platform_machine == 'x86_64'",
            more=MORE,
        )
    )
    world.lock()
    assert {"einops", "six"} & pins_of(world, "arm").keys() == {"einops"}
    assert {"einops", "six"} & pins_of(world, "cu128").keys() == {"six"}
    world.uv("sync", "--locked")
    assert installed(world.root / ".venv") == pins_of(world, "cu128")
