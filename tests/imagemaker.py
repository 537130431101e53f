"""A machine in memory, or in a folder, with an interpreter and a torch of a few symbols."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from elfmaker import Held, make_elf

from envbuild.core.elf.sharedobject import Elf
from envbuild.core.link.process import Program
from envbuild.core.link.report import read_links
from envbuild.core.link.search import SearchPath
from envbuild.core.link.stoppedmodules import Sources

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from envbuild.model.links import Links

SITE = "/venv/lib/python3.11/site-packages"
TORCH = f"{SITE}/torch"
NVIDIA = f"{SITE}/nvidia"
TAG = "cpython-311-x86_64-linux-gnu"
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
WHEELS = ":".join(
    f"$ORIGIN/../../nvidia/{name}/lib"
    for name in ("nccl", "cusparse", "cuda_runtime", "cudnn", "nvjitlink")
)
_TORCH_TEXT = """
def _preload_cuda_deps(lib_folder: str, lib_name: str) -> None:
    paths = glob.glob(os.path.join(nvidia_path, lib_folder, "lib", lib_name))

def _load_global_deps() -> None:
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
ALWAYS
    except OSError as err:
        cuda_libs: Dict[str, str] = {
            "cuda_runtime": "libcudart.so.*[0-9]",
            "nccl": "libnccl.so.*[0-9]",
            "nvjitlink": "libnvJitLink.so.*[0-9]",
        }

if USE_GLOBAL_DEPS:
    _load_global_deps()
"""
OLD_TORCH = _TORCH_TEXT.replace("ALWAYS", "")
NEW_TORCH = _TORCH_TEXT.replace(
    "ALWAYS",
    """
            if "nvidia/cuda_runtime/lib/libcudart.so" not in _maps:
                return
            _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
""",
)


@dataclass
class Image:
    """Files by path; ``links`` are symbolic links. It serves as the loader's ``Library``.

    ``texts`` are modules of Python, ``tops`` what each distribution brings to be imported.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    tops: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)
    torch_text: str = NEW_TORCH
    torch_version: str = "2.8.0+cu128"
    ld_library_path: tuple[str, ...] = ()
    ld_preload: tuple[str, ...] = ()
    cache: dict[str, tuple[str, ...]] = field(default_factory=dict)
    executable: str = "/usr/bin/python3.11"

    def add(self, path: str, **parts: object) -> None:
        """Add a shared object; its SONAME is its name unless another, or None, is given."""
        named = {"soname": posixpath.basename(path), **parts}
        self.files[path] = make_elf(**named)  # type: ignore[arg-type]

    def extension(self, path: str, *, imports: tuple[str, ...] = (), **parts: object) -> str:
        """Add an extension module of the site; return its path."""
        where = f"{SITE}/{path}.{TAG}.so"
        name = posixpath.basename(path)
        wants = ("PyModule_Create2", *imports)
        self.add(where, **{"soname": None, "defines": (f"PyInit_{name}",), **parts, "wants": wants})
        return where

    def text(self, path: str, text: str = "") -> None:
        """Add a module of the site."""
        self.texts[f"{SITE}/{path}"] = text

    def real(self, path: str) -> str:
        """Follow the links; see ``Library``."""
        path = posixpath.normpath(path)
        for _ in range(9):
            for link, goal in self.links.items():
                if path == link or path.startswith(f"{link}/"):
                    path = posixpath.join(posixpath.dirname(link), goal) + path[len(link) :]
        return posixpath.normpath(path)

    def open(self, path: str) -> Elf | None:
        """Open a file; see ``Library``."""
        data = self.files.get(self.real(path))
        return None if data is None else Elf(Held(data))

    def names(self, folder: str) -> AbstractSet[str]:
        """List a folder; see ``Library``."""
        real = self.real(folder)
        every = (*self.files, *self.links, *self.texts)
        start = f"{real}/"
        return {path[len(start) :].partition("/")[0] for path in every if path.startswith(start)}

    def judge(self, *, tag: str = "311", cuda: str | None = "12.8") -> Links:
        """Judge it."""
        program = Program(
            executable=self.executable,
            sites=(SITE,),
            ld_preload=self.ld_preload,
            torch_text=self.torch_text,
            torch_cuda=cuda,
            torch_version=self.torch_version,
        )
        search = SearchPath(ld_library_path=self.ld_library_path, cache=self.cache)
        every = sorted((*self.files, *self.links))
        paths = tuple(path for path in every if path.startswith(SITE) and ".so" in path)
        sources = Sources(text=self.texts.get, tops=lambda _: self.tops)
        return read_links(paths, program, library=self, search=search, tag=tag, sources=sources)

    def write(self, folder: Path) -> None:
        """Write it below a folder."""
        for path, data in self.files.items():
            where = folder / path.lstrip("/")
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(data)
        for path, goal in self.links.items():
            where = folder / path.lstrip("/")
            where.parent.mkdir(parents=True, exist_ok=True)
            where.symlink_to(goal)


def machine() -> Image:
    """Return a machine with a C library and an interpreter, and an empty site."""
    image = Image()
    image.add(LIBC, defines=("printf@@GLIBC_2.2.5", "strlcpy@@GLIBC_2.31"))
    image.add(
        "/usr/bin/python3.11",
        soname=None,
        needed=("libc.so.6",),
        defines=("PyModule_Create2", "PyObject_GetAttr"),
        wants=("printf@GLIBC_2.2.5=libc.so.6",),
    )
    return image


def with_torch() -> Image:
    """Return a machine with torch and what it is linked to, all of it sound.

    libtorch_cuda finds the wheels of NVIDIA by RPATH. libcusparse finds nothing by itself.
    """
    image = machine()
    lib = f"{TORCH}/lib"
    image.add(f"{NVIDIA}/nccl/lib/libnccl.so.2", defines=("ncclSend", "ncclCommSplit"))
    image.add(
        f"{NVIDIA}/cuda_runtime/lib/libcudart.so.12", defines=("cudaMalloc@@libcudart.so.12",)
    )
    image.add(f"{NVIDIA}/cudnn/lib/libcudnn.so.9", defines=("cudnnCreate",), runpath="$ORIGIN")
    image.add(f"{NVIDIA}/cudnn/lib/libcudnn_graph.so.9", defines=("cudnnGraph",))
    image.add(
        f"{NVIDIA}/nvjitlink/lib/libnvJitLink.so.12",
        defines=("__nvJitLinkCreate_12_8@@libnvJitLink.so.12",),
    )
    image.add(
        f"{NVIDIA}/cusparse/lib/libcusparse.so.12",
        needed=("libnvJitLink.so.12",),
        runpath="$ORIGIN/../../nvjitlink/lib",
        defines=("cusparseCreate",),
        wants=("__nvJitLinkCreate_12_8@libnvJitLink.so.12=libnvJitLink.so.12",),
    )
    image.add(f"{lib}/libtorch_global_deps.so", needed=("libcudart.so.12",), rpath=WHEELS)
    image.add(f"{lib}/libc10.so", defines=("_ZN3c105ErrorC2Ev",), rpath="$ORIGIN")
    image.add(
        f"{lib}/libtorch_cpu.so",
        needed=("libc10.so",),
        defines=("_ZN2at6Tensor3addEv", "_ZN2at4_ops3addEv"),
        rpath="$ORIGIN",
    )
    image.add(
        f"{lib}/libtorch_cuda.so",
        needed=("libtorch_cpu.so", "libcusparse.so.12", "libnccl.so.2", "libcudnn.so.9"),
        wants=("ncclSend", "ncclCommSplit", "cudnnCreate", "cusparseCreate", "?__gmon_start__"),
        rpath=f"{WHEELS}:$ORIGIN",
    )
    image.add(f"{lib}/libtorch_python.so", needed=("libtorch_cuda.so",), rpath=f"{WHEELS}:$ORIGIN")
    image.extension("torch/_C", needed=("libtorch_python.so",), rpath=f"{WHEELS}:$ORIGIN/lib")
    return image
