"""The HTTP client against a server that misbehaves in every way met in the wild."""

from __future__ import annotations

import hashlib
import shutil
import socket
import subprocess
import threading
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from index import Fault, LocalIndex, redirect

from envbuild.errors import WorldError
from envbuild.world.http import HttpClient, HttpOptions
from envbuild.world.httperrors import BrokenOffError, UnreachedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = "<html><body>hello</body></html>" * 50
QUICK = HttpOptions(connect_timeout=0.5, read_timeout=0.2, backoff=0.01, retry_after_limit=0.05)


@pytest.fixture
def index() -> Iterator[LocalIndex]:
    with LocalIndex() as served:
        served.put("/page", BODY, cache_control="max-age=60")
        yield served


@pytest.fixture
def client() -> Iterator[HttpClient]:
    with closing(HttpClient(options=QUICK)) as opened:
        yield opened


def unused_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def no_progress(_done: int, _total: int | None) -> None:
    pass


def test_a_page(index: LocalIndex, client: HttpClient) -> None:
    answer = client.get(f"{index.base}/page?token=x#frag", accept="text/html")
    assert answer is not None
    assert (answer.status, answer.body, answer.content_type) == (200, BODY.encode(), "text/html")
    assert answer.url == f"{index.base}/page"
    assert answer.cache_control == "max-age=60"
    assert index.seen[0].headers["accept"] == "text/html"
    assert index.seen[0].headers["user-agent"].startswith("envbuild/")


def test_what_is_unchanged_has_no_body(index: LocalIndex, client: HttpClient) -> None:
    first = client.get(f"{index.base}/page")
    assert first is not None
    second = client.get(f"{index.base}/page", etag=first.etag)
    assert second is not None
    assert (second.status, second.body) == (304, b"")
    client.get(f"{index.base}/page", last_modified="Sat, 28 Nov 2026 00:00:00 GMT")
    assert "if-modified-since" in index.seen[-1].headers


def test_304_without_being_asked_is_an_error(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(status=304))
    with pytest.raises(WorldError, match="answered 304, wanted 200"):
        client.get(f"{index.base}/page")


def test_packed_pages_are_measured_as_sent(client: HttpClient) -> None:
    with LocalIndex(compress=True) as index:
        index.put("/page", BODY)
        answer = client.get(f"{index.base}/page")
        assert answer is not None
        assert answer.body == BODY.encode()
        index.fault("/page", Fault(half=True))
        with pytest.raises(BrokenOffError):
            client.get(f"{index.base}/page")


@pytest.mark.parametrize("status", [404, 410])
def test_absence(index: LocalIndex, client: HttpClient, status: int) -> None:
    index.fault("/page", Fault(status=status))
    assert client.get(f"{index.base}/page") is None
    assert index.requests["/page"] == 1


@pytest.mark.parametrize(
    ("status", "asked", "message", "hint"),
    [
        (401, 1, "answered 401: `127.0.0.1:{port}` refuses", "credentials"),
        (403, 1, "answered 403: `127.0.0.1:{port}` refuses", "credentials"),
        (400, 1, "answered 400, wanted 200", ""),
        (407, 1, "the proxy wants credentials", "HTTPS_PROXY"),
        (500, 1, "answered 500: `127.0.0.1:{port}` has a problem", "try again later"),
        (429, 3, "answered 429: `127.0.0.1:{port}` has a problem", "try again later"),
        (502, 3, "answered 502: `127.0.0.1:{port}` has a problem", "try again later"),
        (503, 3, "answered 503: `127.0.0.1:{port}` has a problem", "try again later"),
        (504, 3, "answered 504: `127.0.0.1:{port}` has a problem", "try again later"),
    ],
)
def test_statuses(
    index: LocalIndex, client: HttpClient, status: int, asked: int, message: str, hint: str
) -> None:
    index.fault("/page", Fault(status=status))
    with pytest.raises(WorldError) as caught:
        client.get(f"{index.base}/page")
    assert not isinstance(caught.value, UnreachedError)
    assert message.format(port=index.base.rpartition(":")[2]) in caught.value.message
    assert hint in (caught.value.hint or "")
    assert index.requests["/page"] == asked


def test_a_busy_host_gets_another_try(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(status=503, times=2))
    assert client.get(f"{index.base}/page") is not None
    assert index.requests["/page"] == 3


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [("0", 0.0, 0.2), ("3600", 0.05, 0.5), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.01, 0.5)],
)
def test_retry_after(
    index: LocalIndex, client: HttpClient, retry_after: str, least: float, most: float
) -> None:
    index.fault("/page", Fault(status=429, headers={"Retry-After": retry_after}, times=1))
    begun = time.monotonic()
    assert client.get(f"{index.base}/page") is not None
    assert least <= time.monotonic() - begun < most


def test_half_a_page(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(half=True, times=2))
    answer = client.get(f"{index.base}/page")
    assert answer is not None
    assert answer.body == BODY.encode()
    index.fault("/page", Fault(half=True))
    with pytest.raises(BrokenOffError, match="broke off"):
        client.get(f"{index.base}/page")


def test_a_hang(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(hang=9))
    with pytest.raises(BrokenOffError, match=r"sent nothing for 0\.2 s"):
        client.get(f"{index.base}/page")
    assert index.requests["/page"] == 3


def test_a_dropped_connection(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(drop=True, times=1))
    assert client.get(f"{index.base}/page") is not None
    index.fault("/page", Fault(drop=True))
    with pytest.raises(UnreachedError, match="cannot be reached"):
        client.get(f"{index.base}/page")


def test_nobody_there(client: HttpClient) -> None:
    with pytest.raises(UnreachedError, match=r"`127\.0\.0\.1:\d+` cannot be reached") as caught:
        client.get(f"http://me:pw@127.0.0.1:{unused_port()}/x")
    assert "HTTPS_PROXY" in (caught.value.hint or "")


def test_no_such_name(client: HttpClient) -> None:
    with pytest.raises(UnreachedError, match=r"the name `no-host\.invalid` cannot be resolved"):
        client.get("http://me:pw@no-host.invalid/x")


def test_a_proxy_that_is_not_there(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://u:secret@127.0.0.1:{unused_port()}")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(UnreachedError, match=r"the proxy does not lead to `h\.example`") as caught:
        client.get("http://h.example/x")
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("url", ["x", "ftp://h/x", "http://", "http://[bad/", "http://*.org/"])
def test_no_address(client: HttpClient, url: str) -> None:
    with pytest.raises(WorldError):
        client.get(url)


def test_redirects(index: LocalIndex, client: HttpClient) -> None:
    index.put("/whl/torch/", "x")
    answer = client.get(f"{index.base}/whl/torch")
    assert answer is not None
    assert answer.url == f"{index.base}/whl/torch/"
    index.fault("/loop", redirect("/loop"))
    with pytest.raises(WorldError, match="redirects without end"):
        client.get(f"{index.base}/loop")
    index.fault("/page", redirect("ftp://h/x"))
    with pytest.raises(WorldError, match="no address of the web"):
        client.get(f"{index.base}/page")


def test_credentials_are_used_and_not_told(index: LocalIndex, client: HttpClient) -> None:
    index.require("/page", "me@x", "s:cret")
    url = index.base.replace("//", "//me%40x:s%3Acret@") + "/page"
    answer = client.get(url)
    assert answer is not None
    assert answer.url == f"{index.base}/page"
    index.fault("/page", Fault(status=403))
    with pytest.raises(WorldError) as caught:
        client.get(url)
    assert "cret" not in f"{caught.value.message} {caught.value.hint}"


def test_credentials_do_not_follow_to_another_host(index: LocalIndex, client: HttpClient) -> None:
    with LocalIndex() as other:
        other.put("/page", "x")
        index.fault("/page", redirect(f"{other.base.replace('127.0.0.1', 'localhost')}/page"))
        assert client.get(index.base.replace("//", "//me:pw@") + "/page") is not None
        assert "authorization" in index.seen[0].headers
        assert "authorization" not in other.seen[0].headers


def test_pages_have_a_limit(index: LocalIndex) -> None:
    with closing(HttpClient(options=HttpOptions(page_limit=100))) as client:
        with pytest.raises(WorldError, match="has more than 100 bytes"):
            client.get(f"{index.base}/page")
        assert index.requests["/page"] == 1


def test_pages_have_a_time_limit(index: LocalIndex) -> None:
    options = HttpOptions(page_seconds=-1, attempts=1)
    with (
        closing(HttpClient(options=options)) as client,
        pytest.raises(BrokenOffError, match="was not read to its end"),
    ):
        client.get(f"{index.base}/page")


def test_ranges(index: LocalIndex, client: HttpClient) -> None:
    url = f"{index.base}/page"
    whole = BODY.encode()
    tail = client.tail(url, 10)
    assert tail is not None
    assert (tail.data, tail.start, tail.total) == (whole[-10:], len(whole) - 10, len(whole))
    part = client.part(url, start=5, length=7)
    assert part is not None
    assert (part.data, part.start, part.total) == (whole[5:12], 5, len(whole))
    assert client.size(url) == len(whole)
    assert client.part(url, start=len(whole), length=1) is None
    assert client.tail(f"{index.base}/absent", 10) is None
    assert index.seen[0].headers["accept-encoding"] == "identity"


def test_ranges_that_are_refused_cost_no_download(client: HttpClient) -> None:
    with LocalIndex(ranges=False) as index:
        index.put("/page", bytes(50_000_000))
        begun = time.monotonic()
        assert client.tail(f"{index.base}/page", 10) is None
        assert client.size(f"{index.base}/page") == 50_000_000
        assert time.monotonic() - begun < 1


@pytest.mark.parametrize(
    ("said", "message"),
    [("bytes 0-5/100", "another range"), ("bytes 1-9/100", "broke off after 6 of 9 bytes")],
)
def test_another_range_than_asked(
    index: LocalIndex, client: HttpClient, said: str, message: str
) -> None:
    index.fault("/page", Fault(status=206, body=b"abcdef", headers={"Content-Range": said}))
    with pytest.raises(WorldError, match=message):
        client.part(f"{index.base}/page", start=1, length=9)


def test_a_range_that_is_no_range(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(status=206, body=b"abcdef"))
    assert client.part(f"{index.base}/page", start=0, length=6) is None


def test_sha256(index: LocalIndex, client: HttpClient) -> None:
    data = bytes(range(256)) * 10_000
    index.put("/wheel", data)
    told: list[tuple[int, int | None]] = []
    digest = client.sha256(f"{index.base}/wheel", lambda *args: told.append(args))
    assert digest is not None
    assert (digest.sha256, digest.size) == (hashlib.sha256(data).hexdigest(), len(data))
    assert told[-1] == (len(data), len(data))
    assert len(told) > 1
    assert client.sha256(f"{index.base}/absent", no_progress) is None


def test_sha256_of_half_a_file(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(half=True))
    with pytest.raises(BrokenOffError):
        client.sha256(f"{index.base}/page", no_progress)


def test_offline_touches_nothing(index: LocalIndex) -> None:
    with closing(HttpClient(options=HttpOptions(offline=True))) as client:
        for ask in (client.get, client.size):
            with pytest.raises(UnreachedError, match="the network is switched off"):
                ask(f"{index.base}/page")
        assert not client.reaches(f"{index.base}/page")
    assert index.seen == []


def test_reaches(index: LocalIndex, client: HttpClient) -> None:
    assert client.reaches(f"{index.base}/page")
    index.fault("/page", Fault(status=403))
    assert client.reaches(f"{index.base}/page")
    index.fault("/page", Fault(status=500))
    assert client.reaches(f"{index.base}/page")
    index.fault("/page", Fault(drop=True))
    assert not client.reaches(f"{index.base}/page")
    assert not client.reaches(f"http://127.0.0.1:{unused_port()}/")
    assert not client.reaches("http://no-host.invalid/")
    assert index.requests["/page"] == 4


def test_a_silent_host_is_given_up_in_time(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(hang=9))
    begun = time.monotonic()
    assert not client.reaches(f"{index.base}/page", seconds=0.2)
    assert time.monotonic() - begun < 1


def test_a_host_that_drips_is_given_up_in_time(client: HttpClient) -> None:
    stop = threading.Event()

    def drip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            while not stop.wait(0.05):
                connection.sendall(b"H")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=drip, args=(listening,))
        server.start()
        begun = time.monotonic()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        assert not client.reaches(url, seconds=0.2)
        taken = time.monotonic() - begun
        stop.set()
        server.join()
    assert taken < 0.8


DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"


def test_a_bucket_denies_what_does_not_exist(index: LocalIndex, client: HttpClient) -> None:
    index.fault("/page", Fault(status=403, body=DENIED))
    with pytest.raises(WorldError, match="answered 403"):
        client.get(f"{index.base}/page")
    with closing(HttpClient(options=HttpOptions(buckets=("127.0.0.1",)))) as public:
        assert public.get(f"{index.base}/page") is None
        index.fault("/page", Fault(status=403, body=b"blocked by the firewall"))
        with pytest.raises(WorldError, match="answered 403"):
            public.get(f"{index.base}/page")


@pytest.fixture
def own_certificate(tmp_path: Path) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    path = tmp_path / "own.pem"
    made = [openssl, "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt"]
    made += ["ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*made, "-keyout", str(path), "-out", str(tmp_path / "cert")],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + (tmp_path / "cert").read_text())
    return path


def test_a_certificate_that_is_not_trusted(
    own_certificate: Path, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalIndex(certificate=own_certificate) as index:
        index.put("/page", "x")
        assert index.base.startswith("https:")
        with pytest.raises(WorldError, match=r"certificate of .* is not trusted") as caught:
            client.get(f"{index.base}/page")
        assert not isinstance(caught.value, UnreachedError)
        assert "REQUESTS_CA_BUNDLE" in (caught.value.hint or "")
        assert client.reaches(f"{index.base}/page")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(own_certificate))
        assert client.get(f"{index.base}/page") is not None
