"""The live hosts, met late: what is asked before anything of HTTP is imported."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from index import LocalIndex

from envbuild.model.wheel import IndexPage, PageKind
from envbuild.world.livehosts import LiveHosts, has_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROXY = {"HTTPS_PROXY": "http://127.0.0.1:9"}


@pytest.fixture
def index() -> Iterator[LocalIndex]:
    with LocalIndex() as served:
        yield served


def hosts(environ: dict[str, str]) -> LiveHosts:
    return LiveHosts(environ, seconds=1.0, progress=lambda *_: None)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://127.0.0.1:9/x", True),
        ("http://u:p@localhost/x", True),
        ("https://no-host.invalid/whl/cu128", False),
        ("https://no-host.invalid:8443/", False),
        ("https://[no-address/", False),
        (f"https://{'a' * 70}.invalid/", False),
    ],
)
def test_whether_a_host_has_a_name(url: str, found: bool) -> None:  # noqa: FBT001
    assert has_name(url, {}) is found


def test_behind_a_proxy_the_proxy_knows_the_names() -> None:
    assert has_name("https://no-host.invalid/", PROXY)
    assert has_name("https://no-host.invalid/", {"all_proxy": "socks5://127.0.0.1:9"})
    assert not has_name("https://no-host.invalid/", {"HTTPS_PROXY": ""})


def test_a_name_alone_is_no_answer(index: LocalIndex) -> None:
    assert hosts({}).reaches(f"{index.base}/")
    assert not hosts({}).reaches("http://127.0.0.1:9/")


def test_pages_are_read_through_the_cache_of_the_environment(
    index: LocalIndex, tmp_path: Path
) -> None:
    page = IndexPage(kind=PageKind.PYTORCH, key="cu128", name="p", url=f"{index.base}/none")
    assert hosts({"ENVBUILD_CACHE_DIR": str(tmp_path)}).wheels(page, "torch") == ()


def test_a_host_without_a_name_imports_nothing_of_http() -> None:
    code = (
        "import sys; from envbuild.world.livehosts import LiveHosts\n"
        "hosts = LiveHosts({}, seconds=None, progress=print)\n"
        "print(hosts.reaches('https://no-host.invalid/'), *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    answer, *modules = done.stdout.split()
    assert answer == "False"
    assert {"requests", "urllib3", "http.client"} & {*modules} == set()
