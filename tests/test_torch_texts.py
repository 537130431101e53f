"""What torch opens as it is imported: each release's own code, run with nothing real to open.

The texts come from PyPI's wheels, by ranges: 0.3 MB of each. The two functions that open libraries
are run over a tree of empty files, with a loader that keeps what it is asked for.
"""

from __future__ import annotations

import ast
import glob
import io
import json
import os
import platform
import re
import sys
from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from envbuild.core.link.torchpreload import parse_preload, preload_path
from envbuild.world.http import HttpClient
from envbuild.world.remotezip import open_remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.link.torchpreload import Opened

pytestmark = pytest.mark.online

VERSIONS = (
    *("2.0.1", "2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.0", "2.5.1", "2.6.0", "2.7.1"),
    *("2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0", "newest"),
)
INDEX = "https://pypi.org/simple/torch/"
_WHEEL = re.compile(r"torch-(\d+\.\d+\.\d+)-(?:\d+-)?cp311-cp311-manylinux\w+_x86_64\.whl")
_CUDA = re.compile(r"^cuda\b[^=]*= ['\"]([\d.]+)['\"]", re.MULTILINE)
_ROUGH = re.compile(r"['\"](lib\w[\w-]*\.so[^'\"]*)['\"]")
_RUNTIME = "nvidia/cuda_runtime/lib/libcudart.so.12"


@pytest.fixture(name="client", scope="module")
def a_client() -> Iterator[HttpClient]:
    with closing(HttpClient()) as client:
        yield client


@pytest.fixture(name="wheels", scope="module")
def the_wheels(client: HttpClient) -> dict[str, str]:
    """Return the addresses of torch's wheels."""
    page = client.get(INDEX, accept="application/vnd.pypi.simple.v1+json")
    assert page is not None
    files = json.loads(page.body)["files"]
    found = {m[1]: one["url"] for one in files if (m := _WHEEL.fullmatch(one["filename"]))}
    newest = max(found, key=lambda version: [int(part) for part in version.split(".")])
    return {**found, "newest": found[newest]}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_reader_says_what_the_code_does(
    version: str, wheels: dict[str, str], client: HttpClient, tmp_path: Path
) -> None:
    text, cuda = texts_of(client, wheels[version])
    preload = parse_preload(text, cuda=cuda)
    names = {name.replace("*[0-9]", "12") for name in _ROUGH.findall(functions_of(text))}
    assert len(names) > 1
    wanted = tuple(dict.fromkeys((*preload.on_failure, *preload.always)))
    for whole in (True, False):
        site = make_site(tmp_path / f"site{whole}", wanted, cuda, whole=whole)
        run = (text, cuda, site)
        always = really_opened(*run)
        assert always == said(preload.always, preload.places, cuda, site)
        on_failure = really_opened(*run, "libcublas.so.11: cannot open shared object file")
        assert on_failure == said(preload.on_failure, preload.places, cuda, site)
        if whole:  # of what the code names, nothing was overlooked
            overlooked = names - {Path(path).name for path in (*always, *on_failure)}
            assert overlooked <= {"libcudart.so", "libtorch_global_deps.so"}


def texts_of(client: HttpClient, url: str) -> tuple[str, str | None]:
    """Return torch/__init__.py, and the CUDA that torch/version.py names."""
    archive = open_remote(client, url)
    assert archive is not None
    wanted = ("torch/__init__.py", "torch/version.py")
    members = {one.name: one for one in archive.members if one.name in wanted}
    text, version = (archive.read(members[name]).decode() for name in wanted)
    cuda = _CUDA.search(version)
    return text, cuda[1] if cuda else None


def functions_of(text: str) -> str:
    """Return the functions that open libraries, as the parser of Python finds them."""
    wanted = re.compile(r"_(preload_cuda_\w+|load_global_deps|get_cuda_dep_paths)")
    tree = ast.parse(text)
    found = [o for o in tree.body if isinstance(o, ast.FunctionDef) and wanted.fullmatch(o.name)]
    return "\n".join(ast.unparse(one) for one in found)


def make_site(site: Path, wanted: tuple[Opened, ...], cuda: str | None, *, whole: bool) -> Path:
    """Make a site with what is opened; of each three files one is missing without ``whole``."""
    for number, one in enumerate(wanted):
        places = (f"nvidia/{one.folder}", f"nvidia/cu{(cuda or '').partition('.')[0]}", one.folder)
        path = site / places[number % 3] / "lib" / one.pattern.replace("*[0-9]", "12")
        if whole or number % 3 != 1:
            path = path if not whole else site / places[0] / "lib" / path.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    return site


def said(
    wanted: tuple[Opened, ...], places: tuple[str, ...], cuda: str | None, site: Path
) -> list[str]:
    """Return the paths that the reader says are opened."""
    found = []
    library: Any = SimpleNamespace(names=lambda where: {one.name for one in Path(where).glob("*")})
    major = (cuda or "").partition(".")[0]
    for one in wanted:
        path = preload_path(library, (str(site),), places, one=one, major=major)
        if path is not None:
            found.append(path)
        elif one.required:
            break
    return found


class Loader:
    """Stands for ctypes: it opens everything but, the first time, torch's own library."""

    RTLD_GLOBAL = 0

    def __init__(self, failure: str | None) -> None:
        self.failure = failure
        self.opened: list[str] = []

    def CDLL(self, path: str, **_: int) -> None:  # noqa: N802 - ctypes names it so
        if "libtorch_global_deps" not in path:
            self.opened.append(path)
        elif self.failure is not None:
            failure, self.failure = self.failure, None
            raise OSError(failure)


def really_opened(text: str, cuda: str | None, site: Path, failure: str | None = None) -> list[str]:
    """Run torch's own functions over a site; return what they open."""
    loader = Loader(failure)
    version = ModuleType("torch.version")
    version.cuda = cuda  # type: ignore[attr-defined]
    fakes = {
        "ctypes": loader,
        "glob": glob,
        "os": os,
        "platform": platform,
        "sys": SimpleNamespace(path=["/nowhere", str(site)], executable="python"),
        "importlib": SimpleNamespace(util=SimpleNamespace(find_spec=lambda _: None)),
        "open": lambda *_: io.StringIO(f"{site}/{_RUNTIME}"),
        "_running_with_deploy": lambda: False,
        "__file__": str(site / "torch/__init__.py"),
        "Dict": dict,
        "_Dict": dict,
    }
    known = {name: sys.modules.get(name) for name in ("torch", "torch.version", "glob")}
    sys.modules.update({"torch": ModuleType("torch"), "torch.version": version})
    try:
        exec(compile(functions_of(text), "torch/__init__.py", "exec"), fakes)  # noqa: S102
        with suppress(ValueError):  # what is required is not there
            fakes["_load_global_deps"]()  # type: ignore[operator]
    finally:
        for name, module in known.items():
            sys.modules.pop(name, None)
            sys.modules.update({name: module} if module is not None else {})
    return loader.opened
