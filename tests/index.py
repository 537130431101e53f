"""A local package index: tiny real wheels behind every page layout that envbuild reads.

    with LocalIndex() as index:
        index.add_pytorch("cu128", local_wheel("torch", "2.7.0+cu128", CP311))
        index.add_pypi(local_wheel("numpy", "2.2.0"))
        index.urls  # IndexUrls that lead here
        index.fault("/whl/cu128/torch/", Fault(status=403))

The wheels are valid: uv locks and installs from it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import ssl
import tarfile
import threading
import zipfile
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from packaging.tags import parse_tag
from packaging.utils import canonicalize_name

from envbuild.model.project import IndexUrls
from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from typing_extensions import Self

    from envbuild.model.wheel import WheelFile

ANY = "py3-none-any"
CP311 = "cp311-cp311-manylinux_2_28_x86_64"
JSON_TYPE = "application/vnd.pypi.simple.v1+json"
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


@dataclass(frozen=True, kw_only=True)
class LocalWheel:
    """A wheel with what an index page may say about it."""

    filename: str
    data: bytes
    metadata: bytes
    requires_python: str | None = None
    hashed: bool = True
    metadata_beside: bool = True
    yanked: bool = False
    upload_time: str | None = "2025-05-01T00:00:00Z"

    @property
    def project(self) -> str:
        return canonicalize_name(self.filename.partition("-")[0])

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def metadata_sha256(self) -> str:
        return hashlib.sha256(self.metadata).hexdigest()


def local_wheel(
    project: str,
    version: str,
    tag: str = ANY,
    *,
    requires: Iterable[str] = (),
    files: Mapping[str, bytes] | None = None,
    metadata_version: str | None = None,
    requires_python: str | None = None,
    build: str = "",
) -> LocalWheel:
    """Make a wheel; ``metadata_version`` differs from the file name's where a wheel was renamed."""
    name = project.replace("-", "_")
    stated = metadata_version or version
    metadata = _metadata(project, stated, tuple(requires), requires_python)
    info = f"{name}-{stated}.dist-info"
    content = dict(files if files is not None else {f"{name}/__init__.py": _module(version)})
    content[f"{info}/METADATA"] = metadata
    content[f"{info}/WHEEL"] = _wheel_file(tag, build)
    content[f"{info}/RECORD"] = _record(content, f"{info}/RECORD")
    parts = [name, version, *([build] if build else []), tag]
    return LocalWheel(
        filename="-".join(parts) + ".whl",
        data=_archive(content),
        metadata=metadata,
        requires_python=requires_python,
    )


def make_wheel(
    project: str,
    version: str,
    tag: str = ANY,
    *,
    requires: Iterable[str] = (),
    files: Mapping[str, bytes] | None = None,
    metadata_version: str | None = None,
) -> bytes:
    """Make the bytes of a wheel, the same for the same arguments."""
    return local_wheel(
        project, version, tag, requires=requires, files=files, metadata_version=metadata_version
    ).data


def make_sdist(project: str, version: str, files: Mapping[str, bytes] | None = None) -> bytes:
    """Make the bytes of an sdist with files of a build, the same for the same arguments."""
    top = f"{project.replace('-', '_')}-{version}"
    content = {"PKG-INFO": _metadata(project, version, (), None), **(files or {})}
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as opened,
    ):
        for name, data in content.items():
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(data)
            opened.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _module(version: str) -> bytes:
    return f'__version__ = "{version}"\n'.encode()


def _metadata(
    project: str, version: str, requires: tuple[str, ...], requires_python: str | None
) -> bytes:
    extras = sorted({extra for line in requires for extra in _EXTRA.findall(line)})
    lines = ["Metadata-Version: 2.1", f"Name: {project}", f"Version: {version}"]
    lines += [f"Requires-Python: {requires_python}"] if requires_python else []
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    lines += [f"Requires-Dist: {line}" for line in requires]
    return ("\n".join(lines) + "\n").encode()


def _wheel_file(tag: str, build: str) -> bytes:
    lines = ["Wheel-Version: 1.0", "Generator: envbuild-tests", "Root-Is-Purelib: true"]
    lines += [f"Tag: {one}" for one in sorted(map(str, parse_tag(tag)))]
    lines += [f"Build: {build}"] if build else []
    return ("\n".join(lines) + "\n").encode()


def _record(content: Mapping[str, bytes], own: str) -> bytes:
    def row(name: str, data: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(data)}\n"

    return ("".join(row(name, data) for name, data in content.items()) + f"{own},,\n").encode()


def _archive(content: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            opened.writestr(entry, data)
    return buffer.getvalue()


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What a path does instead of, or before, serving its resource.

    ``hang`` seconds pass first. ``half`` announces more bytes than it sends. ``times`` limits
    it to the first requests; None is for ever.
    """

    status: int | None = None
    hang: float = 0.0
    half: bool = False
    body: bytes | None = None
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    drop: bool = False
    times: int | None = None


HTML_FOR_JSON = Fault(body=b"<!DOCTYPE html><html></html>", content_type=JSON_TYPE)


def redirect(location: str) -> Fault:
    """Lead to another address."""
    return Fault(status=HTTPStatus.FOUND, headers={"Location": location})


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What a path serves; ``json`` to a client that prefers JSON."""

    body: bytes
    content_type: str = "text/html"
    json: bytes | None = None
    cache_control: str = ""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request as it arrived; the path is decoded, header names are lower-case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)


class LocalIndex:
    """The server; a context manager. Paths are given decoded, and start with a slash."""

    def __init__(
        self, *, ranges: bool = True, compress: bool = False, certificate: Path | None = None
    ) -> None:
        self.ranges = ranges
        self.compress = compress
        self.seen: list[Seen] = []
        self.resources: dict[str, Resource] = {}
        self.credentials: dict[str, tuple[str, str]] = {}
        self._faults: dict[str, Fault] = {}
        self._listed: dict[str, dict[str, LocalWheel]] = {}
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.index = self
        self._scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def base(self) -> str:
        """The address without a slash at its end."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def urls(self) -> IndexUrls:
        """The four sources, all here."""
        return IndexUrls(
            pytorch=f"{self.base}/whl",
            pyg=f"{self.base}/pyg",
            flash_attn=f"{self.base}/flash-attn",
            pypi=f"{self.base}/pypi/simple",
        )

    @property
    def requests(self) -> Counter[str]:
        """How often each path was asked for."""
        with self._lock:
            return Counter(seen.path for seen in self.seen)

    def forget_requests(self) -> None:
        """Start counting again."""
        with self._lock:
            self.seen.clear()

    def put(self, path: str, body: bytes | str, **options: str) -> None:
        """Serve a resource of your own."""
        raw = body.encode() if isinstance(body, str) else body
        self.resources[path] = Resource(body=raw, **options)  # type: ignore[arg-type]

    def fault(self, path: str, fault: Fault) -> None:
        """Make a path misbehave."""
        self._faults[path] = fault

    def heal(self) -> None:
        """Take every fault away."""
        self._faults.clear()

    def corrupt(self, path: str) -> None:
        """Serve other bytes of the same length than those whose hash stands on the pages."""
        resource = self.resources[path]
        self.resources[path] = replace(resource, body=bytes(len(resource.body)))

    def listed(self, root: str) -> Mapping[str, LocalWheel]:
        """Return the wheels of ``/pypi`` or ``/whl/cu128`` by their file names."""
        return dict(self._listed[root])

    def withdraw(self, root: str, prefix: str) -> None:
        """Take the files whose names begin so off ``/pypi`` or ``/whl/cu128``, pages and all."""
        listed = self._listed[root]
        files = "/pypi/files" if root == "/pypi" else root
        gone = {name: wheel for name, wheel in listed.items() if name.startswith(prefix)}
        for name in gone:
            del listed[name]
            del self.resources[f"{files}/{name}"]
        for project in {wheel.project for wheel in gone.values()}:
            page = f"/pypi/simple/{project}/" if root == "/pypi" else f"{root}/{project}/"
            self.put(page, _page((), title=project))
        if root == "/pypi":
            self.add_pypi()
        else:
            self.add_pytorch(root.removeprefix("/whl/"))

    def require(self, prefix: str, user: str, password: str) -> None:
        """Ask for credentials below a path."""
        self.credentials[prefix] = (user, password)

    def add_pytorch(self, accelerator: str, *wheels: LocalWheel) -> None:
        """Serve wheels as PyTorch's index does: ``/whl/cu128/torch/``, root-relative links."""
        root = f"/whl/{accelerator}"
        for wheel in self._added(root, wheels):
            self._serve(f"{root}/{wheel.filename}", wheel)
        listed = self._listed[root].values()
        projects = sorted({wheel.project for wheel in listed})
        self.put(f"{root}/", _page(_anchor(f"{name}/", name) for name in projects))
        for name in projects:
            links = (
                _anchor(_quoted(f"{root}/{wheel.filename}"), wheel.filename, wheel)
                for wheel in listed
                if wheel.project == name
            )
            self.put(f"{root}/{name}/", _page(links, title=name) + "<!--TIMESTAMP 1738000000-->\n")

    def add_pyg(
        self, torch: str, accelerator: str, *wheels: LocalWheel, aliases: Iterable[str] = ()
    ) -> None:
        """Serve wheels as PyG does: a flat page for each torch, aliases into one folder."""
        folder = f"torch-{torch}+{accelerator}"
        for wheel in self._added(f"/pyg/{folder}", wheels):
            self._serve(f"/pyg/{folder}/{wheel.filename}", wheel)
        names = self._listed[f"/pyg/{folder}"]
        page = _page(_anchor(_quoted(f"{folder}/{name}"), name) for name in names)
        for version in (torch, *aliases):
            self.put(f"/pyg/torch-{version}+{accelerator}.html", page, cache_control="max-age=300")

    def add_release(self, version: str, *wheels: LocalWheel, shows_hashes: bool = False) -> None:
        """Serve wheels as a GitHub release does: a fragment without ``<html>``."""
        root = f"/flash-attn/download/v{version}"
        for wheel in self._added(root, wheels):
            self._serve(f"{root}/{wheel.filename}", wheel)
        rows = (
            f'<li class="Box-row">{_anchor(_quoted(f"{root}/{name}"), name)}'
            + (f"<span>sha256:{wheel.sha256}</span>" if shows_hashes else "")
            + "</li>\n"
            for name, wheel in self._listed[root].items()
        )
        self.put(f"/flash-attn/expanded_assets/v{version}", f"<ul>\n{''.join(rows)}</ul>\n")

    def add_flat(self, accelerator: str, *wheels: LocalWheel) -> None:
        """Serve wheels as a flat mirror of PyTorch's index does: one folder listing."""
        root = f"/aliyun/{accelerator}"
        for wheel in self._added(root, wheels):
            self._serve(f"{root}/{wheel.filename}", wheel)
        links = (_anchor(_quoted(name), name) for name in self._listed[root])
        self.put(f"{root}/", _page((_anchor("../", "../"), *links)))

    def add_pypi(self, *wheels: LocalWheel) -> None:
        """Serve wheels as PyPI does: JSON or HTML, files on a path of their own."""
        for wheel in self._added("/pypi", wheels):
            self._serve(f"/pypi/files/{wheel.filename}", wheel)
        for name in {wheel.project for wheel in self._listed["/pypi"].values()}:
            listed = [w for w in self._listed["/pypi"].values() if w.project == name]
            links = (
                _anchor(self.base + _quoted(f"/pypi/files/{w.filename}"), w.filename, w)
                for w in listed
            )
            self.resources[f"/pypi/simple/{name}/"] = Resource(
                body=_page(links, title=name).encode(),
                json=_json_page(name, listed, f"{self.base}/pypi/files"),
                cache_control="max-age=600, public",
            )

    def add_sdist(self, project: str, version: str, data: bytes, *, hashed: bool = True) -> str:
        """Serve an sdist beside a project's wheels as PyPI does; return its address."""
        filename = f"{project.replace('-', '_')}-{version}.tar.gz"
        sdist = LocalWheel(
            filename=filename, data=data, metadata=b"", hashed=hashed, metadata_beside=False
        )
        self.add_pypi(sdist)
        return f"{self.base}/pypi/files/{filename}"

    def add_facts(self, wheels: Iterable[WheelFile]) -> None:
        """Serve real small wheels under the names, in the layout and with the requirements given.

        Where a given wheel has no hash its page states none.
        """
        groups: dict[tuple[PageKind, str], list[LocalWheel]] = {}
        for wheel in wheels:
            groups.setdefault((wheel.page.kind, wheel.page.key), []).append(_made(wheel))
        for (kind, key), made in groups.items():
            self._add_group(kind, key, made)

    def _add_group(self, kind: PageKind, key: str, wheels: list[LocalWheel]) -> None:
        match kind:
            case PageKind.PYTORCH:
                self.add_pytorch(key, *wheels)
            case PageKind.PYG:
                torch, _, accelerator = key.partition("+")
                self.add_pyg(torch, accelerator, *wheels)
            case PageKind.FLASH_ATTN:
                self.add_release(key, *wheels)
            case PageKind.PYPI:
                self.add_pypi(*(replace(wheel, hashed=True) for wheel in wheels))

    def _added(self, root: str, wheels: tuple[LocalWheel, ...]) -> tuple[LocalWheel, ...]:
        self._listed.setdefault(root, {}).update({wheel.filename: wheel for wheel in wheels})
        return wheels

    def _serve(self, path: str, wheel: LocalWheel) -> None:
        self.resources[path] = Resource(body=wheel.data, content_type="binary/octet-stream")
        if wheel.metadata_beside:
            self.put(f"{path}.metadata", wheel.metadata, content_type="binary/octet-stream")

    def note(self, seen: Seen) -> Fault | None:
        """Count a request, and return the fault that it meets."""
        with self._lock:
            self.seen.append(seen)
            fault = self._faults.get(seen.path)
            if fault is None or fault.times is None:
                return fault
            if fault.times <= 0:
                return None
            self._faults[seen.path] = replace(fault, times=fault.times - 1)
            return fault

    def wait(self, seconds: float) -> None:
        """Wait, but not beyond the end of the server."""
        self._closing.wait(seconds)


def _made(wheel: WheelFile) -> LocalWheel:
    project, version, *build, tag = _name_parts(wheel.filename)
    renamed = wheel.page.kind is PageKind.FLASH_ATTN  # its releases rename what was built
    made = local_wheel(
        project,
        version,
        tag,
        metadata_version=version.partition("+")[0] if renamed else None,
        requires=wheel.requires_dist or (),
        requires_python=wheel.requires_python,
        build="".join(build),
    )
    return replace(
        made,
        hashed=wheel.sha256 is not None,
        metadata_beside=wheel.metadata_sha256 is not None,
        yanked=wheel.yanked,
    )


def _name_parts(filename: str) -> Iterator[str]:
    parts = filename.removesuffix(".whl").split("-")
    yield parts[0].replace("_", "-")
    yield from parts[1:-3]
    yield "-".join(parts[-3:])


def _quoted(path: str) -> str:
    return quote(path, safe="/")


def _anchor(href: str, text: str, wheel: LocalWheel | None = None) -> str:
    if wheel is None:
        return f'<a href="{escape(href)}">{escape(text)}</a>'
    said = f"#sha256={wheel.sha256}" if wheel.hashed else ""
    attributes = ""
    if wheel.requires_python:
        attributes += f' data-requires-python="{escape(wheel.requires_python)}"'
    if wheel.metadata_beside:
        value = f"sha256={wheel.metadata_sha256}"
        attributes += f' data-dist-info-metadata="{value}" data-core-metadata="{value}"'
    if wheel.yanked:
        attributes += ' data-yanked=""'
    return f'<a href="{escape(href)}{said}"{attributes}>{escape(text)}</a>'


def _page(links: Iterable[str], *, title: str = "") -> str:
    rows = "".join(f"    {link}<br/>\n" for link in links)
    heading = f"    <h1>Links for {title}</h1>\n" if title else ""
    return f"<!DOCTYPE html>\n<html>\n  <body>\n{heading}{rows}  </body>\n</html>\n"


def _json_page(name: str, wheels: Iterable[LocalWheel], files: str) -> bytes:
    def entry(wheel: LocalWheel) -> dict[str, object]:
        uploaded = {"upload-time": wheel.upload_time} if wheel.upload_time else {}
        metadata = {"sha256": wheel.metadata_sha256} if wheel.metadata_beside else False
        return {
            "filename": wheel.filename,
            "url": f"{files}/{quote(wheel.filename)}",
            "hashes": {"sha256": wheel.sha256} if wheel.hashed else {},
            "requires-python": wheel.requires_python,
            "size": len(wheel.data),
            "yanked": wheel.yanked,
            "core-metadata": metadata,
            **uploaded,
        }

    page = {"meta": {"api-version": "1.1"}, "name": name, "files": [entry(w) for w in wheels]}
    versions = {"versions": sorted({_version(w.filename) for w in wheels})}
    return json.dumps(page | versions).encode()


def _version(filename: str) -> str:
    return filename.removesuffix(".tar.gz").split("-")[1]


class _Server(ThreadingHTTPServer):
    index: LocalIndex
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: clients that give up are the point of some tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Write nothing to stderr."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        index = self.server.index
        path = unquote(urlsplit(self.path).path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        fault = index.note(Seen(method=self.command, path=path, headers=headers))
        if fault is not None:
            index.wait(fault.hang)
        if fault is not None and fault.drop:
            self.close_connection = True
        elif fault is not None and self._misbehaved(fault):
            pass
        elif not self._allowed(path):
            self._send(HTTPStatus.UNAUTHORIZED, b"", {"WWW-Authenticate": "Basic"})
        elif (resource := index.resources.get(path)) is not None:
            self._resource(resource, half=fault is not None and fault.half)
        elif f"{path}/" in index.resources:
            self._send(HTTPStatus.MOVED_PERMANENTLY, b"", {"Location": _quoted(f"{path}/")})
        else:
            self._send(HTTPStatus.NOT_FOUND, b"no such page", {})

    def _misbehaved(self, fault: Fault) -> bool:
        if fault.status is None and fault.body is None:
            return False
        headers = {"Content-Type": fault.content_type or "text/plain", **fault.headers}
        self._send(fault.status or 200, fault.body or b"broken", headers)
        return True

    def _allowed(self, path: str) -> bool:
        for prefix, (user, password) in self.server.index.credentials.items():
            wanted = base64.b64encode(f"{user}:{password}".encode()).decode()
            if path.startswith(prefix):
                return self.headers.get("Authorization") == f"Basic {wanted}"
        return True

    def _resource(self, resource: Resource, *, half: bool) -> None:
        body, content_type = resource.body, resource.content_type
        if resource.json is not None and JSON_TYPE in self.headers.get("Accept", ""):
            body, content_type = resource.json, JSON_TYPE
        headers = {
            "Content-Type": content_type,
            "ETag": f'"{hashlib.sha256(body).hexdigest()[:16]}"',
        }
        if resource.cache_control:
            headers["Cache-Control"] = resource.cache_control
        if self.headers.get("If-None-Match") == headers["ETag"]:
            self._send(HTTPStatus.NOT_MODIFIED, b"", headers)
        elif self.server.index.ranges and "Range" in self.headers:
            self._range(body, headers)
        else:
            body = self._compressed(body, headers)
            self._send(HTTPStatus.OK, body, headers, missing=len(body) // 2 if half else 0)

    def _compressed(self, body: bytes, headers: dict[str, str]) -> bytes:
        if not self.server.index.compress or "gzip" not in self.headers.get("Accept-Encoding", ""):
            return body
        headers["Content-Encoding"] = "gzip"
        return gzip.compress(body, mtime=0)

    def _range(self, body: bytes, headers: dict[str, str]) -> None:
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        start = int(first) if first else max(len(body) - int(last), 0)
        end = min(int(last), len(body) - 1) if first and last else len(body) - 1
        if start > end:
            self._send(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", {})
            return
        headers["Content-Range"] = f"bytes {start}-{end}/{len(body)}"
        self._send(HTTPStatus.PARTIAL_CONTENT, body[start : end + 1], headers)

    def _send(
        self, status: int, body: bytes, headers: Mapping[str, str], *, missing: int = 0
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) - missing])
        if missing:
            self.close_connection = True
