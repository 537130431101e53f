"""What doctor says of real packages in an image that has a C library and next to nothing else.

What is expected was seen in such a root by `chroot` and `import`; only files are looked at here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from realvenv import make_base

from envbuild.world.binaries import read_ld_cache
from envbuild.world.rootfs import Root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from realvenv import RealVenv

pytestmark = pytest.mark.online

SYSTEM = (
    *("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1"),
    *("libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "libresolv.so.2", "libmvec.so.1"),
    "ld-linux-x86-64.so.2",
)
SOUND = (
    *("pillow", "lxml", "psycopg2-binary", "soundfile", "h5py", "av", "numba", "scipy"),
    *("opencv-python-headless", "onnxruntime", "faiss-cpu", "glfw", "PyOpenGL", "simpleitk"),
)
LACKING = {
    "open3d": ("error", "libusb-1.0-0"),
    "pyodbc": ("error", "libodbc2"),
    "polyscope": ("error", "libx11-6"),
    "python-rtmidi": ("error", "libasound2"),
    "lightgbm": ("warning", "libgomp1"),
    "mpi4py": ("note", ""),
    "pyqt5": ("note", ""),
}


@pytest.fixture(name="root")
def an_image(tmp_path: Path) -> Iterator[Path]:
    """Return the root of an image without any environment."""
    root = tmp_path / "root"
    folder = root / "lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    cache = read_ld_cache(Root("/"), machine="x86_64")
    for name in SYSTEM:
        shutil.copy(cache[name][0], folder / name)
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text('ID=debian\nVERSION_ID="12"\n', encoding="utf-8")
    yield root
    shutil.rmtree(root, ignore_errors=True)


def told_of(root: Path, *requirements: str) -> dict[str, str]:
    """Install packages into the image; return how bad what is said of each is."""
    venv = make_base(root / "venv", *requirements)
    _with_interpreter(venv, root)
    done = _doctor(root)
    every = [done["primary"], *(one["cause"] for one in done["others"]), *done["notes"]]
    found = [one for one in every if one is not None]
    assert {one["code"] for one in found} <= {"EB309"}, found
    assert all(step["text"].startswith("apt-get install -y ") for step in done["plan"]), found
    packages = {word for step in done["plan"] for word in step["text"].split()[3:]}
    wanted = {LACKING.get(name, ("", ""))[1] for name in requirements} - {""}
    assert wanted <= packages
    return {one["subject"].partition(" ")[0]: one["severity"] for one in found}


def _with_interpreter(venv: RealVenv, root: Path) -> None:
    """Bring the files of the interpreter into the image, and nothing that it is linked to."""
    binary = venv.python.resolve()
    for path in (binary, *binary.parent.parent.glob("lib/libpython3.*.so*")):
        goal = root / str(path).lstrip("/")
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, goal)


def _doctor(root: Path) -> dict[str, Any]:
    words = ("doctor", "--root", str(root), "/venv")
    done = subprocess.run(
        [sys.executable, "-m", "envbuild", *words, "--quiet", "--format", "json"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_what_brings_all_it_needs_is_healthy(root: Path) -> None:
    assert told_of(root, *SOUND) == {}


def test_what_needs_the_system_is_told(root: Path) -> None:
    found = told_of(root, *LACKING, "opencv-python")
    severities = {name: severity for name, (severity, _) in LACKING.items()}
    assert found == {**severities, "opencv-python": "error"}
