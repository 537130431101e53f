"""Find the shared objects of an environment by walking its site folders."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.installed import Installed
    from envbuild.world.rootfs import Root

_NAME = re.compile(r".*\.so(?:\.[\w.]+)?")
_NO_LIBRARY = (".py", ".pyi", ".txt", ".json", ".h", ".hash", ".sha256", ".md5", ".log", ".a")
_MOST_DEPTH = 24
_DEPTH_OF_SOURCES = 5
_MOST_ENTRIES = 2_000_000
_MOST_SOURCES = 20_000
_NO_PACKAGES = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})


def is_shared_object(path: str) -> bool:
    """Return whether a path is named as a shared object (``x.so``, ``libnccl.so.2``)."""
    name = path[path.rfind("/") + 1 :]
    return ".so" in name and bool(_NAME.fullmatch(name)) and not name.endswith(_NO_LIBRARY)


def shared_objects(installed: Installed, *, root: Root) -> set[str]:
    """Return the absolute paths of the shared objects in the sites, and in editable sources.

    Folders of sources, which PYTHONPATH or a ``.pth`` file names, may hold anything: only their
    upper part is searched, and no environment inside them.
    """
    packages = {*installed.own_sites, *installed.sites} - _sources(installed)
    found: set[str] = set()
    for site in packages:
        found.update(_walk(site, root=root, depth=_MOST_DEPTH, budget=_MOST_ENTRIES))
    for folder in _sources(installed) | _editable(installed):
        found.update(_walk(folder, root=root, depth=_DEPTH_OF_SOURCES, budget=_MOST_SOURCES))
    return found


def _sources(installed: Installed) -> set[str]:
    holders = {one.site for one in installed.distributions if one.record is not None}
    return {
        site
        for site in installed.sites
        if site not in holders and not site.endswith(("site-packages", "dist-packages"))
    }


def _editable(installed: Installed) -> set[str]:
    addresses = (urlsplit(one.origin or "") for one in installed.distributions if one.editable)
    return {unquote(one.path) for one in addresses if one.scheme == "file" and len(one.path) > 1}


def _walk(top: str, *, root: Root, depth: int, budget: int) -> Iterator[str]:
    """Yield shared objects below a folder, breadth first; links to folders are not followed."""
    level = [top]
    for _ in range(depth):
        below: list[str] = []
        for folder in level:
            try:
                entries = root.scan(folder)
            except OSError:
                continue
            budget -= len(entries)
            if folder != top and any(entry.name == "pyvenv.cfg" for entry in entries):
                continue
            for entry in entries:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    if name not in _NO_PACKAGES and name[0] != ".":
                        below.append(f"{folder}/{name}")
                elif ".so" in name and is_shared_object(name):
                    yield f"{folder}/{name}"
        if budget < 0:
            return
        level = below
