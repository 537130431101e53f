"""Small sources that compile without setuptools, and toolkits that are none, for build tests."""

from __future__ import annotations

from shutil import which
from typing import TYPE_CHECKING

from index import make_sdist

if TYPE_CHECKING:
    from pathlib import Path

BACKEND = '''\
"""A build backend of one file: it compiles with what the environment names."""
import os, subprocess, sys, sysconfig, zipfile, hashlib, base64

NAME, VERSION = "@NAME@", "1.0"
LOGGED = ("TORCH_", "CMAKE_", "MAX_", "CUDA", "FORCE", "CC", "CXX", "NVCC")


def _compile():
    target = "@NAME@_c.so"
    log = os.environ.get("BUILD_LOG")
    if log:
        with open(log, "a") as file:
            for name in sorted(os.environ):
                if name.startswith(LOGGED):
                    file.write(f"{name}={os.environ[name]}\\n")
    if os.path.exists("fail"):
        sys.exit("this source cannot be compiled")
    if os.path.exists("kernel.cu"):
        nvcc = os.path.join(os.environ["CUDA_HOME"], "bin", "nvcc")
        archs = os.environ["TORCH_CUDA_ARCH_LIST"].split(";")
        if os.path.exists("drop"):
            archs = archs[:1]
        numbers = [x.replace(".", "") for x in archs]
        codes = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in numbers]
        options = ["-shared", "-Xcompiler", "-fPIC", "-cudart", "none", *codes]
        subprocess.run([nvcc, *options, "-o", target, "kernel.cu"], check=True)
    elif os.path.exists("module.cpp"):
        include = sysconfig.get_path("include")
        words = [os.environ["CXX"], "-shared", "-fPIC", "-I" + include]
        subprocess.run([*words, "-o", target, "module.cpp"], check=True)
    return target


def _digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(directory, settings=None, metadata=None):
    members = {f"{NAME}.py": b"x = 1\\n"}
    if not os.path.exists("hollow"):
        target = _compile()
        members[target] = open(target, "rb").read()
    info = f"{NAME}-{VERSION}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {VERSION}", ""]
    members[f"{info}/METADATA"] = "\\n".join(lines).encode()
    lines = ["Wheel-Version: 1.0", "Root-Is-Purelib: false", "Tag: py3-none-any", ""]
    members[f"{info}/WHEEL"] = "\\n".join(lines).encode()
    record = "".join(f"{p},{_digest(d)},{len(d)}\\n" for p, d in members.items())
    members[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\\n").encode()
    name = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as archive:
        for path, data in members.items():
            archive.writestr(path, data)
    return name
'''

PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def write_source(folder: Path, name: str, **files: str) -> None:
    """Write a source; files are named with `_` for the dot (``kernel_cu``)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND.replace("@NAME@", name))
    for path, text in files.items():
        (folder / path.replace("_", ".")).write_text(text)


def pure_sdist(name: str) -> bytes:
    """Make the sdist 1.0 of a source without code to compile."""
    files = {"pyproject.toml": PROJECT, "backend.py": BACKEND.replace("@NAME@", name), "hollow": ""}
    return make_sdist(name, "1.0", {path: text.encode() for path, text in files.items()})


CPP = 'extern "C" int answer() { return 42; }\n'
KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n"


def write_toolkit(folder: Path, version: str, *, real: str = "") -> Path:
    """Write a CUDA_HOME whose nvcc says that it is of a version, and compiles with the real one."""
    nvcc = folder / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True, exist_ok=True)
    said = f"Cuda compilation tools, release {version}, V{version}.0"
    nvcc.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = --version ]; then echo "{said}"; exit 0; fi\n'
        f'exec {real or "false"} "$@"\n'
    )
    nvcc.chmod(0o755)
    return folder


def write_compiler(path: Path, version: str) -> Path:
    """Write a compiler that says that it is of a version, and compiles as the machine's does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = -dumpversion ]; then echo "{version}"; exit 0; fi\n'
        f'exec {which("c++")} "$@"\n'
    )
    path.chmod(0o755)
    return path
