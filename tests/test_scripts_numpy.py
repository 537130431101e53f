"""The script that reads which releases are compiled against numpy 2, and what it wrote."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from index import LocalIndex, local_wheel
from packaging.version import Version
from scriptfiles import script

from envbuild.checks.packagedata import numpy2_releases
from envbuild.checks.tables import table
from envbuild.world.http import HttpClient

if TYPE_CHECKING:
    from pathlib import Path

READ: Any = script("read_numpy_abi")
ONE = b"...\0numpy.core._multiarray_umath\0..."
BOTH = b"\0numpy._core._multiarray_umath\0" + ONE
TAG = "cp312-cp312-manylinux_2_17_x86_64"


@pytest.mark.parametrize(
    ("code", "major"),
    [(ONE, 1), (BOTH, 2), (b"\0numpy.core.multiarray\0", None), (b"", None)],
)
def test_what_code_is_compiled_against(code: bytes, major: int | None) -> None:
    assert READ.major_of(code) == major


def serve(index: LocalIndex, releases: dict[str, bytes]) -> None:
    for version, code in releases.items():
        files = {
            "a.libs/libopenblas.so": BOTH,  # a copy of a library is no module
            "a/plain.so": b"",
            "a/_core.so": code,
        }
        index.add_pypi(local_wheel("a", version, TAG, files=files))


@pytest.mark.parametrize(
    ("codes", "wanted"),
    [
        ((ONE, ONE, BOTH, BOTH), ("1.1", "1.2")),
        ((ONE, b"", b""), ("1.0", "1.1")),  # gone over to pybind11
        ((ONE, ONE), None),
        ((BOTH, BOTH), None),
        ((), None),
    ],
)
def test_the_border_between_the_two(
    codes: tuple[bytes, ...], wanted: tuple[str, str] | None
) -> None:
    with LocalIndex() as index, closing(HttpClient()) as client:
        serve(index, {f"1.{n}": code for n, code in enumerate(codes)})
        serve(index, {"2.0rc1": ONE})
        address = f"{index.base}/pypi/simple"
        found = READ.border(client, READ.releases(client, "a", index=address))
    assert (found and found[:2]) == wanted
    assert found is None or found.file == "a/_core.so"


def test_the_table_is_written(tmp_path: Path) -> None:
    out = tmp_path / "numpy2.toml"
    with LocalIndex() as index:
        for project in READ.PACKAGES:
            for version, code in (("100.0", ONE), ("100.1", BOTH)):
                files = {"b/_core.so": code}
                index.add_pypi(local_wheel(project, version, TAG, files=files))
        address = f"{index.base}/pypi/simple"
        assert READ.main(["--index", address, "--out", str(out)]) == 0
        assert READ.main(["--index", address, "--out", str(tmp_path / "no"), "scipy"]) == 0
    text = out.read_text()
    assert '[releases.scipy]\nlast = "100.0"\nfirst = "100.1"\nfile = "b/_core.so"\n' in text
    assert text.count("[releases.") == len(READ.PACKAGES)
    assert not (tmp_path / "no").exists()


def test_the_embedded_table() -> None:
    rows = table("numpy2")["releases"]
    assert {"torch", "opencv-python", "pandas", "scipy", "h5py"} <= set(rows) <= set(READ.PACKAGES)
    for name, row in rows.items():
        assert Version(row["last"]) < Version(row["first"]), name
    known = {name: first for name, first, _ in numpy2_releases()}
    assert (known["torch"], known["pandas"], known["scipy"]) == ("2.3.0", "2.2.2", "1.13.0")


@pytest.mark.online
def test_two_releases_read_again_are_as_the_table_says() -> None:
    row = table("numpy2")["releases"]["h5py"]
    with closing(HttpClient()) as client:
        wheels = {one.version: one for one in READ.releases(client, "h5py", since="3.8")}
        found = [READ.compiled_for(client, wheels[row[key]]) for key in ("last", "first")]
    assert [major for major, _ in found] == [1, 2]
