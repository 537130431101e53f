"""Which NVIDIA libraries `import torch` opens by itself, read from the text of torch/__init__.py.

torch opens ``libtorch_global_deps.so`` first. Up to 2.5 it opens the wheels' libraries only
where that fails; 2.6 to 2.9 then always open libnvrtc and libnvJitLink; later ones all of them,
until one is not there, and from 2.14 on those that are. So an old copy on LD_LIBRARY_PATH breaks
one release and not the next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.link.search import Library

_LIBRARY = r"""["'](?P<pattern>lib[\w-]+\.so[^"'\n]*)["']"""
# `"nccl": "libnccl.so"`, `("nccl", "libnccl.so")`, `cuda_libs["nccl"] = "libnccl.so"`,
# `nvidia_path, "nccl", "lib", "libnccl.so"`
_PAIR = re.compile(
    rf"""(?P<later>\w+\[)?["'](?P<folder>\w+)["']\]?\s*[:,=]\s*(?:["']lib["'],\s*)?{_LIBRARY}"""
    r"(?P<optional>,\s*required=False)?"
)
_START = re.compile(r"^def _preload_cuda_\w+\(", re.MULTILINE)
_LOAD = re.compile(r"^def _load_global_deps\(", re.MULTILINE)
_END = re.compile(r"^(?!def _)[a-z@]", re.MULTILINE)
_FAILED = re.compile(r"^ +except OSError", re.MULTILINE)
_CALL_ALL = re.compile(r"\b_preload_cuda_deps\(\s*(?P<optional>required=False)?\s*\)")
_ONLY_FOR = re.compile(r"version\.cuda (not )?in \[([^\]]*)\]")
_IN_MAPS = re.compile(r"""["']([\w/.-]*libcudart\.so[\w.]*)["'] (?:not )?in _maps""")
_IN_MAJOR = re.compile(r"""["']nvidia["'],\s*f["']cu\{""")
_BESIDE = re.compile(r"join\(\s*path,\s*lib_folder")
_FIRST_WITH_MORE = 12  # the major from which on what is added by `cuda_libs[...] =` exists


class Opened(NamedTuple):
    """A library to open: a folder below ``nvidia``, and a pattern of file names.

    torch stops where a ``required`` one is not there.
    """

    folder: str
    pattern: str
    required: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Preload:
    """What torch opens, in order.

    ``always`` are opened after the dependencies of torch were found, if the path of libcudart
    holds ``cudart``; ``on_failure`` where one of them was not found. ``places`` are the folders
    of a site that are looked at, with ``{folder}`` and the CUDA's ``{major}`` to be put in.
    """

    always: tuple[Opened, ...] = ()
    on_failure: tuple[Opened, ...] = ()
    cudart: str = "libcudart.so"
    places: tuple[str, ...] = ("nvidia/{folder}",)


def parse_preload(text: str, *, cuda: str | None) -> Preload:
    """Read what torch opens; ``cuda`` is the CUDA version that the build says it is for."""
    helpers, load = _parts(text)
    failed = _FAILED.search(load)
    head, tail = (load[: failed.start()], load[failed.start() :]) if failed else (load, "")
    every = tuple(_pairs(helpers, cuda))
    call = _CALL_ALL.search(head)
    always = tuple(_pairs(head, cuda))
    if call is not None:
        always = tuple(
            one._replace(required=not call["optional"] and one.required) for one in every
        )
    only = _ONLY_FOR.search(head)
    if only is not None and cuda is not None and f'"{cuda}"' not in only[2].replace("'", '"'):
        always = ()
    maps = _IN_MAPS.search(head)
    return Preload(
        always=always,
        on_failure=every or tuple(_pairs(tail, cuda)),
        cudart=maps[1] if maps else "libcudart.so",
        places=_places(text),
    )


def _parts(text: str) -> tuple[str, str]:
    """Return the functions that open libraries, and the one that calls them."""
    load = _LOAD.search(text)
    if load is None:
        return "", ""
    start = _START.search(text, 0, load.start())
    end = _END.search(text, load.end())
    body = text[load.start() : end.start() if end else len(text)]
    return (text[start.start() : load.start()] if start else ""), body


def _pairs(text: str, cuda: str | None) -> Iterator[Opened]:
    major = int(match[0]) if (match := re.match(r"\d+", cuda or "")) else _FIRST_WITH_MORE
    for pair in _PAIR.finditer(text):
        if not pair["later"] or major >= _FIRST_WITH_MORE:
            yield Opened(pair["folder"], pair["pattern"], required=not pair["optional"])


def _places(text: str) -> tuple[str, ...]:
    in_major = ("nvidia/cu{major}",) if _IN_MAJOR.search(text) else ()
    return ("nvidia/{folder}", *in_major, *(("{folder}",) if _BESIDE.search(text) else ()))


def preload_path(
    library: Library, sites: tuple[str, ...], places: tuple[str, ...], *, one: Opened, major: str
) -> str | None:
    """Return the file torch opens: the first site's first that has one."""
    for site in sites:
        for place in places:
            if not major and "{major}" in place:
                continue
            where = f"{site}/{place.format(folder=one.folder, major=major)}/lib"
            names = sorted(name for name in library.names(where) if fnmatchcase(name, one.pattern))
            if names:
                return f"{where}/{names[0]}"
    return None
