"""The cache on disk: private, atomic, and never trusted when it is broken."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.world.pagecache import (
    FOREVER,
    CachedPage,
    PageCache,
    default_directory,
    fresh_seconds,
)

URL = "https://h.org/whl/torch/"
PAGE = CachedPage(url=URL, body=b"a\nb\0", content_type="text/html", etag='"1"', fresh_until=5.0)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_pages_come_back(tmp_path: Path) -> None:
    cache = PageCache(tmp_path)
    assert cache.load(URL) is None
    cache.save(URL, PAGE)
    assert PageCache(tmp_path).load(URL) == PAGE
    assert cache.load(URL, variant="json") is None
    assert cache.load(URL + "x") is None
    assert [stat.S_IMODE(path.stat().st_mode) for path in files(tmp_path)] == [0o600]


def test_no_credentials_on_disk(tmp_path: Path) -> None:
    cache = PageCache(tmp_path)
    private = "https://me:hunter2@h.org/whl/torch/"
    cache.save(private, CachedPage(url=private, body=b"x"))
    cache.save_sha256(f"{private}x.whl?access_token=hunter2", size=1, sha256="a" * 64)
    assert all(b"hunter2" not in path.read_bytes() for path in files(tmp_path))
    found = cache.load(URL)
    assert found is not None
    assert found.url == URL
    assert cache.load_sha256(f"{URL}x.whl?access_token=other", size=1) == "a" * 64


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\n",
        b"[]\n",
        b"{}\nbody",
        b"[" * 90_000,
        b'{"key": 1, "sha256": 2}\nx',
        b"\xff\xfe\n",
    ],
)
def test_broken_entries_are_absent(tmp_path: Path, broken: bytes) -> None:
    cache = PageCache(tmp_path)
    cache.save(URL, PAGE)
    cache.save_sha256(URL, size=1, sha256="a" * 64)
    for path in files(tmp_path):
        path.write_bytes(broken)
    assert cache.load(URL) is None
    assert cache.load_sha256(URL, size=1) is None
    cache.save(URL, PAGE)
    assert cache.load(URL) == PAGE


@given(st.data())
def test_any_changed_byte_is_seen(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    cache = PageCache(folder)
    cache.save(URL, PAGE)
    (path,) = files(folder)
    raw = bytearray(path.read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    found = cache.load(URL)
    assert found is None or found.body == PAGE.body


def test_hashes_are_of_an_address_and_a_size(tmp_path: Path) -> None:
    cache = PageCache(tmp_path)
    cache.save_sha256(URL, size=10, sha256="a" * 64)
    assert cache.load_sha256(URL, size=10) == "a" * 64
    assert cache.load_sha256(URL, size=11) is None
    cache.save_sha256(URL, size=10, sha256="no hash")
    assert cache.load_sha256(URL, size=10) is None


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = PageCache(tmp_path / "file")
    cache.save(URL, PAGE)
    cache.save_sha256(URL, size=1, sha256="a" * 64)
    assert cache.load(URL) is None


def test_freshness(tmp_path: Path) -> None:
    cache = PageCache(tmp_path, now=lambda: 1000.0)
    fresh = {999.0: False, 1000.0: False, 1001.0: True, 1600.0: True, 1601.0: False, FOREVER: True}
    for until, expected in fresh.items():
        page = CachedPage(url=URL, body=b"", fresh_until=until)
        assert cache.is_fresh(page) is expected, until


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("max-age=600, public, must-revalidate", 600.0),
        ("public, Max-Age=30", 30.0),
        ("max-age=31536000", 600.0),
        ("max-age=" + "9" * 5000, 600.0),
        ("s-maxage=9", 0.0),
        ("no-cache, max-age=9", 0.0),
        ("no-store", None),
        ("", 0.0),
    ],
)
def test_fresh_seconds(header: str, seconds: float | None) -> None:
    assert fresh_seconds(header) == seconds


def test_parallel_writers_leave_whole_entries(tmp_path: Path) -> None:
    cache = PageCache(tmp_path)
    bodies = [bytes([n]) * 50_000 for n in range(8)]

    def work(body: bytes) -> bool:
        cache.save(URL, CachedPage(url=URL, body=body))
        found = cache.load(URL)
        return found is not None and found.body in bodies

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, bodies * 8))
    assert len(files(tmp_path)) == 1


def test_default_directory() -> None:
    assert default_directory({"ENVBUILD_CACHE_DIR": "c", "XDG_CACHE_HOME": "/x"}) == Path("c")
    assert default_directory({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/envbuild")
    assert default_directory({"XDG_CACHE_HOME": "x", "HOME": "/h"}) == Path("/h/.cache/envbuild")
    assert default_directory({}) == Path.home() / ".cache/envbuild"
