"""The key of a built wheel, and the cache below it."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.buildkey import BuildInputs, SourceFile, build_key, is_source, tree_sha256
from envbuild.errors import WorldError
from envbuild.world.sourcetree import source_tree_sha256
from envbuild.world.wheelcache import WheelCache, key_of

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = BuildInputs(
    project="pointops",
    source="tree:1",
    torch="2.7.0+cu128",
    cuda="12.8",
    python="3.11-linux-x86_64",
    compiler="13.3",
    nvcc="12.8",
    variables=(("TORCH_CUDA_ARCH_LIST", "10.0;12.0"), ("FORCE_CUDA", "1")),
)


@pytest.mark.parametrize("name", [one.name for one in fields(INPUTS) if one.name != "variables"])
def test_each_input_makes_another_key(name: str) -> None:
    assert build_key(replace(INPUTS, **{name: "other"})) != build_key(INPUTS)  # type: ignore[arg-type]


def test_the_variables_count_and_their_order_does_not() -> None:
    turned = replace(INPUTS, variables=INPUTS.variables[::-1])
    assert build_key(turned) == build_key(INPUTS)
    other = replace(INPUTS, variables=(("TORCH_CUDA_ARCH_LIST", "10.0"), INPUTS.variables[1]))
    assert build_key(other) != build_key(INPUTS)


@pytest.mark.parametrize("name", ["MAX_JOBS", "NVCC_THREADS", "CUDA_HOME", "CXX"])
def test_how_long_a_build_takes_is_no_part_of_the_key(name: str) -> None:
    more = replace(INPUTS, variables=(*INPUTS.variables, (name, "7")))
    assert build_key(more) == build_key(INPUTS)


FILES = st.lists(
    st.builds(SourceFile, path=st.text(), sha256=st.text(), executable=st.booleans()), max_size=5
)


@given(FILES, st.randoms())
def test_the_order_of_files_is_no_matter(files: list[SourceFile], random: object) -> None:
    turned = list(files)
    random.shuffle(turned)  # type: ignore[attr-defined]
    assert tree_sha256(turned) == tree_sha256(files)


@given(FILES, FILES)
def test_other_files_make_another_hash(a: list[SourceFile], b: list[SourceFile]) -> None:
    def row(one: SourceFile) -> tuple[str, str, bool, bool]:
        return (one.path, one.sha256, one.executable, one.link)

    same = sorted(map(row, a)) == sorted(map(row, b))
    assert (tree_sha256(a) == tree_sha256(b)) == same


def tree(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "setup.py").write_text("one")
    (folder / "src" / "a.cu").write_text("two")
    (folder / "link").symlink_to("setup.py")
    return folder


def test_a_tree_is_its_sources_wherever_it_lies(tmp_path: Path) -> None:
    first, second = tree(tmp_path / "a"), tree(tmp_path / "b")
    before = source_tree_sha256(first)
    assert source_tree_sha256(second) == before
    for name in ("build", "pointops.egg-info", "__pycache__", ".git"):
        (second / name).mkdir()
        (second / name / "x").write_text("x")
    (second / "src" / "a.o").write_text("x")
    (second / "_C.cpython-311-x86_64-linux-gnu.so").write_text("x")
    os.utime(second / "setup.py", (1, 1))
    assert source_tree_sha256(second) == before


@pytest.mark.parametrize("change", ["content", "name", "mode", "link", "new", "gone"])
def test_each_change_of_a_source_counts(tmp_path: Path, change: str) -> None:
    folder = tree(tmp_path / "a")
    before = source_tree_sha256(folder)
    if change == "content":
        (folder / "src" / "a.cu").write_text("twO")
    elif change == "name":
        (folder / "src" / "a.cu").rename(folder / "src" / "b.cu")
    elif change == "mode":
        (folder / "setup.py").chmod(0o755)
    elif change == "link":
        (folder / "link").unlink()
        (folder / "link").symlink_to("src")
    elif change == "new":
        (folder / "src" / "b.h").touch()
    else:
        (folder / "link").unlink()
    assert source_tree_sha256(folder) != before


def test_a_tree_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="cannot be read"):
        source_tree_sha256(tmp_path / "none")


def test_products_are_no_source() -> None:
    assert not any(map(is_source, ("build", "x.so", "a.egg-info", ".venv", "b.pyc")))
    assert all(map(is_source, ("builder", "x.sox", "setup.py", "solve.so.cpp")))


KEY = build_key(INPUTS)


def test_a_wheel_counts_once_it_was_checked(tmp_path: Path) -> None:
    made = tmp_path / "pointops-1.0-cp311-cp311-linux_x86_64.whl"
    made.write_bytes(b"wheel")
    cache = WheelCache(tmp_path / "cache")
    place = cache.store(KEY, made)
    assert cache.load(KEY) is None
    cache.confirm(KEY)
    assert cache.load(KEY) == place
    assert place.name == made.name
    assert key_of(f"file://{place}") == KEY
    cache.discard(KEY)
    assert cache.load(KEY) is None


def test_a_wheel_that_was_changed_or_cut_short_does_not_count(tmp_path: Path) -> None:
    made = tmp_path / "a-1-py3-none-any.whl"
    made.write_bytes(b"wheel")
    cache = WheelCache(tmp_path / "cache")
    place = cache.store(KEY, made)
    cache.confirm(KEY)
    place.write_bytes(b"whee")
    assert cache.load(KEY) is None
    assert cache.store(KEY, made).read_bytes() == b"wheel"
    assert cache.load(KEY) is None, "it was not checked anew"


def test_a_cache_that_cannot_be_written_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    made = tmp_path / "a-1-py3-none-any.whl"
    made.touch()
    with pytest.raises(WorldError, match="cannot be written") as caught:
        WheelCache(tmp_path / "cache").store(KEY, made)
    assert "ENVBUILD_CACHE_DIR" in (caught.value.hint or "")


@pytest.mark.parametrize("key", ["", "../../etc", "A" * 64, "0" * 63])
def test_a_key_that_is_none_leads_nowhere(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        WheelCache(tmp_path).load(key)


@pytest.mark.parametrize("address", [None, "", "https://pypi.org/wheels/a.whl", "file:///w/x.whl"])
def test_other_addresses_have_no_key(address: str | None) -> None:
    assert key_of(address) is None
