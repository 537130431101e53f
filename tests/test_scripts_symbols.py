"""The script that reads since when NVIDIA's libraries export what, and the table that it wrote."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from elfmaker import Held, make_elf
from hypothesis import given
from hypothesis import strategies as st
from index import LocalIndex, local_wheel
from packaging.version import Version
from scriptfiles import script

from envbuild.catalog.reader import Catalog
from envbuild.catalog.storage import DATA
from envbuild.errors import WorldError
from envbuild.world.http import HttpClient

if TYPE_CHECKING:
    from pathlib import Path

ELF: Any = script("exported_symbols")
TABLES: Any = script("symbol_tables")
READ: Any = script("read_symbols")
WHEELS: Any = script("remote_wheels")
TABLE = json.loads((DATA / "libraries.json").read_text(encoding="utf-8"))
PACKAGE = "nvidia-nvjitlink-cu12"
OLD, NEW = ("nvJitLinkCreate", "nvJitLinkVersion", "gone_in_2"), ("nvJitLinkCreate", "came_in_2")
TAG = "py3-none-manylinux2014_x86_64"


def library(*names: str, **options: Any) -> bytes:  # noqa: ANN401
    given = {"soname": "libnvJitLink.so.12", "needed": ("libc.so.6",), "wants": ("malloc",)}
    return make_elf(defines=(*names, "nvJitLinkDestroy"), **{**given, **options})


def test_names_are_read_from_the_head_of_a_file() -> None:
    data = library(*OLD, hashes="") + bytes(200_000)
    assert ELF.exported_by_head(data[:4096]) == {*OLD, "nvJitLinkDestroy"}


def test_the_head_asks_for_more_until_all_names_are_there() -> None:
    data = library(*(f"a_long_name_of_a_symbol_{n}" for n in range(400)), hashes="")
    with pytest.raises(ELF.MoreWantedError):
        ELF.exported_by_head(data[:4096])
    assert ELF.exported_by_head(data) == ELF.exported_by_file(Held(data))


@pytest.mark.parametrize("options", [{"patched": True}, {"padding": 64}, {"merge": True}])
def test_a_whole_file_gives_the_same_names(options: dict[str, Any]) -> None:
    assert ELF.exported_by_file(Held(library(*OLD, **options))) == {*OLD, "nvJitLinkDestroy"}


def test_strings_that_were_moved_are_not_guessed() -> None:
    data = bytearray(library(*OLD, hashes=""))
    at = data.index(b"nvJitLinkCreate")
    data[at - 1 : at + 60] = b"X" * 61
    with pytest.raises((ELF.MovedError, ELF.MoreWantedError)):
        ELF.exported_by_head(bytes(data))
    with pytest.raises(ELF.MovedError):
        ELF.exported_by_head(bytes(data) + bytes(2 << 20))
    with pytest.raises(ELF.MovedError):
        ELF.exported_by_head(b"PK\x03\x04" + bytes(100))


@given(st.integers(0, 2000), st.binary(min_size=1, max_size=8))
def test_a_broken_head_gives_names_or_a_declared_error(at: int, junk: bytes) -> None:
    data = bytearray(library(*OLD, hashes=""))
    data[at : at + len(junk)] = junk
    for head in (bytes(data), bytes(data[:at])):
        try:
            found = ELF.exported_by_head(head)
        except (ELF.MovedError, ELF.MoreWantedError):
            continue
        assert all(isinstance(name, str) for name in found)


@given(
    st.lists(st.frozensets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=8).map(
        lambda sets: {f"1.{n}": frozenset(one) for n, one in enumerate(sets)}
    )
)
def test_a_table_tells_every_set_again(sets: dict[str, frozenset[str]]) -> None:
    table = TABLES.table_of(sets)
    releases = list(sets)
    first = {name: release for release, names in table["first"].items() for name in names}
    gone = {name for names in table["gone"].values() for name in names}
    for name in frozenset().union(*sets.values()):
        having = [release for release in releases if name in sets[release]]
        assert first.get(name, releases[0]) == having[0]
        assert (name in gone) == (name not in sets[releases[-1]])
    assert table["oldest"]["symbols"] == len(sets[releases[0]])


@given(st.integers(1, 30), st.data())
def test_few_releases_are_read_where_little_changes(count: int, data: st.DataObject) -> None:
    change = data.draw(st.integers(0, count))
    releases = tuple(f"1.{n}" for n in range(count))
    known = {r: frozenset({"a"} if n < change else {"a", "b"}) for n, r in enumerate(releases)}
    asked: list[str] = []

    def read(release: str) -> frozenset[str]:
        asked.append(release)
        return known[release]

    assert TABLES.sets_of(releases, read) == known
    assert len(asked) == len(set(asked)) <= 3 + count.bit_length()


def test_what_cannot_be_read_is_left_out() -> None:
    names = frozenset({"a"})
    found = TABLES.sets_of(("1", "2", "3"), lambda release: None if release == "3" else names)
    assert found == {"1": names, "2": names}
    assert TABLES.sets_of((), lambda _: names) == {}


def test_the_script_reads_an_index(tmp_path: Path) -> None:
    member = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
    with LocalIndex() as index:
        for version, data in (
            ("12.10.1", library(*NEW)),  # its strings do not follow its symbols: read to the end
            ("12.4.5", library(*OLD, hashes="") + bytes(3_000_000)),
        ):
            wheel = local_wheel(PACKAGE, version, TAG, files={member: data})
            index.add_pypi(wheel)
        out = tmp_path / "table.json"
        assert READ.main(["--index", f"{index.base}/pypi/simple", "--out", str(out), PACKAGE]) == 0
        with closing(HttpClient()) as client, pytest.raises(WorldError, match="has no `absent`"):
            WHEELS.releases(client, "absent", index=f"{index.base}/pypi/simple")
    found = json.loads(out.read_text())["packages"][PACKAGE]
    assert found["versions"] == ["12.4.5", "12.10.1"]
    table = found["libraries"]["libnvJitLink.so.12"]
    assert table["first"] == {"12.10.1": ["came_in_2"]}
    assert table["gone"] == {"12.10.1": ["gone_in_2", "nvJitLinkVersion"]}
    assert (table["oldest"]["version"], table["oldest"]["symbols"]) == ("12.4.5", 4)
    assert "unread" not in table


def test_the_embedded_table_is_whole() -> None:
    assert set(TABLE["packages"]) == set(READ.PACKAGES)
    assert (DATA / "libraries.json").stat().st_size < 400_000
    for name, row in TABLE["packages"].items():
        versions = row["versions"]
        assert versions == sorted(versions, key=Version), name
        for soname, table in row["libraries"].items():
            releases = {*table["first"], *table["gone"], table["oldest"]["version"]}
            assert releases <= set(versions), soname
            assert table["oldest"]["version"] not in table["first"]


@pytest.mark.parametrize(
    ("library", "symbol", "product", "first"),
    [
        ("libnvJitLink.so.12", "__nvJitLinkComplete_12_4", "nvJitLink", "12.4"),
        ("libnvJitLink.so.12", "__nvJitLinkCreate_12_8", "nvJitLink", "12.8"),
        ("libcudnn.so.9", "cudnnGetLastErrorString", "cuDNN", None),
        ("libcudart.so.12", "cudaGetDriverEntryPointByVersion", "the CUDA runtime", "12.5"),
        ("libcusolver.so.11", "cusolverDnXsyevBatched", "cuSOLVER", "11.7"),
    ],
)
def test_when_symbols_came(library: str, symbol: str, product: str, first: str | None) -> None:
    span = Catalog.load().symbol_span(symbol, library=library)
    if first is None:
        assert span is None  # there from the oldest release on
        return
    assert span is not None
    assert span.first is not None
    assert (span.product, span.first[: len(first) + 1]) == (product, f"{first}.")


def test_a_symbol_that_one_build_lost_is_not_gone(tmp_path: Path) -> None:
    def package(first: dict[str, list[str]], gone: dict[str, list[str]]) -> dict[str, Any]:
        return {"product": "cuDNN", "libraries": {"libcudnn.so.9": {"first": first, "gone": gone}}}

    packages = {
        "nvidia-cudnn-cu11": package({"9.3": ["both", "lost"]}, {"9.10": ["lost", "both"]}),
        "nvidia-cudnn-cu12": package({"9.2": ["lost"], "9.12": ["both"]}, {"9.9": ["both"]}),
    }
    (tmp_path / "libraries.json").write_text(json.dumps({"packages": packages}))
    facts = Catalog.load(tmp_path)
    found = [facts.symbol_span(name, library="libcudnn.so.9") for name in ("lost", "both")]
    assert [(one.first, one.gone) for one in found if one] == [("9.2", None), ("9.3", "9.10")]


def test_a_file_with_its_whole_version_is_the_same_library() -> None:
    facts = Catalog.load()
    symbol = "__nvJitLinkComplete_12_4"
    short = facts.symbol_span(symbol, library="libnvJitLink.so.12")
    assert facts.symbol_span(symbol, library="libnvJitLink.so.12.4.127") == short
    assert facts.symbol_span(symbol, library="libnvJitLink.so.1") is None
    assert facts.symbol_span(symbol, library="libcudnn.so.9") is None


def read_again(project: str, pattern: str, versions: tuple[str, ...]) -> dict[str, frozenset[str]]:
    with closing(HttpClient()) as client:
        wheels = {one.version: one for one in WHEELS.releases(client, project)}
        found = {}
        for version in versions:
            ((_, one),) = READ.libraries(client, pattern, wheels[version]).items()
            found[version] = one.names
        return found


@pytest.mark.online
def test_two_releases_read_again_are_as_the_table_says() -> None:
    row = TABLE["packages"]["nvidia-cudnn-cu12"]
    table = row["libraries"]["libcudnn.so.9"]
    oldest, newest = table["oldest"]["version"], row["versions"][-1]
    found = read_again("nvidia-cudnn-cu12", r"libcudnn\.so\.9", (oldest, newest))
    assert TABLES.table_of(found)["oldest"] == table["oldest"]
    came = {name for names in table["first"].values() for name in names}
    went = {name for names in table["gone"].values() for name in names}
    assert found[newest] - found[oldest] == came - went
    assert found[oldest] - found[newest] == went - came


@pytest.mark.online
def test_nccl_s_table_is_what_its_wheels_say() -> None:
    facts = Catalog.load()
    versions = facts.nccl_versions(cuda_major=12)
    found = read_again("nvidia-nccl-cu12", r"libnccl\.so\.2", (versions[0], "2.27.3"))
    for version, names in found.items():
        for name in (one for one in names if one.startswith("nccl") and one[4].isupper()):
            first = facts.nccl_first_version(name, cuda_major=12)
            assert first is not None, name
            assert Version(first) <= Version(version), name
