"""What is compiled from an index's sdist: its address and hash are in the lock, and stay right."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

import pytest
from index import Fault, LocalIndex, local_wheel, make_sdist
from lockworld import World

from envbuild.core.pylock import read_target_lock
from envbuild.errors import RefusedError, WorldError
from envbuild.model.report import Outcome
from envbuild.render.rows import count_words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from envbuild.catalog.reader import Catalog
    from envbuild.model.stack import SourceBuild

LOCK = "lockfiles/pylock.cpu.toml"
PAGE = "/pypi/simple/sharedarray/"
DATA = make_sdist("sharedarray", "3.2.1")
PROJECT = """\
[project]
name = "demo"
version = "0.1"
requires-python = "==3.11.*"
dependencies = ["numpy", "SharedArray==3.2.1"]

[tool.uv]
package = false
override-dependencies = ["mine ; sys_platform == 'never'"]

[tool.envbuild.targets.cpu]
python = "3.11"
cuda = "cpu"

[tool.envbuild.build]
SharedArray = { prefer = "source" }
"""


@pytest.fixture(name="small")
def a_project_with_a_source(tmp_path: Path, catalog: Catalog) -> Iterator[World]:
    """Return a project that compiles a package of an index of its own."""
    (tmp_path / "project").mkdir()
    with LocalIndex() as index:
        index.add_pytorch(
            "cpu", local_wheel("torch", "2.7.0+cpu", "cp311-cp311-manylinux_2_28_x86_64")
        )
        for name in ("numpy", "setuptools", "wheel", "ninja"):
            index.add_pypi(local_wheel(name, "1.0"))
        index.add_sdist("sharedarray", "3.2.1", DATA)
        world = World(
            index=index, root=tmp_path / "project", cache=tmp_path / "cache", catalog=catalog
        )
        world.write(PROJECT)
        yield world


def built(world: World) -> SourceBuild:
    (build,) = read_target_lock(world.read(LOCK), path=LOCK).builds
    return build


def forget_pages(world: World) -> None:
    """Have every page read anew, as it is done once they are old."""
    shutil.rmtree(world.cache / "envbuild")


def test_the_address_and_the_hash_are_those_of_the_page(small: World) -> None:
    report = small.lock()
    assert built(small).url == f"{small.index.base}/pypi/files/sharedarray-3.2.1.tar.gz"
    assert built(small).sha256 == hashlib.sha256(DATA).hexdigest()
    assert count_words(report.targets[0].lock) == "4 packages, all hashed"
    assert not report.incomplete


def test_it_stays_locked_until_the_table_says_otherwise(small: World) -> None:
    small.lock()
    overrides = [line for line in small.read("pyproject.toml").splitlines() if "'never'" in line]
    assert sorted(line.strip(" ,") for line in overrides) == [
        "\"mine ; sys_platform == 'never'\"",
        "\"sharedarray ; sys_platform == 'never'\"",
    ]
    assert small.lock(check=True).outcome is Outcome.FRESH
    assert small.lock().outcome is Outcome.UNCHANGED
    small.index.add_pypi(local_wheel("sharedarray", "3.2.1"))
    small.write(small.read("pyproject.toml").replace('SharedArray = { prefer = "source" }', ""))
    forget_pages(small)
    shutil.rmtree(small.cache / "uv")
    small.lock()
    assert "sharedarray ;" not in small.read("pyproject.toml")
    assert "mine ;" in small.read("pyproject.toml")


def test_other_bytes_are_noticed(small: World) -> None:
    small.lock()
    forget_pages(small)
    small.index.add_sdist("sharedarray", "3.2.1", b"other")
    report = small.lock(check=True)
    assert report.outcome is Outcome.STALE
    new, old = (hashlib.sha256(data).hexdigest() for data in (b"other", DATA))
    said = f"sharedarray 3.2.1: the hash of its source is {new}, the lock says {old}"
    assert said in [change.text for change in report.changes]


def test_a_silent_index_loses_no_hash(small: World) -> None:
    small.lock()
    forget_pages(small)
    small.index.fault(PAGE, Fault(status=403))
    assert small.lock(check=True).outcome is Outcome.FRESH


def test_a_hash_that_cannot_be_had_makes_the_lock_incomplete(small: World) -> None:
    small.index.fault(PAGE, Fault(status=403))
    with pytest.raises(WorldError, match=r"no sha256 is known for sharedarray==3\.2\.1, and 127"):
        small.lock()
    assert not (small.root / LOCK).exists()
    report = small.lock(allow_unhashed=True)
    assert report.incomplete
    assert count_words(report.targets[0].lock) == "4 packages, 1 without a hash: `sharedarray`"
    assert not built(small).hashed


def test_a_hash_that_the_page_does_not_state_is_computed(small: World) -> None:
    small.index.add_sdist("sharedarray", "3.2.1", DATA, hashed=False)
    small.lock()
    assert built(small).sha256 == hashlib.sha256(DATA).hexdigest()


def test_a_release_without_an_sdist_is_refused(small: World) -> None:
    small.write(PROJECT.replace("==3.2.1", "==3.2.2"))
    with pytest.raises(RefusedError, match=r"sharedarray 3\.2\.2 has no sdist on pypi"):
        small.lock()
