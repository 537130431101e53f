"""`envbuild lock` against indexes that refuse, break, lie or are not there."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from index import HTML_FOR_JSON, Fault, LocalIndex, local_wheel, redirect
from lockrun import QUICK, assert_clear, run_lock, snapshot, temporary
from lockworld import World, populate, pyproject

from envbuild.commands.lock import lock
from envbuild.commands.lockrun import LockOptions
from envbuild.errors import WorldError
from envbuild.render.progress import Silent
from envbuild.world.basereader import DiskBases
from envbuild.world.http import HttpClient, HttpOptions
from envbuild.world.liveindex import LiveIndex
from envbuild.world.pagecache import PageCache
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.uv import UvResolver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lockrun import Ended

    from envbuild.catalog.reader import Catalog

BEFORE = pyproject("torch", "six<1.17")
AFTER = pyproject("torch", "torch-scatter", "flash-attn", "einops")
PAGES = {
    "torch": "/whl/cu128/torch/",
    "pyg": "/pyg/torch-2.7.0+cu128.html",
    "flash-attn": "/flash-attn/expanded_assets/v2.8.3",
    "default": "/pypi/simple/einops/",
}
OWN = ("torch", "pyg", "flash-attn")
SCATTER = "torch_scatter-2.1.2+pt27cu128-cp311-cp311-linux_x86_64.whl"
OPENSSL = shutil.which("openssl")
LIMITS = HttpOptions(connect_timeout=0.5, read_timeout=0.2, backoff=0.01)


@pytest.fixture(scope="module")
def bad_index(catalog: Catalog) -> Iterator[LocalIndex]:
    """Serve the world's wheels; every test heals what it broke."""
    with LocalIndex() as index:
        populate(index, catalog)
        yield index


@pytest.fixture(scope="module")
def template(
    bad_index: LocalIndex, catalog: Catalog, tmp_path_factory: pytest.TempPathFactory
) -> World:
    """Return a world whose project was locked; nothing of ``AFTER`` is in its caches."""
    folder = tmp_path_factory.mktemp("template")
    root = folder / "project"
    root.mkdir()
    world = World(index=bad_index, root=root, cache=folder / "cache", catalog=catalog)
    world.write(BEFORE)
    world.lock()
    world.write(AFTER)
    return world


@pytest.fixture
def locked(template: World, tmp_path: Path) -> Iterator[World]:
    """Return the locked project with changed input, and caches without any index page."""
    root = tmp_path / "project"
    shutil.copytree(template.root, root)
    index = template.index
    resources, credentials = dict(index.resources), dict(index.credentials)
    yield World(index=index, root=root, cache=tmp_path / "cache", catalog=template.catalog)
    index.heal()
    index.resources, index.credentials = resources, credentials


def refused(world: World, *arguments: str, code: int = 3, **environ: str) -> Ended:
    """Run the command, and assert that it fails and changes nothing."""
    before = snapshot(world.root)
    ended = run_lock(world, *arguments, **{**QUICK, **environ})
    assert_clear(ended, code)
    assert snapshot(world.root) == before
    assert not list(temporary(world).iterdir())
    return ended


def lock_quickly(world: World, reporter: Silent | None = None) -> None:
    """Lock in this process with a client that gives up soon."""
    with closing(HttpClient(options=LIMITS)) as client:
        lock(
            LockOptions(directory=world.root, environ=world.environ),
            source=LiveIndex(client, PageCache(world.cache / "envbuild")),
            facts=world.catalog,
            resolver=UvResolver(environ={**world.environ, **QUICK}),
            files=ProjectFiles(world.root),
            reporter=reporter or Silent(),
            bases=DiskBases({}),
        )


def fails_quickly(world: World) -> WorldError:
    """Lock in this process, and assert that it fails and changes nothing."""
    before = snapshot(world.root)
    with pytest.raises(WorldError) as caught:
        lock_quickly(world)
    assert snapshot(world.root) == before
    assert not caught.value.message.endswith(".")
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("status", [401, 403, 500])
@pytest.mark.parametrize("page", PAGES)
def test_an_index_that_refuses(locked: World, page: str, status: int) -> None:
    locked.index.fault(PAGES[page], Fault(status=status))
    error = fails_quickly(locked)
    assert str(status) in error.message
    assert locked.index.base.partition("//")[2] in error.message
    hint = error.hint or ""
    assert ("`USER:PASSWORD@` before the host" in hint) == (status != 500)


@pytest.mark.parametrize("status", [401, 500])
@pytest.mark.parametrize("page", ["torch", "default"])
def test_an_index_that_refuses_is_told_by_the_command(
    locked: World, page: str, status: int
) -> None:
    locked.index.fault(PAGES[page], Fault(status=status))
    ended = refused(locked)
    assert str(status) in ended.message
    if status == 401:
        assert "USER:PASSWORD@" in ended.hint


def test_a_page_that_is_gone_means_that_nothing_is_there(locked: World) -> None:
    locked.index.fault(PAGES["pyg"], Fault(status=404))
    ended = refused(locked, code=1)
    assert "PyG's page `torch-2.7.0+cu128` has no torch-scatter" in ended.message
    assert ended.hint.startswith("the project without `torch-scatter` gives torch 2.7.0+cu128")


def test_a_mirror_without_a_page_of_torch_is_named(locked: World) -> None:
    locked.write(pyproject("torch"))
    for path in ("/whl/cu128/torch/", "/whl/cu126/torch/", "/pypi/simple/torch/"):
        locked.index.fault(path, Fault(status=404))
    ended = refused(locked, code=1)
    assert "torch has no wheel for Python 3.11 on linux-x86_64" in ended.message
    assert f"is the mirror complete? `{locked.index.base}/whl` lists no torch" in ended.hint


def test_a_package_that_the_default_index_lost(locked: World) -> None:
    locked.index.fault(PAGES["default"], Fault(status=404))
    ended = refused(locked, code=2)
    assert "no index has `einops`" in ended.message


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (HTML_FOR_JSON, ("holds HTML, wanted the JSON", "is no package index")),
        (Fault(half=True), ("broke off", "could not reach an index")),
        (Fault(hang=30), ("sent nothing for 0.2 s", "could not reach an index")),
        (Fault(drop=True), ("cannot be reached", "could not reach an index")),
    ],
    ids=["html", "half", "hang", "drop"],
)
def test_an_index_that_breaks(
    locked: World, page: str, fault: Fault, said: tuple[str, ...]
) -> None:
    locked.index.fault(PAGES[page], fault)
    error = fails_quickly(locked)
    assert any(fragment in error.message for fragment in said), error.message


@pytest.mark.parametrize("page", PAGES)
def test_redirects_without_end(locked: World, page: str) -> None:
    path = PAGES[page]
    locked.index.fault(path, redirect(path.replace("+", "%2B")))
    error = fails_quickly(locked)
    assert "redirects without end" in error.message or page == "default"


def test_a_silent_host_is_given_up_after_the_time_that_was_set(locked: World) -> None:
    locked.index.fault(PAGES["torch"], Fault(hang=30))
    assert "sent nothing for 0.3 s" in refused(locked).message


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf"])
def test_a_time_that_is_none(locked: World, value: str) -> None:
    ended = refused(locked, code=2, ENVBUILD_HTTP_TIMEOUT=value)
    assert ended.message == (
        f"ENVBUILD_HTTP_TIMEOUT is `{value}`, wanted a number of seconds above 0"
    )
    assert ended.hint == "ENVBUILD_HTTP_TIMEOUT=30"


def test_metadata_that_does_not_fit_its_hash(locked: World) -> None:
    path = next(
        p
        for p in locked.index.resources
        if p.startswith("/whl/cu128/torch-2.7.0+cu128")
        and p.endswith("cp311-manylinux_2_28_x86_64.whl.metadata")
    )
    locked.index.corrupt(path)
    error = fails_quickly(locked)
    assert "has sha256" in error.message
    assert "its page says" in error.message


def test_half_a_wheel_is_never_hashed(locked: World) -> None:
    path = f"/pyg/torch-2.7.0+cu128/{SCATTER}"
    assert path in locked.index.resources
    locked.index.fault(path, Fault(half=True))
    assert "broke off" in fails_quickly(locked).message


def test_a_wheel_that_its_host_does_not_serve(locked: World) -> None:
    locked.index.fault(f"/pyg/torch-2.7.0+cu128/{SCATTER}", Fault(status=404))
    ended = refused(locked)
    assert "stands on pyg-torch27-cu128's page and does not exist" in ended.message
    ended = refused(locked, "--source", "live", code=1)
    assert "what torch-scatter==2.1.2+pt27cu128 requires is not known" in ended.message
    assert "127.0.0.1 does not serve the wheel to read it" in ended.message


def test_a_wheel_whose_bytes_differ_from_its_hash_is_not_installed(locked: World) -> None:
    locked.write(pyproject("torch", "einops"))
    wheel = local_wheel("einops", "0.8.1", files={"einops/__init__.py": b"evil = True\n"})
    locked.index.put(f"/pypi/files/{wheel.filename}", wheel.data)
    lock_quickly(locked)
    answer = locked.uv("sync", "--locked", "--no-python-downloads", check=False)
    assert answer.returncode != 0
    assert "Hash mismatch for `einops==0.8.1`" in answer.stderr


def unused_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@pytest.mark.parametrize("variable", ["PYTORCH", "PYG", "FLASH_ATTN", "PYPI"])
def test_nobody_at_the_port(locked: World, variable: str) -> None:
    address = f"http://127.0.0.1:{unused_port()}/simple"
    ended = refused(locked, "--source", "live", **{f"ENVBUILD_INDEX_{variable}": address})
    assert "cannot be reached" in ended.message or "could not reach an index" in ended.message
    assert address.split("/")[2] in ended.message


@pytest.mark.parametrize("variable", ["PYTORCH", "PYPI"])
def test_a_name_that_is_none(locked: World, variable: str) -> None:
    changed = {f"ENVBUILD_INDEX_{variable}": "https://nowhere.invalid/simple"}
    ended = refused(locked, "--source", "live", **changed)
    assert "nowhere.invalid" in ended.message


def test_pages_that_cannot_be_reached_come_from_the_catalog(locked: World) -> None:
    locked.write(pyproject("torch", "einops"))
    address = f"http://127.0.0.1:{unused_port()}/whl"
    ended = run_lock(locked, ENVBUILD_INDEX_PYTORCH=address)
    assert ended.code == 0, ended
    assert "not reached" in ended.out


@pytest.mark.skipif(OPENSSL is None, reason="makes a certificate with openssl")
@pytest.mark.parametrize("variable", ["PYTORCH", "PYPI"])
def test_a_certificate_that_nobody_trusts(locked: World, tmp_path: Path, variable: str) -> None:
    with LocalIndex(certificate=certificate(tmp_path)) as index:
        address = f"{index.base}/whl"
        ended = refused(locked, **{f"ENVBUILD_INDEX_{variable}": address})
    assert "certificate" in ended.message.lower()


def certificate(folder: Path) -> Path:
    pem = folder / "server.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-days", "1"]
    subprocess.run(
        [
            str(OPENSSL),
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            *subject,
            "-keyout",
            folder / "key.pem",
            "-out",
            folder / "cert.pem",
        ],
        check=True,
        capture_output=True,
    )
    pem.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return pem


def with_secret(url: str) -> str:
    return url.replace("://", "://user:s3cret@")


@pytest.mark.parametrize("page", [None, *PAGES])
def test_credentials_are_told_to_nobody(locked: World, page: str | None) -> None:
    for prefix in ("/whl", "/pyg", "/flash-attn", "/pypi"):
        locked.index.require(prefix, "user", "s3cret")
    if page is not None:
        locked.index.fault(PAGES[page], Fault(status=403))
    changed = {
        name: with_secret(value)
        for name, value in locked.environ.items()
        if name.startswith("ENVBUILD_INDEX_")
    }
    ended = run_lock(locked, "--explain", **QUICK, **changed)
    assert ended.code == (0 if page is None else 3), ended
    assert "s3cret" not in ended.out + ended.err
    for path, text in locked.files().items():
        assert "s3cret" not in text, path
    assert not list(temporary(locked).iterdir())


def test_wrong_credentials(locked: World) -> None:
    locked.index.require("/whl", "user", "right")
    changed = {"ENVBUILD_INDEX_PYTORCH": with_secret(locked.environ["ENVBUILD_INDEX_PYTORCH"])}
    ended = refused(locked, **changed)
    assert "answered 401" in ended.message
    assert "s3cret" not in ended.err


def test_a_fault_that_passes_is_outlived(locked: World) -> None:
    for page in OWN:
        locked.index.fault(PAGES[page], replace(Fault(status=503), times=1))
    lock_quickly(locked)
    assert "einops" in locked.read("uv.lock")
