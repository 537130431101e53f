"""The order of releases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.catalog.order import build_number, release_key


def test_local_versions_compare_by_their_numbers() -> None:
    versions = [
        "2.1.2+pt210cu128",
        "2.1.2+pt29cu128",
        "2.1.2+pt29cu126",
        "2.1.2",
        "2.1.1+pt210cu128",
    ]
    assert sorted(set(versions), key=release_key, reverse=True) == versions


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(100, 140)), min_size=1, unique=True),
)
def test_order_is_that_of_torch_and_cuda(pairs: list[tuple[int, int]]) -> None:
    versions = {f"2.1.2+pt2{minor}cu{cuda}": (minor, cuda) for minor, cuda in pairs}
    by_key = sorted(versions, key=release_key)
    by_number = sorted(versions, key=lambda v: (int(f"2{versions[v][0]}"), versions[v][1]))
    assert by_key == by_number


@pytest.mark.parametrize(
    ("filename", "number"),
    [
        ("torch-2.10.0-3-cp311-cp311-manylinux_2_28_x86_64.whl", 3),
        ("torch-2.10.0-12post-cp311-cp311-manylinux_2_28_x86_64.whl", 12),
        ("torch-2.10.0-cp311-cp311-manylinux_2_28_x86_64.whl", 0),
    ],
)
def test_build_number(filename: str, number: int) -> None:
    assert build_number(filename) == number
