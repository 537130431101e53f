"""Files of which a package brings one for each torch or CUDA, and opens the one that fits.

`libtorch_c_dlpack_addon_torch28-cpu.so` and `build/torch29-cxx11-cu128-x86_64-linux/_ops.abi3.so`
are for one torch each, `torch_memory_saver_hook_mode_torch_cu12.abi3.so` is for one CUDA.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.link.process import package_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_TORCH = re.compile(r"(?<![a-z])torch[-_]?(\d)\.?(\d{1,2})(?!\d)")
_CUDA = re.compile(r"[-_./](?:cu|cuda)(1[1-9])\d?(?![0-9a-z])")
_MINOR = re.compile(r"(\d+)\.(\d+)")


def for_other_torch(paths: Iterable[str], *, sites: tuple[str, ...], torch: str) -> frozenset[str]:
    """Return the files for another torch than this one, of packages that have some for several.

    ``torch`` is its version, empty where there is none: then all of them are.
    """
    packages: dict[str, dict[str, tuple[str, str]]] = {}
    for path in paths:
        found = _TORCH.search(path, _start(path, sites))
        if found is not None:
            minors = packages.setdefault(package_of(path, sites), {})
            minors[path] = (found[1], found[2])
    match = _MINOR.match(torch)
    ours = match.groups() if match else None
    return frozenset(
        path
        for minors in packages.values()
        if len(set(minors.values())) > 1
        for path, minor in minors.items()
        if minor != ours
    )


def for_other_cuda(paths: Iterable[str], *, sites: tuple[str, ...], cuda: str) -> frozenset[str]:
    """Return the files for another CUDA major than this one, where there is one for several.

    A file of the same name without a CUDA is left aside as well. ``cuda`` is the version of
    torch's CUDA, empty where it has none: then none of them is known to be opened.
    """
    every = tuple(paths)
    builds: dict[str, dict[str, str]] = {}
    for path in every:
        found = _CUDA.search(path, _start(path, sites))
        if found is not None:
            plain = path[: found.start()] + path[found.end() :]
            builds.setdefault(plain, {})[path] = found[1]
    several = {plain: one for plain, one in builds.items() if len(set(one.values())) > 1}
    ours = cuda.partition(".")[0]
    tagged = (path for one in several.values() for path, major in one.items() if major != ours)
    return frozenset((*tagged, *(path for path in every if path in several)))


def _start(path: str, sites: tuple[str, ...]) -> int:
    """Return where a path goes on below its site: a venv may well be called `cu128`."""
    return next((len(one) for one in sites if path.startswith(f"{one}/")), 0)
