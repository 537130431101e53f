"""Makes environments on disk: real metadata, real RECORD hashes, and any defect one asks for.

    env = EnvMaker(tmp_path).venv(python="3.11")
    env.torch("2.7.0+cu128", requires=["nvidia-nccl-cu12==2.26.2"])
    env.install("nvidia-nccl-cu12", "2.26.2", files={"nvidia/nccl/lib/libnccl.so.2": b"..."})
    env.remove("nvidia/nccl/lib/libnccl.so.2")
    installed = env.read()

A distribution installed later overwrites the files of earlier ones, as pip and uv do. Paths of
``files`` are relative to the site folder; ``../../../bin/x`` lies in the prefix.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.world.environment import read_environment
from envbuild.world.ownership import read_ownership
from envbuild.world.place import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envbuild.model.installed import Installed, Ownership


class EnvMaker:
    """Makes environments below a folder; as an image's root with ``root`` given to `read`."""

    def __init__(self, folder: Path, *, image: bool = False) -> None:
        self.folder = folder
        self.image = image

    def venv(  # noqa: PLR0913
        self,
        path: str = ".venv",
        *,
        python: str = "3.11",
        patch: str = "7",
        home: str | None = None,
        creator: str = "uv",
        system_site: bool = False,
        threads: str = "",
        lib: str = "lib",
        config: Mapping[str, str] | None = None,
    ) -> MadeEnv:
        """Make a venv as uv, virtualenv or the standard library lays it out.

        ``home`` is the ``bin`` of the Python below it; without one a bare interpreter is made.
        """
        prefix = self.folder / path
        tag = f"python{python}{threads}"
        home = home or self._base(tag)
        keys = {
            "home": home,
            "include-system-site-packages": str(system_site).lower(),
            **_creator_keys(creator, f"{python}.{patch}"),
            **(config or {}),
        }
        (prefix / "bin").mkdir(parents=True)
        text = "".join(f"{key} = {value}\n" for key, value in keys.items())
        (prefix / "pyvenv.cfg").write_text(text, encoding="utf-8")
        (prefix / "bin" / "python").symlink_to(f"{home}/{tag}")
        (prefix / "bin" / "python3").symlink_to("python")
        return self._made(prefix, prefix / lib / tag / "site-packages")

    def conda(self, path: str = "conda", *, python: str = "3.11", patch: str = "7") -> MadeEnv:
        """Make a conda prefix; `MadeEnv.conda_package` adds what conda alone knows."""
        prefix = self.folder / path
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin" / f"python{python}").write_bytes(ELF_HEADER)
        (prefix / "bin" / "python").symlink_to(f"python{python}")
        (prefix / "conda-meta").mkdir()
        env = self._made(prefix, prefix / "lib" / f"python{python}" / "site-packages")
        env.conda_package("python", f"{python}.{patch}", build="h955ad1f_0_cpython")
        return env

    def debian(self, *, python: str = "3.11", patch: str = "2") -> MadeEnv:
        """Make the system Python of Debian; pip's own site folder is the one of `/usr/local`.

        Needs a maker of an image: its folder stands for `/`.
        """
        usr = self.folder / "usr"
        self._interpreter(usr, python, patch)
        (usr / "lib" / f"python{python}").mkdir(parents=True)
        (usr / "lib" / "python3" / "dist-packages").mkdir(parents=True)
        site = usr / "local" / "lib" / f"python{python}" / "dist-packages"
        return self._made(usr, site)

    def standalone(
        self, path: str = "usr/local", *, python: str = "3.11", patch: str = "9"
    ) -> MadeEnv:
        """Make a Python of python.org, of the python images, or of uv, with its packages."""
        prefix = self.folder / path
        self._interpreter(prefix, python, patch)
        return self._made(prefix, prefix / "lib" / f"python{python}" / "site-packages")

    def _base(self, tag: str) -> str:
        """Make an interpreter's file and return its folder, as it is named inside the root."""
        folder = self.folder / "base" / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / tag).write_bytes(ELF_HEADER)
        return "/base/bin" if self.image else str(folder)

    def _interpreter(self, prefix: Path, python: str, patch: str) -> None:
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin" / f"python{python}").write_bytes(ELF_HEADER)
        (prefix / "bin" / "python3").symlink_to(f"python{python}")
        header = prefix / "include" / f"python{python}" / "patchlevel.h"
        header.parent.mkdir(parents=True)
        header.write_text(f'#define PY_VERSION "{python}.{patch}"\n', encoding="utf-8")

    def _made(self, prefix: Path, site: Path) -> MadeEnv:
        site.mkdir(parents=True, exist_ok=True)
        root = self.folder if self.image else None
        return MadeEnv(prefix=prefix, site=site, root=root)


class MadeEnv:
    """One environment; methods that change it return it, so that they can be chained."""

    def __init__(self, *, prefix: Path, site: Path, root: Path | None = None) -> None:
        self.prefix = prefix
        self.site = site
        self.root = root

    def at(self, site: Path) -> MadeEnv:
        """Return the same environment, installing into another site folder from here on."""
        site.mkdir(parents=True, exist_ok=True)
        return MadeEnv(prefix=self.prefix, site=site, root=self.root)

    def install(  # noqa: PLR0913
        self,
        name: str,
        version: str,
        *,
        files: Mapping[str, bytes | str] | None = None,
        requires: Iterable[str] = (),
        tag: str = "py3-none-any",
        installer: str = "uv",
        origin: Mapping[str, object] | None = None,
        requested: bool = False,
        record: bytes | str | bool = True,
    ) -> MadeEnv:
        """Install a distribution; without ``files`` it has one module of its name.

        ``record`` False leaves RECORD out, text or bytes replace it. ``origin`` is the content of
        direct_url.json.
        """
        if files is None:
            files = {f"{canonicalize_name(name).replace('-', '_')}/__init__.py": f"# {name}\n"}
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        own = _metadata_files(name, version, requires=requires, tag=tag, installer=installer)
        if origin is not None:
            own["direct_url.json"] = json.dumps(origin)
        if requested:
            own["REQUESTED"] = ""
        everything = {**files, **{f"{info}/{key}": value for key, value in own.items()}}
        for path, content in everything.items():
            self.write(path, content)
        if record is True:
            record = record_text(everything, info=info)
        if record is not False:
            self.write(f"{info}/RECORD", record)
        return self

    def torch(
        self,
        version: str = "2.7.0+cu128",
        *,
        metadata: str | None = None,
        cuda: str | None = "",
        files: Mapping[str, bytes | str] | None = None,
        requires: Iterable[str] = (),
        tag: str = "cp311-cp311-manylinux_2_28_x86_64",
    ) -> MadeEnv:
        """Install a torch: ``metadata`` is the version in its METADATA, as PyPI's lacks ``+cu128``.

        ``cuda`` follows from the local version where it is left out.
        """
        if cuda == "":
            local = version.partition("+")[2]
            cuda = f"{local[2:-1]}.{local[-1]}" if local.startswith("cu") else None
        content = {
            "torch/__init__.py": "from torch.version import __version__\n",
            "torch/version.py": torch_version_text(version, cuda),
            **(files or {}),
        }
        return self.install("torch", metadata or version, files=content, requires=requires, tag=tag)

    def egg_info(
        self,
        name: str,
        version: str,
        *,
        files: Mapping[str, bytes | str] | None = None,
        requires_txt: str = "",
        as_file: bool = False,
        installed_files: Iterable[str] | None = None,
    ) -> MadeEnv:
        """Install a distribution as Debian and setuptools did: an `.egg-info`, and no RECORD."""
        for path, content in (files or {}).items():
            self.write(path, content)
        info = f"{name.replace('-', '_')}-{version}.egg-info"
        metadata = f"Metadata-Version: 1.1\nName: {name}\nVersion: {version}\n"
        if as_file:
            return self.write(info, metadata)
        self.write(f"{info}/PKG-INFO", metadata)
        if requires_txt:
            self.write(f"{info}/requires.txt", requires_txt)
        if installed_files is not None:
            self.write(f"{info}/installed-files.txt", "\n".join(installed_files))
        return self

    def conda_package(self, name: str, version: str, *, build: str = "py311_0") -> MadeEnv:
        """Add a package that only ``conda-meta`` knows (``mkl``)."""
        path = self.prefix / "conda-meta" / f"{name}-{version}-{build}.json"
        path.write_text(json.dumps({"name": name, "version": version}), encoding="utf-8")
        return self

    def write(self, path: str, content: bytes | str) -> MadeEnv:
        """Write a file that no RECORD names; a path relative to the site folder.

        What lies there goes first, so that a copy made of hard links leaves its original alone.
        """
        goal = Path(os.path.normpath(self.site / path))
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.unlink(missing_ok=True)
        goal.write_bytes(_bytes(content))
        return self

    def link(self, path: str, target: str) -> MadeEnv:
        """Put a symbolic link in the place of whatever lies at a path of the site folder."""
        goal = self.site / path
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.unlink(missing_ok=True)
        goal.symlink_to(target)
        return self

    def remove(self, *paths: str) -> MadeEnv:
        """Remove files or folders, leaving every RECORD as it is."""
        for path in paths:
            goal = self.site / path
            if goal.is_dir() and not goal.is_symlink():
                shutil.rmtree(goal)
            else:
                goal.unlink()
        return self

    def uninstall(self, name: str, version: str) -> MadeEnv:
        """Remove a distribution with every file it records, whoever else records it too."""
        info = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        for line in (info / "RECORD").read_text(encoding="utf-8").splitlines():
            (self.site / line.rsplit(",", 2)[0]).unlink(missing_ok=True)
        shutil.rmtree(info, ignore_errors=True)
        return self

    def pth(self, name: str, *lines: str) -> MadeEnv:
        """Write a `.pth` file."""
        return self.write(f"{name}.pth", "".join(f"{line}\n" for line in lines))

    @property
    def root_path(self) -> str:
        """The root to read it from: the image's folder, or `/`."""
        return str(self.root or "/")

    def inside(self, path: Path | None = None) -> str:
        """Return a path (of the prefix, if none is given) as it is named inside the root."""
        path = path or self.prefix
        return f"/{path.relative_to(self.root)}" if self.root else str(path)

    def read(self, *, environ: Mapping[str, str] | None = None) -> Installed:
        """Read it as the doctor does; no variable of the test run is seen."""
        return read_environment(
            self.inside(),
            root=self.root_path,
            environ=environ or {},
            around=Surroundings(folder="/", own_prefix="/nowhere"),
        )

    def ownership(self, *, environ: Mapping[str, str] | None = None) -> Ownership:
        """Read who owns its files."""
        return read_ownership(self.read(environ=environ))


ELF_HEADER = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00"
"""The first bytes of a shared object for x86_64."""


def record_text(files: Mapping[str, bytes | str], *, info: str) -> str:
    """Return the RECORD of files, as installers write it."""
    lines = [record_line(path, content) for path, content in files.items()]
    return "".join(f"{line}\n" for line in [*lines, f"{info}/RECORD,,"])


def record_line(path: str, content: bytes | str) -> str:
    """Return one line of a RECORD."""
    data = _bytes(content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    quoted = '"' + path.replace('"', '""') + '"' if {",", '"'} & set(path) else path
    return f"{quoted},sha256={digest},{len(data)}"


def torch_version_text(version: str, cuda: str | None, *, git: str = "0" * 40) -> str:
    """Return the text of ``torch/version.py``, as torch's build writes it."""
    return (
        "from typing import Optional\n\n"
        "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']\n"
        f"__version__ = {version!r}\ndebug = False\n"
        f"cuda: Optional[str] = {cuda!r}\ngit_version = {git!r}\n"
        "hip: Optional[str] = None\nrocm: Optional[str] = None\nxpu: Optional[str] = None\n"
    )


def _metadata_files(
    name: str, version: str, *, requires: Iterable[str], tag: str, installer: str
) -> dict[str, bytes | str]:
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires)
    wheel = f"Wheel-Version: 1.0\nGenerator: envmaker\nRoot-Is-Purelib: true\nTag: {tag}\n"
    return {
        "METADATA": f"{metadata}\n{name} is a package.\n",
        "WHEEL": wheel,
        "INSTALLER": f"{installer}\n",
    }


def _creator_keys(creator: str, version: str) -> dict[str, str]:
    if creator == "venv":
        return {"version": version, "executable": f"/usr/bin/python{version[:4]}"}
    if creator == "virtualenv":
        keys = {"implementation": "CPython", "version_info": f"{version}.final.0"}
        return {**keys, "virtualenv": "20.26.6"}
    return {"implementation": "CPython", "uv": "0.13.9", "version_info": version}


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
