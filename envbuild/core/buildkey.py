"""The key of a built wheel: equal where a build would give the same, different where not."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FORMAT = "envbuild-wheel-1"
_NOT_SOURCE = frozenset(
    {"build", "dist", "__pycache__", ".git", ".hg", ".venv", "venv", ".eggs", ".mypy_cache"}
    | {".ruff_cache", ".pytest_cache", ".tox", ".nox"}
)
_PRODUCTS = (".so", ".o", ".pyc", ".egg-info")
# What changes how long a build takes, or where its tools lie, and not what comes out.
_WITHOUT_EFFECT = frozenset(
    {"MAX_JOBS", "NVCC_THREADS", "CUDA_HOME", "CC", "CXX", "CUDAHOSTCXX"}
    | {"NVTE_BUILD_THREADS_PER_JOB"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """A file of a source tree: its path in it, the sha256 of its bytes, whether it can be run.

    For a link ``sha256`` is that of the address it leads to, and ``link`` is True.
    """

    path: str
    sha256: str
    executable: bool = False
    link: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildInputs:
    """What the outcome of a build depends on.

    ``source`` is the sha256 of a tree, a commit or the sha256 of an sdist, with its kind in
    front. ``torch`` is the version that is installed, local part included; ``cuda`` is
    ``12.8``, empty for the CPU build. ``compiler`` and ``nvcc`` are versions, empty where there
    is none. ``python`` is the tag of interpreter and platform.
    """

    project: str
    source: str
    torch: str
    cuda: str
    python: str
    compiler: str = ""
    nvcc: str = ""
    variables: tuple[tuple[str, str], ...] = ()


def build_key(inputs: BuildInputs) -> str:
    """Return the key, a sha256 in hexadecimal digits; the order of the variables is no matter."""
    effective = sorted((n, v) for n, v in set(inputs.variables) if n not in _WITHOUT_EFFECT)
    document = {**asdict(inputs), "variables": effective, "format": _FORMAT}
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def tree_sha256(files: Iterable[SourceFile]) -> str:
    """Return the hash of a source tree, in whatever order its files come."""
    rows = sorted((f.path, f.sha256, f.executable, f.link) for f in files)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def is_source(name: str) -> bool:
    """Whether a file or folder of this name belongs to the source, not to what was built of it."""
    return name not in _NOT_SOURCE and not name.endswith(_PRODUCTS)
