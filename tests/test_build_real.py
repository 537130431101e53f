"""Build a real extension: against the real torch (online), and plain C++ against a small one."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from index import LocalIndex, Resource
from lockworld import UV

from envbuild.core.buildwords import BuildAim, built_capabilities, common_variables, variables_for
from envbuild.errors import RefusedError, WorldError
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.plan import Compile
from envbuild.model.stack import SourceBuild
from envbuild.render.progress import Silent
from envbuild.world.buildcheck import read_built
from envbuild.world.install import VenvInstaller
from envbuild.world.rootfs import Root
from envbuild.world.sourcebuild import SourceBuilder
from envbuild.world.wheelcache import WheelCache, key_of

if TYPE_CHECKING:
    from envbuild.model.stack import SourceBuild as _Build

GXX = shutil.which("g++") or ""
HERE = Path(__file__).parent
BLACKWELL = tuple(ComputeCapability.parse(one) for one in ("10.0", "12.0"))
TORCH_VENV = "ENVBUILD_TEST_TORCH_VENV"
"""Names an environment with torch 2.11.0 of CUDA 13 and setuptools, to spare the download."""

SETUP = """\
import os, subprocess, sys, sysconfig
from pathlib import Path
import torchlike

def _run(*words):
    subprocess.run(words, check=True)

def build_wheel(directory, config_settings=None, metadata_directory=None):
    import base64, hashlib, zipfile
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    flags = ["-shared", "-fPIC", f"-I{torchlike.include}", "src/plain.cpp"]
    _run(os.environ.get("CXX") or "g++", *flags, *torchlike.link, "-o", f"{directory}/_C{suffix}")
    files = {f"plain/_C{suffix}": Path(f"{directory}/_C{suffix}").read_bytes(),
             "plain/__init__.py": os.environ["MAX_JOBS"].encode()}
    if os.environ.get("PLAIN_HOLLOW"):
        del files[f"plain/_C{suffix}"]
    info = "plain-1.0.dist-info"
    files[f"{info}/METADATA"] = b"Metadata-Version: 2.1\\nName: plain\\nVersion: 1.0\\n"
    tag = "py3-none-any" if os.environ.get("PLAIN_HOLLOW") else "cp311-cp311-linux_x86_64"
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: false\\nTag: {tag}\\n".encode())
    rows = [f"{info}/RECORD,,"]
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
    os.remove(f"{directory}/_C{suffix}")
    name = f"plain-1.0-{tag}.whl"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as archive:
        for path, data in {**files, f"{info}/RECORD": "\\n".join(rows).encode()}.items():
            archive.writestr(path, data)
    return name
"""
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "plain"
version = "1.0"
"""


@dataclass
class Bench:
    """A project, an environment with some torch in it, and a builder for them."""

    project: Path
    venv: Path
    cache: Path
    aim: BuildAim
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    offline: bool = True

    @property
    def installer(self) -> VenvInstaller:
        """A fresh reading of the environment."""
        return VenvInstaller(
            project=self.project, venv=self.venv, environ=self.environ, offline=self.offline
        )

    def ensure(self, build: _Build, *, may_build: bool = True, again: bool = False) -> str:
        """Have it built."""
        step = Compile(
            build=build,
            variables=variables_for(build.project, self.aim),
            capabilities=tuple(map(str, built_capabilities(build.project, self.aim))),
            reason="",
        )
        builder = SourceBuilder(
            aim=self.aim,
            project=self.project,
            environment=self.installer,
            cache=WheelCache(self.cache),
            environ=self.environ,
            reporter=Silent(),
        )
        common = common_variables(self.aim)
        return builder.ensure(step, common, may_build=may_build, again=again)


def uv(*words: str) -> None:
    """Run uv; fail with what it said."""
    done = subprocess.run([UV, *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(name="plain")
def a_plain_bench(tmp_path: Path) -> Bench:
    """Return an environment with a torch of one function, and an extension that calls it."""
    if not GXX:
        pytest.skip("needs g++")
    venv = tmp_path / "venv"
    uv("venv", "--no-config", "--offline", "--python", "3.11", str(venv))
    site = next(venv.glob("lib/python*/site-packages"))
    make_torch(site, "2.7.0", "torch_seven")
    source = tmp_path / "project" / "libs" / "plain"
    (source / "src").mkdir(parents=True)
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "backend.py").write_text(SETUP)
    (source / "src" / "plain.cpp").write_text(
        "namespace c10 { int torch_seven(int); }\n"
        'extern "C" int PyInit__C() { return c10::torch_seven(1); }\n'
    )
    return Bench(
        project=tmp_path / "project",
        venv=venv,
        cache=tmp_path / "cache",
        aim=BuildAim(torch="2.7.0", cuda=CudaVersion.parse("12.8"), capabilities=BLACKWELL),
    )


def make_torch(site: Path, version: str, function: str) -> None:
    """Put a torch whose libc10 has one function into a site folder."""
    lib = site / "torch" / "lib"
    lib.mkdir(parents=True, exist_ok=True)
    code = f"namespace c10 {{ int {function}(int x) {{ return x; }} }}"
    flags = ["-shared", "-fPIC", "-Wl,-soname,libc10.so", "-x", "c++", "-"]
    subprocess.run([GXX, *flags, "-o", str(lib / "libc10.so")], input=code, text=True, check=True)
    (site / "torch" / "version.py").write_text(f"__version__ = '{version}+cu128'\ncuda = '12.8'\n")
    (site / "torch" / "__init__.py").write_text("")
    (site / "torchlike.py").write_text(
        f"include = {str(lib)!r}\nlink = ['-L{lib}', '-lc10', '-Wl,-rpath,{lib}']\n"
    )
    for old in site.glob("torch-*.dist-info"):
        shutil.rmtree(old)
    info = site / f"torch-{version}+cu128.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch\nVersion: {version}+cu128\n"
    )
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n")
    (info / "RECORD").write_text("torch/__init__.py,,\ntorch/lib/libc10.so,,\n")


PLAIN = SourceBuild(project="plain", path="libs/plain")


def test_it_is_built_once_and_then_taken_from_the_cache(plain: Bench) -> None:
    assert plain.ensure(PLAIN) == "built"
    one = plain.installer.installed().find("plain")
    assert one is not None
    assert key_of(one.origin)
    assert plain.ensure(PLAIN) == "kept"
    uv("pip", "uninstall", "--no-config", "--python", str(plain.venv), "plain")
    assert plain.ensure(PLAIN, may_build=False) == "cached"
    assert plain.ensure(PLAIN, again=True, may_build=False) == "cached"
    assert not list((plain.project / "libs/plain").glob("*.so"))


def test_a_change_of_the_source_is_built_and_no_product_of_a_build_is_one(plain: Bench) -> None:
    plain.ensure(PLAIN)
    products = plain.project / "libs" / "plain" / "build"
    products.mkdir()
    (products / "old.o").write_text("x")
    assert plain.ensure(PLAIN) == "kept"
    with (plain.project / "libs/plain/src/plain.cpp").open("a") as file:
        file.write("// more\n")
    assert plain.ensure(PLAIN, may_build=False) == "left out"
    assert plain.ensure(PLAIN) == "built"


def test_another_torch_is_another_build(plain: Bench) -> None:
    plain.ensure(PLAIN)
    make_torch(next(plain.venv.glob("lib/python*/site-packages")), "2.7.1", "torch_seven")
    assert plain.ensure(PLAIN, may_build=False) == "left out"


def test_a_build_that_lacks_a_symbol_of_torch_is_refused_and_not_kept(plain: Bench) -> None:
    site = next(plain.venv.glob("lib/python*/site-packages"))
    backend = plain.project / "libs" / "plain" / "backend.py"
    backend.write_text(SETUP.replace("torchlike.link", '["-Wl,--no-as-needed", *torchlike.link]'))
    make_torch(site, "2.7.0", "torch_eight")
    with pytest.raises(RefusedError, match=r"EB302") as caught:
        plain.ensure(PLAIN)
    assert "_ZN3c1011torch_sevenEi" in caught.value.message
    assert plain.installer.installed().find("plain") is None
    assert not list(plain.cache.glob("wheels/*/*.whl"))


def test_a_hollow_build_is_refused(plain: Bench) -> None:
    plain.environ["PLAIN_HOLLOW"] = "1"
    with pytest.raises(RefusedError, match=r"without any compiled module .*none-any.*EB109"):
        plain.ensure(PLAIN)
    assert plain.installer.installed().find("plain") is None


def test_a_build_that_fails_says_what_the_compiler_said(plain: Bench) -> None:
    (plain.project / "libs/plain/src/plain.cpp").write_text("this is no C++\n")
    with pytest.raises(WorldError, match=r"`plain` could not be built") as caught:
        plain.ensure(PLAIN)
    assert "error: expected unqualified-id" in caught.value.message
    log = Path(caught.value.message.rpartition("`")[0].rpartition("`")[2])
    assert "error: expected unqualified-id" in log.read_text()


def test_a_source_with_cuda_code_needs_an_nvcc_that_fits(plain: Bench) -> None:
    (plain.project / "libs/plain/src/kernel.cu").write_text("")
    home = plain.project.parent / "cuda"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "nvcc").write_text("#!/bin/sh\nexit 1\n")
    (home / "version.json").write_text('{"cuda": {"version": "12.4.1"}}')
    plain.environ["CUDA_HOME"] = str(home)
    with pytest.raises(WorldError) as caught:
        plain.ensure(PLAIN)
    assert "nvcc of CUDA 12.4 does not compile for 10.0, wanted CUDA 12.8" in caught.value.message


def test_a_commit_is_built_and_its_folder_named(plain: Bench) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("needs git")
    repository = plain.project / "libs"
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "one")):
        subprocess.run([git, "-C", str(repository), *words], check=True)
    found = subprocess.run(
        [git, "-C", str(repository), "rev-parse", "HEAD"],
        check=True,
        capture_output=True,
        text=True,
    )
    commit = found.stdout.strip()
    build = SourceBuild(project="plain", git=f"file://{repository}@{commit}#subdirectory=plain")
    assert plain.ensure(build) == "built"
    shutil.rmtree(repository / ".git")
    assert plain.ensure(build, again=True, may_build=False) == "cached"
    gone = SourceBuild(project="plain", git=f"file://{repository}@{commit}#subdirectory=none")
    with pytest.raises(WorldError, match="`git ls-remote` failed"):
        plain.ensure(gone)


def test_an_sdist_is_built_if_its_bytes_are_those_of_the_lock(plain: Bench) -> None:
    folder = plain.project / "libs" / "plain"
    folder.rename(folder.with_name("plain-1.0"))
    packed = plain.project / "plain-1.0.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(folder.with_name("plain-1.0"), "plain-1.0")
    data = packed.read_bytes()
    with LocalIndex() as index:
        index.put("/files/plain-1.0.tar.gz", b"")
        index.resources["/files/plain-1.0.tar.gz"] = Resource(body=data)
        url = f"{index.base}/files/plain-1.0.tar.gz"
        digest = hashlib.sha256(data).hexdigest()
        wrong = SourceBuild(project="plain", version="1.0", url=url, sha256="0" * 64)
        with pytest.raises(WorldError, match="offline, and the source of `plain` lies on a host"):
            plain.ensure(wrong)
        plain.offline = False
        with pytest.raises(WorldError, match=f"has the sha256 {digest}, wanted 0000"):
            plain.ensure(wrong)
        right = SourceBuild(project="plain", version="1.0", url=url, sha256=digest)
        assert plain.ensure(right) == "built"
    assert plain.ensure(right) == "kept"


@pytest.fixture(name="real", scope="module")
def a_real_bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Return an environment with torch 2.11.0 of CUDA 13, and the extension of the tests."""
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    folder = tmp_path_factory.mktemp("real")
    named = os.environ.get(TORCH_VENV)
    venv = Path(named) if named else folder / "venv"
    if not named:
        uv("venv", "--no-config", "--python", "3.11", str(venv))
        words = ("torch==2.11.0", "setuptools==81.0.0", "wheel", "ninja", "numpy")
        uv("pip", "install", "--python", str(venv), *words)
    shutil.copytree(HERE / "extension", folder / "project" / "squares")
    return Bench(
        project=folder / "project",
        venv=venv,
        cache=folder / "cache",
        aim=BuildAim(torch="2.11.0", cuda=CudaVersion.parse("13.0"), capabilities=BLACKWELL),
    )


@pytest.mark.online
@pytest.mark.slow
def test_a_cuda_extension_has_code_for_both_gpus_and_links_to_the_torch(real: Bench) -> None:
    build = SourceBuild(project="squares", path="squares")
    before = sorted(str(path) for path in real.project.rglob("*"))
    assert real.ensure(build) in ("built", "kept", "cached")
    assert sorted(str(path) for path in real.project.rglob("*")) == before
    installed = real.installer.installed()
    built = read_built(installed, "squares", root=Root("/"), environment={})
    (code,) = (one.code for one in built.codes.binaries)
    assert [str(one) for one in code.sass] == ["10.0", "12.0"]
    assert not built.links.symbols
    (imports,) = (one for one in built.links.torch_users if one.path in built.objects)
    assert {"libc10.so", "libtorch_cpu.so"} <= set(imports.libraries)
    assert real.ensure(build) == "kept"
    script = (
        "import torch, glob, squares; p = glob.glob(squares.__path__[0] + '/_C*.so')[0];"
        "torch.ops.load_library(p); print(torch.ops.squares.squares(torch.tensor([3.0])).item())"
    )
    python = real.venv / "bin" / "python"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "9.0", done.stderr
