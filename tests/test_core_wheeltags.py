"""Which wheels fit a target, by name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import linux, target, wheel
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.wheeltags import (
    best,
    best_by_version,
    fits,
    local_of,
    only_newer_glibc,
    public_of,
    python_allowed,
    pythons,
    wants_glibc,
)
from envbuild.model.target import Platform

ARM = Platform.LINUX_AARCH64


@pytest.mark.parametrize(
    "filename",
    [
        "torch-2.6.0+cu124-cp311-cp311-linux_x86_64.whl",
        "torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.10.0-3-cp311-cp311-manylinux_2_28_x86_64.whl",
        "triton-3.3.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "xformers-0.0.32-cp39-abi3-manylinux_2_28_x86_64.whl",
        "xformers-0.0.35-py39-none-manylinux_2_28_x86_64.whl",
        "nvidia_nccl_cu12-2.26.2-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "six-1.17.0-py2.py3-none-any.whl",
        "torchaudio-2.4.0-cp311-cp311-manylinux1_x86_64.whl",
    ],
)
def test_fits(filename: str) -> None:
    assert fits(filename, target())


@pytest.mark.parametrize(
    "filename",
    [
        "torch-2.7.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.7.0+cu128-cp311-cp311t-manylinux_2_28_x86_64.whl",
        "torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_aarch64.whl",
        "torch-2.7.0+cu128-cp311-cp311-win_amd64.whl",
        "torch-2.7.0-cp311-none-macosx_11_0_arm64.whl",
        "bitsandbytes-0.45-py3-none-musllinux_1_1_x86_64.whl",
        "pyg_lib-0.8.0-cp312-abi3-manylinux_2_28_x86_64.whl",
        "xformers-0.0.35-py312-none-manylinux_2_28_x86_64.whl",
        "old-1.0-py2-none-any.whl",
        "not a wheel.whl",
        "torch-2.7.0.tar.gz",
    ],
)
def test_does_not_fit(filename: str) -> None:
    assert not fits(filename, target())


def test_the_machine_decides() -> None:
    name = "torch-2.5.1-cp311-cp311-linux_aarch64.whl"
    assert fits(name, target(platform=ARM))
    assert not fits(name, target())


@given(st.text(max_size=60))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    assert isinstance(fits(text, target()), bool)


@pytest.mark.parametrize(
    ("platforms", "wanted"),
    [
        ("manylinux_2_34_x86_64", (2, 34)),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", (2, 17)),
        ("manylinux1_x86_64.manylinux_2_28_x86_64", (2, 5)),
        ("manylinux_2_39_aarch64.manylinux_2_35_x86_64", (2, 35)),
        ("linux_x86_64", None),
        ("linux_x86_64.manylinux_2_28_x86_64", None),
        ("manylinux_2_39_aarch64", None),
        ("musllinux_1_2_x86_64", None),
        ("any", None),
    ],
)
def test_the_glibc_that_a_wheel_wants(platforms: str, wanted: tuple[int, int] | None) -> None:
    assert wants_glibc(f"demo-1.0-cp311-cp311-{platforms}.whl", "x86_64") == wanted


def test_wheels_that_a_newer_glibc_alone_would_take() -> None:
    here = replace(target(), glibc="2.31")
    newer = "demo-1.0-cp311-cp311-manylinux_2_34_x86_64.whl"
    older = "demo-1.0-cp311-cp311-manylinux_2_31_x86_64.whl"
    foreign = "demo-1.0-cp39-cp39-manylinux_2_34_x86_64.whl"
    assert only_newer_glibc((newer, foreign), here) == (newer,)
    assert only_newer_glibc((newer, older), here) == ()
    assert only_newer_glibc((), here) == ()


def test_the_highest_build_tag_wins() -> None:
    files = [
        wheel("pypi", "torch-2.10.0-2-cp311-cp311-manylinux_2_28_x86_64.whl"),
        wheel("pypi", "torch-2.10.0-10-cp311-cp311-manylinux_2_28_x86_64.whl"),
        wheel("pypi", "torch-2.10.0-cp311-cp311-manylinux_2_28_x86_64.whl"),
    ]
    chosen = best(files, target())
    assert chosen is not None
    assert "-10-" in chosen.filename


def test_an_own_wheel_beats_the_stable_abi_and_that_beats_a_pure_one() -> None:
    pure = wheel("pypi", "a-1-py3-none-any.whl")
    stable = wheel("pypi", "a-1-cp310-abi3-manylinux_2_28_x86_64.whl")
    own = wheel("pypi", linux("a-1"))
    assert best([pure, stable, own], target()) is own
    assert best([stable, pure], target()) is stable
    assert best([wheel("pypi", linux("a-1", "cp312"))], target()) is None


def test_yanked_and_foreign_python_do_not_count() -> None:
    own = wheel("pypi", linux("a-1"))
    assert best([replace(own, yanked=True)], target()) is None
    assert best([replace(own, requires_python=">=3.12")], target()) is None


def test_versions_come_newest_first_and_once() -> None:
    files = [wheel("pypi", linux(f"a-{v}")) for v in ("2.9.0", "2.10.0", "2.7.1")]
    found = best_by_version([*files, *files], target())
    assert [w.version for w in found] == ["2.10.0", "2.9.0", "2.7.1"]


def test_python_allowed() -> None:
    assert python_allowed(">=3.10,!=3.14.1", target(python="3.14"))
    assert not python_allowed(">=3.12", target())
    assert python_allowed("nonsense", target())
    assert python_allowed(None, target())


def test_pythons_and_versions() -> None:
    files = [wheel("pypi", linux("a-1", tag)) for tag in ("cp313", "cp39", "cp310")]
    assert pythons(files) == ("3.9", "3.10", "3.13")
    assert (public_of("2.7.0+cu128"), local_of("2.7.0+cu128")) == ("2.7.0", "cu128")
    assert local_of("2.7.0") == ""
