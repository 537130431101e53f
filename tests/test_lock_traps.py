"""What index pages and projects do that misleads a lock."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from artefacts import addresses, exported, installed, pylocked, required, versions
from index import CP311, LocalIndex, local_wheel
from lockworld import pyproject

from envbuild.errors import InputError, RefusedError
from envbuild.model.report import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lockworld import World

PYLOCK = "lockfiles/pylock.cu128.toml"
REQUIREMENTS = "lockfiles/requirements.cu128.txt"
LINUX = "cp311-cp311-linux_x86_64"
ARM = "cp311-cp311-manylinux_2_28_aarch64"


@pytest.fixture(name="bare")
def a_bare_world(own_world: World) -> Iterator[World]:
    """Return a world whose index holds a few plain packages and no torch."""
    with LocalIndex() as index:
        index.add_pypi(
            *(
                local_wheel(name, version)
                for name, version in (("six", "1.17.0"), ("numpy", "2.2.5"))
            ),
            local_wheel("einops", "0.8.1"),
        )
        yield replace(own_world, index=index)


def pins_of(world: World, target: str = "cu128") -> dict[str, str]:
    return versions(pylocked(world.read(f"lockfiles/pylock.{target}.toml")))


def digest_served(world: World, path: str) -> str:
    return hashlib.sha256(world.index.resources[path].body).hexdigest()


def test_local_versions_do_not_compare_as_text(bare: World) -> None:
    """`2.1.2+pt29cu128` sorts above `2.1.2+pt210cu128`, and is for another torch."""
    bare.index.add_pytorch("cu128", local_wheel("torch", "2.10.0+cu128", CP311))
    scatter = [
        local_wheel("torch-scatter", f"2.1.2+{tag}cu128", LINUX) for tag in ("pt29", "pt210")
    ]
    bare.index.add_pyg("2.10.0", "cu128", *scatter)
    bare.write(pyproject("torch", "torch-scatter", torch="2.10.0"))
    bare.lock()
    assert pins_of(bare) == {"torch": "2.10.0+cu128", "torch-scatter": "2.1.2+pt210cu128"}
    bare.uv("sync", "--locked")
    assert installed(bare.root / ".venv") == pins_of(bare)


def test_each_platform_has_the_requirements_of_its_own_wheel(bare: World) -> None:
    """Uv takes the METADATA of one wheel for every wheel of a version."""
    bare.index.add_pytorch(
        "cu128",
        local_wheel("torch", "2.10.0+cu128", CP311, requires=("six",)),
        local_wheel("torch", "2.10.0+cu128", ARM, requires=("einops",)),
    )
    arm = '[tool.envbuild.targets.arm]\npython = "3.11"\nplatform = "linux-aarch64"\n'
    bare.write(pyproject("torch", torch="2.10.0", more=f'{arm}gpus = ["GH200"]\ntorch = "2.10.0"'))
    bare.lock()
    assert pins_of(bare) == {"torch": "2.10.0+cu128", "six": "1.17.0"}
    assert pins_of(bare, "arm") == {"torch": "2.10.0+cu128", "einops": "0.8.1"}
    assert [address for address in addresses(bare.read(PYLOCK)) if "aarch64" in address] == []
    assert versions(exported(bare)) == pins_of(bare)


def test_a_patch_release_takes_the_wheels_of_its_minor(bare: World) -> None:
    """PyG's page of torch 2.7.1 is an alias whose links lead into the folder of 2.7.0."""
    bare.index.add_pytorch("cu128", local_wheel("torch", "2.7.1+cu128", CP311))
    wheel = local_wheel("torch-scatter", "2.1.2+pt27cu128", LINUX)
    bare.index.add_pyg("2.7.0", "cu128", wheel, aliases=("2.7.1",))
    bare.write(pyproject("torch", "torch-scatter", torch="2.7.1"))
    bare.lock()
    assert pins_of(bare) == {"torch": "2.7.1+cu128", "torch-scatter": "2.1.2+pt27cu128"}
    (address,) = [a for a in addresses(bare.read(PYLOCK)) if "scatter" in a]
    assert "/pyg/torch-2.7.0%2Bcu128/" in address
    bare.uv("lock", "--check")
    bare.uv("sync", "--locked")


def test_links_may_lead_to_another_host(own_world: World) -> None:
    """Since 2026 the links of PyTorch's index are absolute, and name another host."""
    world = own_world
    with LocalIndex() as other:
        page = world.index.resources["/whl/cu128/torch/"]
        for path in list(world.index.resources):
            if path.startswith("/whl/cu128/torch-2"):
                other.resources[path] = world.index.resources.pop(path)
        body = page.body.decode().replace('href="/whl/', f'href="{other.base}/whl/')
        world.index.put("/whl/cu128/torch/", body)
        world.write(pyproject("torch"))
        world.lock()
        name = quote("torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl")
        address = f"{other.base}/whl/cu128/{name}"
        assert address in addresses(world.read(PYLOCK))
        assert address in addresses(world.read("uv.lock"))
        assert f'index = "{world.index.base}/whl/cu128"' in world.read(PYLOCK)
        world.uv("lock", "--check")
        world.uv("sync", "--locked")
        assert installed(world.root / ".venv")["torch"] == "2.7.0+cu128"
        world.uv("pip", "sync", "--dry-run", "--require-hashes", REQUIREMENTS)


def test_of_several_hashes_of_one_file_the_true_one_is_locked(own_world: World) -> None:
    world = own_world
    path = "/whl/cu128/torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl"
    true = digest_served(world, path)
    page = world.index.resources["/whl/cu128/torch/"].body.decode()
    line = next(one for one in page.splitlines() if f"#sha256={true}" in one)
    world.index.put(
        "/whl/cu128/torch/", page.replace(line, f"{line.replace(true, 'a' * 64)}\n{line}")
    )
    world.write(pyproject("torch"))
    world.lock()
    assert pylocked(world.read(PYLOCK))["torch"].hashes == {true}
    assert "a" * 64 not in "".join(world.files().values())
    world.uv("sync", "--locked")


def test_the_highest_build_of_a_wheel_is_taken(bare: World) -> None:
    bare.index.add_pytorch(
        "cu128",
        *(local_wheel("torch", "2.10.0+cu128", CP311, build=tag) for tag in ("", "3", "12")),
    )
    bare.index.add_pypi(local_wheel("six", "1.17.0", build="1"))
    bare.write(pyproject("torch", "six", torch="2.10.0"))
    bare.lock()
    files = [address.rpartition("/")[2] for address in addresses(bare.read(PYLOCK))]
    assert [name for name in files if name.startswith("torch")] == [
        f"torch-2.10.0%2Bcu128-12-{CP311}.whl"
    ]
    assert "six-1.17.0-1-py3-none-any.whl" in files
    bare.uv("sync", "--locked")
    assert installed(bare.root / ".venv") == pins_of(bare)
    bare.uv("pip", "sync", PYLOCK)
    bare.uv("pip", "sync", "--require-hashes", REQUIREMENTS)
    assert bare.lock(check=True).outcome is Outcome.FRESH


def test_the_torch_of_pypi_is_another_cuda_build(world: World) -> None:
    """PyPI's torch 2.7.0 says nothing of its CUDA 12.6, which has no code for a B200."""
    world.changes["ENVBUILD_INDEX_PYTORCH"] = "pypi"
    world.write(pyproject("torch"))
    with pytest.raises(RefusedError, match=r"torch 2\.7\.0 from PyPI \(CUDA 12\.6\) has no code"):
        world.lock()
    assert list(world.files()) == ["pyproject.toml"]


def test_the_torch_of_pypi_is_taken_where_it_fits(world: World) -> None:
    world.changes["ENVBUILD_INDEX_PYTORCH"] = "pypi"
    world.write(pyproject("torch", "peft", torch="2.8.0"))
    world.lock()
    assert pins_of(world)["torch"] == "2.8.0"
    assert pins_of(world)["nvidia-cudnn-cu12"] == "9.10.2.21"
    assert 'cuda = "12.8"' in world.read(PYLOCK)
    world.uv("lock", "--check")
    world.uv("sync", "--locked")
    assert installed(world.root / ".venv") == pins_of(world)
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_companions_that_name_no_torch_are_paired_by_what_is_known(bare: World) -> None:
    bare.index.add_pytorch(
        "cu128",
        local_wheel("torch", "2.10.0+cu128", CP311),
        *(local_wheel("torchaudio", f"{v}+cu128", CP311) for v in ("2.9.1", "2.10.0", "2.11.0")),
    )
    bare.index.add_pypi(
        *(local_wheel("torchcodec", v, CP311) for v in ("0.8.1", "0.10.0", "0.11.1"))
    )
    bare.write(pyproject("torch", "torchaudio", "torchcodec", torch="2.10.0"))
    bare.lock()
    assert pins_of(bare) == {
        "torch": "2.10.0+cu128",
        "torchaudio": "2.10.0+cu128",
        "torchcodec": "0.10.0",
    }
    bare.uv("sync", "--locked")


OWN = """
[tool.uv.sources]
inhouse = {{ index = "mine" }}

[[tool.uv.index]]
name = "mine"
url = "{base}/mine/simple"
explicit = true

[tool.envbuild.targets.cu126]
python = "3.11"
gpus = ["T4"]
cuda = "12.6"
torch = "2.7.0"
"""


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_the_users_own_index_and_sources_still_work(own_world: World, layer: str) -> None:
    world = own_world
    wheel = local_wheel("inhouse", "1.0", requires=("torch", "six"))
    decoy = local_wheel("inhouse", "2.0")
    world.index.add_pypi(decoy)
    world.index.put(f"/mine/{wheel.filename}", wheel.data, content_type="binary/octet-stream")
    link = f'<a href="/mine/{wheel.filename}#sha256={wheel.sha256}">{wheel.filename}</a>'
    world.index.put("/mine/simple/inhouse/", f"<!DOCTYPE html><html><body>{link}</body></html>")
    world.write(pyproject("inhouse", layer=layer, more=OWN.format(base=world.index.base)))
    world.lock()
    for target, torch in (("cu128", "2.7.0+cu128"), ("cu126", "2.7.0+cu126")):
        assert (pins_of(world, target)["inhouse"], pins_of(world, target)["torch"]) == (
            "1.0",
            torch,
        )
    assert pylocked(world.read(PYLOCK))["inhouse"].hashes == {wheel.sha256}
    assert 'inhouse = { index = "mine" }' in world.read("pyproject.toml")
    assert world.lock(check=True).outcome is Outcome.FRESH
    if layer == "project":
        world.uv("lock", "--check")
        world.uv("sync", "--locked")
        assert installed(world.root / ".venv") == pins_of(world)


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_a_project_that_is_a_package_is_not_part_of_the_set(world: World, layer: str) -> None:
    build = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n'
    text = pyproject("torch", "six", layer=layer).replace("package = false\n", "")
    world.write(build + text)
    world.write("", "src/demo/__init__.py")
    world.lock()
    assert "demo" not in pins_of(world)
    assert "demo" not in world.read(REQUIREMENTS)
    assert world.lock(check=True).outcome is Outcome.FRESH
    if layer == "project":
        assert 'source = { editable = "." }' in world.read("uv.lock")
        world.uv("lock", "--check")
        assert versions(exported(world)) == pins_of(world)
        world.uv("sync", "--locked", "--no-install-project")
        assert installed(world.root / ".venv") == pins_of(world)


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_a_folder_in_the_sources_is_refused_with_the_way_out(world: World, layer: str) -> None:
    """No sha256 pins a folder; `[tool.envbuild.build]` compiles it after the install."""
    world.write(
        pyproject(
            "torch",
            "pointops",
            layer=layer,
            more='[tool.uv.sources]\npointops = { path = "libs/p" }',
        )
    )
    world.write('[project]\nname = "pointops"\nversion = "1"\n', "libs/p/pyproject.toml")
    before = world.state()
    with pytest.raises(
        (InputError, RefusedError), match=r"`pointops`.* taken from a folder"
    ) as refused:
        world.lock(dry_run=True)
    assert "[tool.envbuild.build]" in (refused.value.hint or "")
    assert world.state() == before


def test_a_folder_under_build_is_no_part_of_the_set(world: World) -> None:
    more = '[tool.envbuild.build]\npointops = { path = "libs/p", requires = ["setuptools", "six"] }'
    world.write(pyproject("torch", more=more))
    world.write("from setuptools import setup\nsetup()\n", "libs/p/setup.py")
    world.lock()
    assert "pointops" not in pins_of(world)
    assert pins_of(world).keys() >= {"setuptools", "six"}
    assert 'name = "pointops"' in world.read(PYLOCK)
    world.uv("sync", "--locked")
    assert installed(world.root / ".venv") == pins_of(world)
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_a_uv_toml_beside_is_refused(world: World) -> None:
    world.write(pyproject("torch"))
    world.write("[pip]\n", "uv.toml")
    with pytest.raises(InputError, match=r"`uv\.toml` lies beside"):
        world.lock()
    assert sorted(world.files()) == ["pyproject.toml", "uv.toml"]


def test_a_flat_mirror_of_pytorch(own_world: World) -> None:
    """A mirror may serve each accelerator as one folder, with no page for each project."""
    world = own_world
    index = world.index
    for wheel in index._listed["/whl/cu128"].values():  # noqa: SLF001
        index.add_flat("cu128", wheel)
    world.changes["ENVBUILD_INDEX_PYTORCH"] = f"{index.base}/aliyun"
    world.write(pyproject("torch", "timm"))
    world.lock()
    pins = pylocked(world.read(PYLOCK))
    assert pins["torch"].version == "2.7.0+cu128"
    path = "/aliyun/cu128/torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert pins["torch"].hashes == {digest_served(world, path)}
    assert all(f"{index.base}/whl/" not in text for text in world.files().values())
    assert f"--find-links {index.base}/aliyun/cu128/" in world.read(REQUIREMENTS)
    world.uv("lock", "--check")
    world.uv("sync", "--locked")
    assert installed(world.root / ".venv") == versions(pins)
    world.uv("pip", "sync", "--dry-run", "--require-hashes", REQUIREMENTS)
    assert required(world.read(REQUIREMENTS)) == pins
    assert world.lock(check=True).outcome is Outcome.FRESH


def test_credentials_reach_the_server_and_nothing_else(own_world: World) -> None:
    world = own_world
    user, word = "carol", "hunter2"
    for prefix in ("/whl/", "/pyg/", "/pypi/"):
        world.index.require(prefix, user, word)
    for name, url in list(world.environ.items()):
        if name.startswith("ENVBUILD_INDEX"):
            world.changes[name] = url.replace("http://", f"http://{user}:{word}@")
    world.write(pyproject("torch", "torch-scatter", "six"))
    for arguments in ((), ("--check", "--format", "json"), ("--upgrade", "--explain")):
        done = subprocess.run(
            [sys.executable, "-m", "envbuild", "lock", *arguments],
            cwd=world.root,
            env={**world.environ, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        for text in (done.stdout, done.stderr, *world.files().values()):
            assert user not in text
            assert word not in text
    assert pins_of(world)["torch-scatter"] == "2.1.2+pt27cu128"
    kept = [path for path in (world.cache / "envbuild").rglob("*") if path.is_file()]
    assert [path for path in kept if word.encode() in path.read_bytes()] == []


def test_the_names_of_a_project_may_be_spelled_in_any_way(world: World) -> None:
    world.write(pyproject("Torch", "Torch_Scatter", "PEFT"))
    world.lock()
    assert pins_of(world).keys() >= {"torch", "torch-scatter", "peft"}
    world.uv("sync", "--locked")
    assert installed(world.root / ".venv") == pins_of(world)


def test_a_pinned_local_version_is_respected(world: World) -> None:
    world.write(pyproject("torch==2.7.0+cu128", "torchvision==0.22.0+cu128", torch="2.7"))
    world.lock()
    assert pins_of(world)["torch"] == "2.7.0+cu128"
    world.write(pyproject("torch==2.7.0+cu126", torch="2.7"))
    with pytest.raises((InputError, RefusedError)):
        world.lock()
