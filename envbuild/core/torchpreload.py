"""Which NVIDIA libraries `import torch` opens by itself, read from the text of torch/__init__.py.

torch opens ``libtorch_global_deps.so`` first. Up to 2.5 it opens the wheels' libraries only
where that fails; 2.6 to 2.8 then always open libnvrtc and libnvJitLink; later ones all of them,
until one is not there. So an old copy on LD_LIBRARY_PATH breaks one release and not the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.core.loadersearch import Library

_PAIR = re.compile(r"""["'](\w+)["']\s*[:,]\s*["'](lib[\w-]+\.so[^"'\n]*)["']""")
_CALL = re.compile(r"""_preload_cuda_deps\(\s*["'](\w+)["'],\s*["'](lib[\w-]+\.so[^"'\n]*)["']""")
_CALL_ALL = re.compile(r"_preload_cuda_deps\(\s*\)")
_ONLY_FOR = re.compile(r"version\.cuda (not )?in \[([^\]]*)\]")
_IN_MAPS = re.compile(r"""["']([\w/.-]*libcudart\.so[\w.]*)["'] (?:not )?in _maps""")
_OPTIONAL = "libnvToolsExt"


@dataclass(frozen=True, kw_only=True, slots=True)
class Preload:
    """Libraries as pairs of a folder below ``nvidia`` and a pattern of file names, in order.

    ``always`` are opened after the dependencies of torch were found, if the path of libcudart
    holds ``cudart``; ``on_failure`` where one of them was not found.
    """

    always: tuple[tuple[str, str], ...] = ()
    on_failure: tuple[tuple[str, str], ...] = ()
    cudart: str = "libcudart.so"


def parse_preload(text: str, *, cuda: str | None) -> Preload:
    """Read what torch opens; ``cuda`` is the CUDA version that the build says it is for."""
    calls = tuple(match.groups() for match in _CALL.finditer(text))
    pairs = tuple(match.groups() for match in _PAIR.finditer(text))
    listed = tuple((folder, name) for folder, name in pairs if (folder, name) not in calls)
    always = listed if _CALL_ALL.search(text) else tuple((call[0], call[1]) for call in calls)
    only = _ONLY_FOR.search(text)
    if only is not None and cuda is not None and f'"{cuda}"' not in only[2].replace("'", '"'):
        always = ()
    maps = _IN_MAPS.search(text)
    return Preload(
        always=always,
        on_failure=listed,
        cudart=maps[1] if maps else "libcudart.so",
    )


def preload_path(
    library: Library, sites: tuple[str, ...], *, folder: str, pattern: str, cuda: str | None
) -> str | None:
    """Return the file torch opens for one pair: the first site that has one."""
    major = (cuda or "").partition(".")[0]
    for site in sites:
        cu = (f"nvidia/cu{major}",) if major else ()
        for below in (f"nvidia/{folder}", *cu, folder):
            where = f"{site}/{below}/lib"
            names = sorted(name for name in library.names(where) if fnmatchcase(name, pattern))
            if names:
                return f"{where}/{names[0]}"
    return None


def is_required(pattern: str) -> bool:
    """Return whether torch stops where a library of this pattern is not there."""
    return not pattern.startswith(_OPTIONAL)
