"""The two flagship examples, locked on local indexes with the file names of the real wheels."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from index import LocalIndex, local_wheel, make_sdist
from lockworld import PURE, World, populate
from packaging.pylock import Pylock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envbuild.providers.registry import COUPLED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.catalog.reader import Catalog

EXAMPLES = Path(__file__).parent.parent / "examples"
COMMON = {
    "torch": "2.7.0+cu128",
    "torchvision": "0.22.0+cu128",
    "torchaudio": "2.7.0+cu128",
    "spconv-cu126": "2.3.8",
    "cumm-cu126": "0.7.11",
    "nvidia-nccl-cu12": "2.26.2",
}
POINTCEPT = {
    **COMMON,
    "torch-cluster": "1.6.3+pt27cu128",
    "torch-scatter": "2.1.2+pt27cu128",
    "torch-sparse": "0.6.18+pt27cu128",
}


@pytest.fixture
def full_world(tmp_path: Path, catalog: Catalog) -> Iterator[World]:
    """Serve also what else the examples ask of the default index."""
    (tmp_path / "project").mkdir()
    with LocalIndex() as index:
        populate(index, catalog)
        index.add_pypi(
            *(
                local_wheel(name, version)
                for example in ("ptv3-blackwell", "pointcept-blackwell")
                for name, version in _ordinary(example)
            )
        )
        index.add_sdist("sharedarray", "3.2.1", make_sdist("sharedarray", "3.2.1"))
        yield World(
            index=index, root=tmp_path / "project", cache=tmp_path / "cache", catalog=catalog
        )


def _ordinary(example: str) -> Iterator[tuple[str, str]]:
    served = {entry.partition(" ")[0] for entry in PURE}
    text = (EXAMPLES / example / "pyproject.toml").read_text()
    for line in tomllib.loads(text)["project"]["dependencies"]:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name not in COUPLED and name not in served:
            exact = [s.version for s in requirement.specifier if s.operator == "=="]
            yield name, exact[0] if exact else "1.0"


def _locked(world: World, example: str) -> Pylock:
    world.write((EXAMPLES / example / "pyproject.toml").read_text())
    world.lock()
    return Pylock.from_dict(tomllib.loads(world.read("lockfiles/pylock.cu128.toml")))


@pytest.mark.parametrize(
    ("example", "wanted"), [("ptv3-blackwell", COMMON), ("pointcept-blackwell", POINTCEPT)]
)
def test_the_set_of_a_flagship_example(
    full_world: World, example: str, wanted: dict[str, str]
) -> None:
    lock = _locked(full_world, example)
    held = {package.name: str(package.version) for package in lock.packages}
    assert {name: held.get(name) for name in wanted} == wanted
    assert [name for name in held if name.startswith("nvidia-nccl")] == ["nvidia-nccl-cu12"]
    names = [Path(wheel.filename).name for p in lock.packages for wheel in p.wheels or ()]
    assert "torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl" in names
    assert "spconv_cu126-2.3.8-cp311-cp311-manylinux_2_28_x86_64.whl" in names


def test_every_hash_of_pointcept_is_that_of_the_bytes_served(full_world: World) -> None:
    lock = _locked(full_world, "pointcept-blackwell")
    served = {
        hashlib.sha256(resource.body).hexdigest()
        for resource in full_world.index.resources.values()
    }
    files = [wheel for package in lock.packages for wheel in package.wheels or ()]
    files += [package.archive for package in lock.packages if package.archive]  # type: ignore[misc]
    assert len(files) == len(lock.packages)
    assert {file.hashes["sha256"] for file in files} <= served


def test_the_flash_attn_wheel_fits_torch_cuda_the_abi_and_python(full_world: World) -> None:
    lock = _locked(full_world, "pointcept-blackwell")
    (flash,) = [package for package in lock.packages if package.name == "flash-attn"]
    assert flash.archive is not None
    assert flash.archive.url is not None
    assert "%2Bcu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl" in flash.archive.url


def test_the_extensions_of_pointcept_are_built_on_install(full_world: World) -> None:
    lock = _locked(full_world, "pointcept-blackwell")
    assert lock.tool is not None
    builds = {build["name"]: build for build in lock.tool["envbuild"]["builds"]}
    assert builds["pointops"]["path"] == "libs/pointops"
    assert builds["pointgroup-ops"]["path"] == "libs/pointgroup_ops"
    source = full_world.index.resources["/pypi/files/sharedarray-3.2.1.tar.gz"].body
    assert builds["sharedarray"]["url"].endswith("/pypi/files/sharedarray-3.2.1.tar.gz")
    assert builds["sharedarray"]["sha256"] == hashlib.sha256(source).hexdigest()
    held = {package.name for package in lock.packages}
    assert held & {"pointops", "pointgroup-ops"} == set()
    assert {"setuptools", "wheel", "ninja"} <= held


def test_spconv_is_said_to_run_on_blackwell_by_jit_alone(full_world: World) -> None:
    full_world.write((EXAMPLES / "ptv3-blackwell" / "pyproject.toml").read_text())
    (report,) = full_world.lock().targets
    (finding,) = [one for one in report.findings if one.code == "EB402"]
    assert finding.subject == "spconv-cu126 2.3.8"
    assert finding.message.startswith("sm_100 and sm_120 run spconv-cu126 2.3.8 only by compiling")
    assert "SASS sm_50 … sm_90, PTX compute_52, compute_90" in finding.evidence
