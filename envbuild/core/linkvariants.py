"""Files of which a package brings one for each torch, and opens the one that fits.

`libtorch_c_dlpack_addon_torch28-cpu.so` and `build/torch29-cxx11-cu128-x86_64-linux/_ops.abi3.so`
are for one torch each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.process import package_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_TORCH = re.compile(r"(?<![a-z])torch[-_]?(\d)\.?(\d{1,2})(?!\d)")
_MINOR = re.compile(r"(\d+)\.(\d+)")


def for_other_torch(paths: Iterable[str], *, sites: tuple[str, ...], torch: str) -> frozenset[str]:
    """Return the files for another torch than this one, of packages that have some for several.

    ``torch`` is its version, empty where there is none: then all of them are.
    """
    packages: dict[str, dict[str, tuple[str, str]]] = {}
    for path in paths:
        site = next((one for one in sites if path.startswith(f"{one}/")), "")
        found = _TORCH.search(path, len(site))
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
