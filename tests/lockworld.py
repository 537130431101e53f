"""A small world for whole locks: every index on this machine, real uv, real files.

The wheels carry the names and requirements of the real ones and are a few hundred bytes long,
so that uv locks and installs them in a moment and hashes are computed for real.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
import uv
from buildworld import pure_sdist
from index import local_wheel, make_sdist
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envbuild.catalog.reader import Catalog
from envbuild.commands.lock import lock
from envbuild.commands.lockrun import LockOptions
from envbuild.core.indexpages import flash_attn_page, pyg_page, pypi_page, pytorch_page
from envbuild.core.wheeltags import fits
from envbuild.model.project import IndexUrls
from envbuild.model.target import Platform, Target
from envbuild.ports import Reporter
from envbuild.world.basereader import DiskBases
from envbuild.world.http import HttpClient
from envbuild.world.liveindex import LiveIndex
from envbuild.world.pagecache import PageCache
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.uv import UvResolver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from index import LocalIndex, LocalWheel

    from envbuild.model.report import LockReport
    from envbuild.model.wheel import WheelFile
    from envbuild.ports import WheelSource

UV = uv.find_uv_bin()
PYTHON = (
    str(Path(sys.base_prefix, "bin", "python3.11"))
    if sys.version_info[:2] == (3, 11)
    else which("python3.11")
)
"""The interpreter of the targets, None where this machine has none."""

LINUX = "py3-none-manylinux2014_x86_64"
PUBLIC = IndexUrls()
X86_64 = Target(name="t", python="3.11", platform=Platform.LINUX_X86_64)
AARCH64 = replace(X86_64, platform=Platform.LINUX_AARCH64)

TORCH = {"2.7.0": ("cu126", "cu128", "cpu"), "2.8.0": ("cu126", "cu128", "cpu")}
"""The torch releases of the world and the accelerators they are built for."""

TRITON = ("3.3.0", "3.4.0")
"""What these need of triton; on aarch64 PyTorch's index alone has it."""

PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "pyg-lib")

PURE: Mapping[str, tuple[str, ...]] = {
    "filelock 3.18.0": (),
    "typing-extensions 4.13.2": (),
    "setuptools 80.1.0": (),
    "wheel 0.45.1": (),
    "ninja 1.11.1": (),
    "mpmath 1.3.0": (),
    "sympy 1.14.0": ("mpmath<1.4,>=1.1.0",),
    "networkx 3.4.2": (),
    "markupsafe 3.0.2": (),
    "jinja2 3.1.6": ("markupsafe>=2.0",),
    "fsspec 2025.3.2": (),
    "numpy 1.26.4": (),
    "numpy 2.2.5": (),
    "pillow 11.2.1": (),
    "scipy 1.15.2": ("numpy<2.5,>=1.23.5",),
    "einops 0.8.1": (),
    "tqdm 4.67.1": (),
    "pyyaml 6.0.2": (),
    "peft 0.19.0": ("torch>=1.13.0", "numpy>=1.17", "pyyaml", "tqdm"),
    "timm 1.0.15": ("torch", "torchvision", "pyyaml"),
    "fire 0.7.0": (),
    "pccm 0.4.16": ("fire",),
    "ccimport 0.4.4": ("ninja",),
    "pybind11 2.13.6": (),
    "six 1.16.0": (),
    "six 1.17.0": (),
    "iniconfig 2.1.0": (),
    "wants-torch-2-8 1.0": ("torch>=2.8",),
}

MINIMAL = """\
[project]
name = "demo"
version = "0.1"
requires-python = "==3.11.*"
dependencies = [{dependencies}]

[tool.uv]
package = false

[tool.envbuild]
layer = "{layer}"

[tool.envbuild.targets.cu128]
python = "3.11"
gpus = [{gpus}]
torch = "{torch}"
{more}
"""


def pyproject(
    *dependencies: str,
    torch: str = "2.7.0",
    gpus: Iterable[str] = ("B200",),
    layer: str = "project",
    more: str = "",
) -> str:
    """Return the pyproject.toml of a project with one target ``cu128``."""
    return MINIMAL.format(
        dependencies=", ".join(f'"{one}"' for one in dependencies),
        gpus=", ".join(f'"{gpu}"' for gpu in gpus),
        torch=torch,
        layer=layer,
        more=more,
    )


class Hearing(Reporter):
    """Keeps what the user is told."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def note(self, text: str) -> None:
        self._notes.append(text)


@dataclass
class World:
    """The indexes, uv's cache and the project's folder of one test.

    ``notes`` are what the locks so far told the user on the way.
    """

    index: LocalIndex
    root: Path
    cache: Path
    catalog: Catalog = field(default_factory=Catalog.load)
    notes: list[str] = field(default_factory=list)

    changes: dict[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The environment that leads every index here, with the changes of the test."""
        urls = self.index.urls
        return {
            "ENVBUILD_INDEX_PYTORCH": str(urls.pytorch),
            "ENVBUILD_INDEX_PYG": urls.pyg,
            "ENVBUILD_INDEX_FLASH_ATTN": urls.flash_attn,
            "ENVBUILD_INDEX_PYPI": str(urls.pypi),
            "ENVBUILD_CACHE_DIR": str(self.cache / "envbuild"),
            "UV_CACHE_DIR": str(self.cache / "uv"),
            "PATH": f"{Path(PYTHON).parent}:/usr/bin:/bin" if PYTHON else "/usr/bin:/bin",
            "HOME": str(self.cache),
            **self.changes,
        }

    def write(self, text: str, path: str = "pyproject.toml") -> None:
        """Write a file of the project."""
        goal = self.root / path
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.write_text(text)

    def read(self, path: str) -> str:
        """Return the text of a file of the project."""
        return (self.root / path).read_text()

    def files(self) -> dict[str, str]:
        """Return every file of the project."""
        return {
            str(path.relative_to(self.root)): path.read_text()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".venv" not in path.parts
        }

    def state(self) -> dict[str, tuple[int, bytes]]:
        """Return the time and content of every file and folder of the project."""
        return {
            str(path.relative_to(self.root)): (
                path.stat().st_mtime_ns,
                path.read_bytes() if path.is_file() else b"",
            )
            for path in (self.root, *sorted(self.root.rglob("*")))
        }

    def lock(self, *, source: WheelSource | None = None, **options: object) -> LockReport:
        """Lock the project in this process; options as in LockOptions.

        The pages are those of the live indexes, unless another source is given.
        """
        return lock(
            LockOptions(directory=self.root, environ=self.environ, **options),  # type: ignore[arg-type]
            source=source or LiveIndex(HttpClient(), PageCache(self.cache / "envbuild")),
            facts=self.catalog,
            resolver=UvResolver(environ=self.environ),
            files=ProjectFiles(self.root),
            reporter=Hearing(self.notes),
            bases=DiskBases(self.environ),
        )

    def uv(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run uv in the project's folder, with no other index and no other configuration.

        Skips the test where the machine lacks the Python of the targets.
        """
        if PYTHON is None:
            pytest.skip("needs Python 3.11")
        return subprocess.run(
            [UV, *arguments],
            cwd=self.root,
            env={**self.environ, "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"},
            check=check,
            capture_output=True,
            text=True,
        )


def populate(index: LocalIndex, catalog: Catalog) -> None:
    """Serve the world's wheels."""
    pypi = {wheel.filename: wheel for wheel in _pure()}
    for wheel in _coupled(catalog):
        index.add_facts([wheel])
        for text in wheel.requires_dist or ():
            for made in _required(text):
                pypi.setdefault(made.filename, made)
    index.add_sdist("flash-attn", "2.8.3", make_sdist("flash-attn", "2.8.3"))
    index.add_sdist("sdext", "1.0", pure_sdist("sdext"))
    for wheel in (*_from_pypi(catalog),):
        index.add_facts([wheel])
    index.add_pypi(*pypi.values())


def _pure() -> Iterator[LocalWheel]:
    for name, requires in PURE.items():
        project, _, version = name.partition(" ")
        yield local_wheel(project, version, requires=requires)


def _coupled(catalog: Catalog) -> Iterator[WheelFile]:
    for torch, accelerators in TORCH.items():
        for accelerator in accelerators:
            page = pytorch_page(PUBLIC, accelerator)
            assert page is not None
            for project in ("torch", "torchvision", "torchaudio"):
                for wheel in catalog.wheels(page, project):
                    if _is_of(wheel, torch) and _fits_any(wheel):
                        yield wheel
            yield from (
                wheel
                for wheel in catalog.wheels(page, "triton")
                if wheel.version in TRITON and fits(wheel.filename, AARCH64)
            )
    page = pyg_page(PUBLIC, "2.7.0", "cu128")
    for project in PYG:
        yield from (wheel for wheel in catalog.wheels(page, project) if _fits_any(wheel))
    page = flash_attn_page(PUBLIC, "2.8.3")
    yield from (wheel for wheel in catalog.wheels(page, "flash-attn") if _fits_any(wheel))


def _is_of(wheel: WheelFile, torch: str) -> bool:
    public = wheel.version.partition("+")[0]
    return public == torch or f"torch=={torch}" in (wheel.requires_dist or ())


def _fits_any(wheel: WheelFile) -> bool:
    return fits(wheel.filename, X86_64) or fits(wheel.filename, AARCH64)


def _from_pypi(catalog: Catalog) -> Iterator[WheelFile]:
    page = pypi_page(PUBLIC)
    for wheel in catalog.wheels(page, "torch"):
        if wheel.version in TORCH and _fits_any(wheel):
            yield wheel
    for project in ("spconv-cu126", "cumm-cu126", "spconv", "cumm"):
        yield from (wheel for wheel in catalog.wheels(page, project) if _fits_any(wheel))


def _required(text: str) -> Iterator[LocalWheel]:
    """Make the NVIDIA or triton wheel that a requirement of torch pins."""
    requirement = Requirement(text)
    name = canonicalize_name(requirement.name)
    for specifier in requirement.specifier:
        if specifier.operator == "==" and name.startswith("nvidia-"):
            yield local_wheel(name, specifier.version, LINUX)
        elif specifier.operator == "==" and name.startswith(("triton", "pytorch-triton")):
            yield local_wheel(name, specifier.version, "cp311-cp311-manylinux_2_27_x86_64")
