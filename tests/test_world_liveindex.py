"""Pages, requirements and hashes from live hosts, whole, broken, slow and absent."""

from __future__ import annotations

import hashlib
import socket
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from index import CP311, HTML_FOR_JSON, Fault, LocalIndex, local_wheel, redirect

from envbuild.core.indexpages import flash_attn_page, pyg_page, pypi_page, pytorch_page
from envbuild.errors import WorldError
from envbuild.model.project import IndexUrls
from envbuild.model.wheel import IndexPage, PageKind, WheelFile
from envbuild.world.http import HttpClient, HttpOptions
from envbuild.world.httperrors import UnreachedError
from envbuild.world.liveindex import LiveIndex
from envbuild.world.pagecache import PageCache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from index import LocalWheel

TORCH = local_wheel("torch", "2.7.0+cu128", CP311, requires=["filelock", "triton==3.3.0"])
SCATTER = local_wheel("torch-scatter", "2.1.2+pt27cu128", CP311, requires=["scipy"])
NUMPY = local_wheel("numpy", "2.2.0", requires_python=">=3.10")
OPTIONS = HttpOptions(connect_timeout=0.5, read_timeout=0.2, attempts=2, backoff=0.01)
TORCH_PATH = f"/whl/cu128/{TORCH.filename}"
TORCH_PAGE = "/whl/cu128/torch/"


@pytest.fixture
def index() -> Iterator[LocalIndex]:
    with LocalIndex() as served:
        served.add_pytorch("cu128", TORCH, local_wheel("torchvision", "0.22.0+cu128", CP311))
        served.add_pyg("2.7.0", "cu128", SCATTER, aliases=["2.7.1"])
        served.add_pypi(NUMPY)
        yield served


class World:
    """A LiveIndex with its parts, made anew for each run of the program."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.folder = folder
        self.told: list[tuple[str, int, int | None]] = []
        self.options = OPTIONS
        self._open: list[HttpClient] = []

    def live(self) -> LiveIndex:
        client = HttpClient(options=self.options)
        self._open.append(client)
        cache = PageCache(self.folder, now=lambda: self.now)
        return LiveIndex(client, cache, lambda *told: self.told.append(told))

    def close(self) -> None:
        for client in self._open:
            client.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as opened:
        yield opened


def torch_page(index: LocalIndex) -> IndexPage:
    page = pytorch_page(index.urls, "cu128")
    assert page is not None
    return page


def only(wheels: tuple[WheelFile, ...]) -> WheelFile:
    (wheel,) = wheels
    return wheel


def bare(wheel: WheelFile) -> WheelFile:
    return replace(wheel, sha256=None, size=None, metadata_sha256=None)


def test_pytorch(index: LocalIndex, world: World) -> None:
    wheel = only(world.live().wheels(torch_page(index), "torch"))
    assert wheel.url == f"{index.base}/whl/cu128/{TORCH.filename.replace('+', '%2B')}"
    assert (wheel.version, wheel.sha256) == ("2.7.0+cu128", TORCH.sha256)
    assert wheel.metadata_sha256 == TORCH.metadata_sha256


def test_pypi_is_asked_for_json(index: LocalIndex, world: World) -> None:
    wheel = only(world.live().wheels(pypi_page(index.urls), "NumPy"))
    assert (wheel.size, wheel.requires_python) == (len(NUMPY.data), ">=3.10")
    page = index.resources["/pypi/simple/numpy/"]
    index.resources["/pypi/simple/numpy/"] = replace(page, json=None)
    world.now += 1e6
    html = only(world.live().wheels(pypi_page(index.urls), "numpy"))
    assert html == replace(wheel, size=None)


def test_pyg_aliases(index: LocalIndex, world: World) -> None:
    page = pyg_page(index.urls, "2.7.1", "cu128")
    alias = replace(page, url=page.url.replace("2.7.0", "2.7.1"))
    live = world.live()
    found = [only(live.wheels(p, "torch-scatter")).url for p in (page, alias)]
    name = SCATTER.filename.replace("+", "%2B")
    assert found == [f"{index.base}/pyg/torch-2.7.0%2Bcu128/{name}"] * 2


def test_release_with_hashes(index: LocalIndex, world: World) -> None:
    made = local_wheel("flash-attn", "2.8.3+cu12torch2.7cxx11abiTRUE", CP311)
    index.add_release("2.8.3", made, shows_hashes=True)
    wheel = only(world.live().wheels(flash_attn_page(index.urls, "2.8.3"), "flash-attn"))
    assert (wheel.filename, wheel.sha256) == (made.filename, made.sha256)
    assert "/flash-attn/download/v2.8.3/flash_attn-2.8.3" in wheel.url


def test_a_mirror_that_is_one_flat_folder(index: LocalIndex, world: World) -> None:
    index.add_flat("cu128", TORCH, local_wheel("triton", "3.3.0", CP311))
    page = pytorch_page(IndexUrls(pytorch=f"{index.base}/aliyun"), "cu128")
    assert page is not None
    live = world.live()
    wheel = only(live.wheels(page, "torch"))
    assert wheel.page == replace(page, flat=True, url=f"{index.base}/aliyun/cu128/")
    assert wheel.url == f"{index.base}/aliyun/cu128/{TORCH.filename.replace('+', '%2B')}"
    assert [w.project for w in live.wheels(page, "triton")] == ["triton"]
    assert index.requests["/aliyun/cu128/"] == 1


def test_absence(index: LocalIndex, world: World) -> None:
    live = world.live()
    assert live.wheels(torch_page(index), "torchcodec") == ()
    assert live.wheels(pypi_page(index.urls), "torchcodec") == ()
    assert live.wheels(pyg_page(index.urls, "2.7.0", "cu128"), "torchcodec") == ()
    assert live.wheels(pyg_page(index.urls, "9.9.0", "cu128"), "torch-scatter") == ()
    assert live.wheels(replace(torch_page(index), url=f"{index.base}/none"), "torch") == ()
    assert index.requests["/pypi/simple/"] == 0


def test_each_page_is_asked_for_once(index: LocalIndex, world: World) -> None:
    live = world.live()
    page = pyg_page(index.urls, "2.7.0", "cu128")
    for _ in range(3):
        live.wheels(torch_page(index), "torch")
        live.wheels(page, "torch-scatter")
        live.wheels(page, "torch-sparse")
    assert set(index.requests.values()) == {1}


def test_pages_are_revalidated(index: LocalIndex, world: World) -> None:
    page = torch_page(index)
    first = world.live().wheels(page, "torch")
    assert world.live().wheels(page, "torch") == first
    assert index.requests[TORCH_PAGE] == 2
    assert "if-none-match" in index.seen[-1].headers
    index.add_pytorch("cu128", local_wheel("torch", "2.8.0+cu128", CP311))
    assert len(world.live().wheels(page, "torch")) == 2


def test_fresh_pages_are_not_asked_for(index: LocalIndex, world: World) -> None:
    page = pypi_page(index.urls)
    first = world.live().wheels(page, "numpy")
    world.now += 599
    world.options = HttpOptions(offline=True)
    assert world.live().wheels(page, "numpy") == first
    assert index.requests["/pypi/simple/numpy/"] == 1
    world.now += 2
    with pytest.raises(UnreachedError, match="switched off"):
        world.live().wheels(page, "numpy")
    world.options = OPTIONS
    assert world.live().wheels(page, "numpy") == first
    assert index.requests["/pypi/simple/numpy/"] == 2


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(status=401), "answered 401"),
        (Fault(status=403), "answered 403"),
        (Fault(status=500), "answered 500"),
        (Fault(status=429, headers={"Retry-After": "0"}), "answered 429"),
        (Fault(hang=9), "sent nothing"),
        (Fault(drop=True), "cannot be reached"),
        (HTML_FOR_JSON, "holds HTML, wanted the JSON"),
        (Fault(body=b"<html><body><a", content_type="text/html"), "is cut off"),
        (Fault(body=b"x", content_type="image/png"), "is of type `image/png`"),
        (redirect(TORCH_PAGE), "redirects without end"),
    ],
)
@pytest.mark.parametrize("cached", [False, True])
def test_faults_of_a_page(
    index: LocalIndex, world: World, fault: Fault, message: str, *, cached: bool
) -> None:
    page = torch_page(index)
    if cached:
        world.live().wheels(page, "torch")
    index.fault(TORCH_PAGE, fault)
    with pytest.raises(WorldError, match=message):
        world.live().wheels(page, "torch")
    index.heal()
    assert only(world.live().wheels(page, "torch")).sha256 == TORCH.sha256


def test_half_a_page(index: LocalIndex, world: World) -> None:
    index.fault(TORCH_PAGE, Fault(half=True))
    with pytest.raises(WorldError, match="broke off"):
        world.live().wheels(torch_page(index), "torch")


def test_a_broken_page_is_not_kept(index: LocalIndex, world: World) -> None:
    headers = {"Cache-Control": "max-age=600", "ETag": '"x"'}
    index.fault(TORCH_PAGE, replace(HTML_FOR_JSON, headers=headers))
    with pytest.raises(WorldError, match="holds HTML"):
        world.live().wheels(torch_page(index), "torch")
    index.heal()
    assert only(world.live().wheels(torch_page(index), "torch")).sha256 == TORCH.sha256


def test_a_fault_that_passes(index: LocalIndex, world: World) -> None:
    index.fault(TORCH_PAGE, Fault(half=True, times=1))
    assert only(world.live().wheels(torch_page(index), "torch")).sha256 == TORCH.sha256


def test_credentials_reach_the_host_and_nothing_else(index: LocalIndex, world: World) -> None:
    index.require("/whl", "me", "hunter2")
    page = torch_page(index)
    with pytest.raises(WorldError, match="answered 401"):
        world.live().wheels(page, "torch")
    private = replace(page, url=page.url.replace("//", "//me:hunter2@"))
    live = world.live()
    wheel = only(live.wheels(private, "torch"))
    assert "hunter2" not in f"{wheel.url} {wheel.origin}"
    assert live.requires_dist(wheel) == ("filelock", "triton==3.3.0")
    assert live.requires_dist(bare(replace(wheel, url=wheel.url + "?x"))) is not None
    assert live.sha256(bare(wheel)) == TORCH.sha256
    stored = [path for path in world.folder.rglob("*") if path.is_file()]
    assert len(stored) >= 3
    assert all(b"hunter2" not in path.read_bytes() for path in stored)


def test_requirements_beside_the_wheel(index: LocalIndex, world: World) -> None:
    live = world.live()
    wheel = only(live.wheels(torch_page(index), "torch"))
    assert live.requires_dist(replace(wheel, requires_dist=("inline",))) == ("inline",)
    for source in (live, live, world.live()):
        assert source.requires_dist(wheel) == ("filelock", "triton==3.3.0")
    assert index.requests[f"{TORCH_PATH}.metadata"] == 1
    assert index.requests[TORCH_PATH] == 0


def test_metadata_of_another_hash(index: LocalIndex, world: World) -> None:
    index.corrupt(f"{TORCH_PATH}.metadata")
    live = world.live()
    with pytest.raises(WorldError, match=r"metadata` has sha256 .*, its page says"):
        live.requires_dist(only(live.wheels(torch_page(index), "torch")))


def test_metadata_that_is_promised_and_absent(index: LocalIndex, world: World) -> None:
    del index.resources[f"{TORCH_PATH}.metadata"]
    live = world.live()
    wheel = only(live.wheels(torch_page(index), "torch"))
    assert live.requires_dist(wheel) == ("filelock", "triton==3.3.0")


def large(*, payload: int, members: int) -> LocalWheel:
    noise = b"".join(
        hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(payload // 32)
    )
    files = {f"torch_scatter/{n:05}-{'x' * 60}.py": b"" for n in range(members)}
    files["torch_scatter/vendored-1.dist-info/METADATA"] = b"Name: vendored\nVersion: 1\n"
    return local_wheel(
        "torch-scatter",
        "2.1.2+pt28cu128",
        CP311,
        requires=["scipy"],
        files={"a.so": noise, **files},
    )


@pytest.mark.parametrize("members", [1, 900])
def test_requirements_inside_the_wheel(index: LocalIndex, world: World, members: int) -> None:
    made = large(payload=600_000, members=members)
    index.add_pyg("2.8.0", "cu128", made)
    live = world.live()
    wheel = only(live.wheels(pyg_page(index.urls, "2.8.0", "cu128"), "torch-scatter"))
    assert live.requires_dist(wheel) == ("scipy",)
    ranges = [seen.headers["range"] for seen in index.seen if seen.path.endswith(".whl")]
    assert ranges[0] == "bytes=-32768"
    assert (len(ranges) == 1) is (members == 1)


def test_ranges_that_are_refused_are_unknown(index: LocalIndex, world: World) -> None:
    index.ranges = False
    live = world.live()
    wheel = bare(only(live.wheels(torch_page(index), "torch")))
    assert live.requires_dist(wheel) is None
    assert index.requests[TORCH_PATH] == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no zip at all", "no zip directory"),
        (TORCH.data[:-40], "no zip directory"),
        (local_wheel("a", "1", files={"b-1.dist-info/METADATA": b""}).data, "has 2 METADATA files"),
        (TORCH.data.replace(b"PK\x03\x04", b"PK\x09\x09"), "is not where the zip directory says"),
    ],
)
def test_broken_wheels(index: LocalIndex, world: World, data: bytes, message: str) -> None:
    index.put(TORCH_PATH, data)
    live = world.live()
    with pytest.raises(WorldError, match=message):
        live.requires_dist(bare(only(live.wheels(torch_page(index), "torch"))))


def test_hashes_are_computed_once(index: LocalIndex, world: World) -> None:
    live = world.live()
    wheel = only(live.wheels(pyg_page(index.urls, "2.7.0", "cu128"), "torch-scatter"))
    assert wheel.sha256 is None
    assert live.sha256(wheel) == SCATTER.sha256
    size = len(SCATTER.data)
    assert world.told[-1] == (SCATTER.filename, size, size)
    told = len(world.told)
    assert world.live().sha256(wheel) == SCATTER.sha256
    assert world.live().sha256(replace(wheel, size=size)) == SCATTER.sha256
    assert len(world.told) == told
    assert live.sha256(replace(wheel, sha256="known")) == "known"


def test_another_file_under_the_same_address_is_hashed_again(
    index: LocalIndex, world: World
) -> None:
    page = pyg_page(index.urls, "2.7.0", "cu128")
    wheel = only(world.live().wheels(page, "torch-scatter"))
    world.live().sha256(wheel)
    again = large(payload=320, members=1)
    index.put(f"/pyg/torch-2.7.0+cu128/{SCATTER.filename}", again.data)
    assert world.live().sha256(wheel) == again.sha256


def test_hashes_without_ranges(index: LocalIndex, world: World) -> None:
    index.ranges = False
    live = world.live()
    wheel = only(live.wheels(pyg_page(index.urls, "2.7.0", "cu128"), "torch-scatter"))
    assert live.sha256(wheel) == SCATTER.sha256


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(status=403), "answered 403"),
        (Fault(status=404), "stands on pytorch-cu128's page and does not exist"),
        (Fault(status=500), "answered 500"),
        (Fault(half=True), "broke off"),
        (Fault(hang=9), "sent nothing"),
    ],
)
def test_faults_of_a_wheel(index: LocalIndex, world: World, fault: Fault, message: str) -> None:
    live = world.live()
    wheel = replace(only(live.wheels(torch_page(index), "torch")), sha256=None)
    index.fault(TORCH_PATH, fault)
    if fault.half:
        index.ranges = False
    with pytest.raises(WorldError, match=message):
        live.sha256(wheel)


def test_a_wheel_of_another_size_than_its_page_says(index: LocalIndex, world: World) -> None:
    live = world.live()
    wheel = replace(only(live.wheels(pypi_page(index.urls), "numpy")), sha256=None, size=7)
    with pytest.raises(WorldError, match=rf"has {len(NUMPY.data)} bytes, its page says 7"):
        live.sha256(wheel)


def test_a_host_that_is_not_reached_is_unknown(world: World) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{bound.getsockname()[1]}"
        page = IndexPage(kind=PageKind.PYG, key="k", name="n", url=f"{base}/p.html", flat=True)
        wheel = WheelFile(
            project="a",
            version="1",
            filename="a-1-py3-none-any.whl",
            url=f"{base}/a-1-py3-none-any.whl",
            page=page,
        )
        live = world.live()
        assert live.requires_dist(wheel) is None
        assert live.sha256(wheel) is None
        with pytest.raises(UnreachedError, match="cannot be reached"):
            live.wheels(page, "a")


@pytest.mark.online
def test_pypi_itself(world: World) -> None:
    world.options = HttpOptions()
    live = world.live()
    wheels = live.wheels(pypi_page(IndexUrls()), "six")
    wheel = next(w for w in wheels if w.version == "1.17.0")
    assert wheel.sha256 == "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"
    assert live.requires_dist(wheel) == live.requires_dist(bare(wheel)) == ()
    assert live.sha256(bare(wheel)) == wheel.sha256
