"""Read what the binaries of an environment tell: what would load, and their GPU code."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from envbuild.core.elf.fatbin import GpuCodeError, device_code
from envbuild.core.elf.pieces import UnreadElfError
from envbuild.core.elf.sharedobject import ElfError
from envbuild.core.link.ldcache import LIMIT, LdCacheError, parse_ld_cache
from envbuild.core.link.process import GLOBAL_DEPS, Program
from envbuild.core.link.report import read_links as links_of
from envbuild.core.link.roots import tag_of
from envbuild.core.link.search import SearchPath
from envbuild.core.link.stoppedmodules import Sources
from envbuild.model.links import BinaryCode, BrokenBinary, DeviceCodes
from envbuild.world.objectfiles import ObjectFiles
from envbuild.world.sharedobjects import shared_objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.installed import Installed
    from envbuild.model.links import Links
    from envbuild.world.rootfs import Root

_CACHE = "/etc/ld.so.cache"
_PRELOAD = "/etc/ld.so.preload"


def read_links(
    installed: Installed,
    *,
    root: Root,
    environment: Mapping[str, str],
    paths: tuple[str, ...] | None = None,
) -> Links:
    """Return the loader's view of an environment, with no line of it run.

    ``environment`` holds the variables it would be started with. ``paths`` are its shared
    objects where they are known.
    """
    if paths is None:
        paths = tuple(sorted(shared_objects(installed, root=root)))
    search = SearchPath(
        machine=installed.machine,
        ld_library_path=_folders(environment.get("LD_LIBRARY_PATH", "")),
        cache=read_ld_cache(root, machine=installed.machine),
    )
    with closing(ObjectFiles(root)) as library:
        return links_of(
            paths,
            _program(installed, root, environment),
            library=library,
            search=search,
            tag=tag_of(installed.python, free_threaded=installed.free_threaded),
            sources=Sources(text=root.text, tops=partial(tops_beside, installed)),
        )


def tops_beside(installed: Installed, path: str) -> tuple[str, ...]:
    """Return the names that can be imported from the distribution that records a path."""
    for one in installed.distributions:
        start = f"{one.site}/"
        if one.record is None or not path.startswith(start):
            continue
        wanted = path[len(start) :]
        if any(entry.path == wanted for entry in one.record):
            firsts = {entry.path.partition("/")[0].partition(".")[0] for entry in one.record}
            return tuple(sorted(name for name in firsts if name.isidentifier()))
    return ()


def read_device_codes(
    installed: Installed, *, root: Root, paths: tuple[str, ...] | None = None
) -> DeviceCodes:
    """Return the GPU code of every shared object that has any; broken files are left out."""
    if paths is None:
        paths = tuple(sorted(shared_objects(installed, root=root)))
    found = []
    unread = []
    seen: set[str] = set()
    with closing(ObjectFiles(root)) as library:
        for path in paths:
            real = library.real(path)
            data = library.data(path) if real not in seen else None
            seen.add(real)
            try:
                code = device_code(data) if data is not None else None
            except (GpuCodeError, UnreadElfError) as error:
                unread.append(BrokenBinary(path=path, reason=str(error)))
                continue
            except ElfError:
                continue  # `read_links` says so, if it matters
            if code is not None:
                found.append(BinaryCode(path=path, code=code))
    return DeviceCodes(binaries=tuple(found), unread=tuple(unread))


def read_ld_cache(root: Root, *, machine: str) -> dict[str, tuple[str, ...]]:
    """Return the loader's cache; empty where there is none that can be read."""
    try:
        return parse_ld_cache(root.read(_CACHE, limit=LIMIT), machine=machine)
    except (OSError, LdCacheError):
        return {}


def _program(installed: Installed, root: Root, environment: Mapping[str, str]) -> Program:
    site = next((site for site in installed.sites if root.is_file(f"{site}/{GLOBAL_DEPS}")), None)
    text = root.text(f"{site}/torch/__init__.py") if site is not None else None
    named = f"{environment.get('LD_PRELOAD', '')} {root.text(_PRELOAD) or ''}"
    return Program(
        executable=installed.executable,
        sites=installed.sites,
        ld_preload=tuple(named.replace(":", " ").split()),
        torch_text=text or "",
        torch_cuda=installed.torch.cuda if installed.torch is not None else None,
        torch_version=installed.torch.version if installed.torch is not None else "",
    )


def _folders(text: str) -> tuple[str, ...]:
    """Return the absolute folders of LD_LIBRARY_PATH, which separates by ``:`` or ``;``."""
    return tuple(part for part in text.replace(";", ":").split(":") if part.startswith("/"))
