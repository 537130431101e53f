"""Find the version of a CUDA toolkit in its files, and of a compiler in its names."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from envbuild.model.cuda import CudaVersion

if TYPE_CHECKING:
    from collections.abc import Iterable

_TEXT = re.compile(r"CUDA Version (\d{1,2})\.(\d)\b")
_HEADER = re.compile(r"#define\s+(?:CUDA_VERSION|CUDART_VERSION)\s+(\d{4,5})\b")
_FOLDER = re.compile(r"cuda[-_]?(\d{1,2})\.(\d)(?:\.\d+)?")
_SHORT = re.compile(r"(\d{1,2})\.(\d)(?:[.\w]*)?")
_COMPILER = re.compile(
    r"(?:\w+-(?:\w+-)?linux-gnu-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-(\d+(?:\.\d+)*))?"
)
_WRAPPED = re.compile(r"(?:^|[\s\"'])(/[\w./+@-]{1,400}/bin/nvcc)\b", re.MULTILINE)
_LLVM = re.compile(r"llvm-?(\d+)")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


def parse_version_json(text: str) -> CudaVersion | None:
    """Read a toolkit's version.json: nvcc's own version, else the toolkit's."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for name in ("cuda_nvcc", "cuda", "cuda_cudart"):
        found = _cuda(_member(_member(data, name), "version"))
        if found is not None:
            return found
    return None


def _member(data: Any, name: str) -> Any:  # noqa: ANN401
    return data.get(name) if isinstance(data, dict) else None


def _cuda(value: object) -> CudaVersion | None:
    found = _SHORT.fullmatch(value) if isinstance(value, str) else None
    return CudaVersion(major=int(found[1]), minor=int(found[2])) if found else None


def parse_version_txt(text: str) -> CudaVersion | None:
    """Read the version.txt that toolkits had up to CUDA 11.0."""
    found = _TEXT.search(text)
    return CudaVersion(major=int(found[1]), minor=int(found[2])) if found else None


def parse_cuda_header(text: str) -> CudaVersion | None:
    """Read ``CUDA_VERSION`` of cuda.h (``12080``)."""
    found = _HEADER.search(text)
    if found is None:
        return None
    return CudaVersion(major=int(found[1]) // 1000, minor=int(found[1]) % 1000 // 10)


def toolkit_of_name(folder: str) -> CudaVersion | None:
    """Return the version in a folder's name (``cuda-12.8``)."""
    found = _FOLDER.fullmatch(folder)
    return CudaVersion(major=int(found[1]), minor=int(found[2])) if found else None


def toolkit_of_release(version: str) -> CudaVersion | None:
    """Return the toolkit of a release of nvcc (``12.8.93``)."""
    return _cuda(version)


def wrapped_nvcc(script: str) -> str | None:
    """Return the nvcc that a shell script of that name starts, as Debian has it."""
    found = _WRAPPED.search(script) if script.startswith("#!") else None
    return found[1] if found else None


def is_compiler(name: str) -> bool:
    """Return whether a file name is one of a C or C++ compiler that nvcc can use."""
    return bool(_COMPILER.fullmatch(name))


def compiler_of_names(names: Iterable[str]) -> str | None:
    """Return the version in the first name that has one (``x86_64-linux-gnu-g++-12``)."""
    found = (_COMPILER.fullmatch(name) for name in names)
    return next((match[1] for match in found if match and match[1]), None)


def llvm_of_path(path: str) -> str | None:
    """Return the version in a path below ``/usr/lib/llvm-14``."""
    found = (_LLVM.fullmatch(part) for part in path.split("/"))
    return next((match[1] for match in found if match), None)


def newest_of(names: Iterable[str]) -> str | None:
    """Return the highest of the names that are numbers (``11``, ``12.3.0``)."""
    numbers = [name for name in names if _NUMBER.fullmatch(name)]
    return max(numbers, key=_parts, default=None)


def _parts(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))
