"""Work out the folders of sys.path that can hold packages, reading ``.pth`` files as text."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envbuild.core.pthfile import parse_pth
from envbuild.model.installed import EnvironmentKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.world.layout import Layout
    from envbuild.world.rootfs import Root

_MOST_SITES = 500
_MOST_PTH_FILES = 1_000


@dataclass(kw_only=True, slots=True)
class SitePath:
    """The folders found so far, in order, each once however it is spelled."""

    root: Root
    sites: list[str] = field(default_factory=list)
    startup: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    user_site: str | None = None
    _known: set[str] = field(default_factory=set)

    def add(self, path: str) -> bool:
        """Append a folder that exists and is new; return whether it was."""
        if not self.root.is_folder(path) or len(self.sites) >= _MOST_SITES:
            return False
        try:
            real = self.root.real(path)
        except OSError:
            return False
        is_new = real not in self._known
        if is_new:
            self._known.add(real)
            self.sites.append(path)
        return is_new

    def add_site(self, path: str) -> None:
        """Append a site folder, and what its ``.pth`` files add, as the interpreter does."""
        if not self.add(path):
            return
        names = [name for name in self.root.names(path) if name.endswith(".pth")]
        if len(names) > _MOST_PTH_FILES:
            self.skipped.append(f"`{path}`: has more than {_MOST_PTH_FILES:,} `.pth` files")
        for name in names[:_MOST_PTH_FILES]:
            self._add_pth(path, name)

    def _add_pth(self, site: str, name: str) -> None:
        text = self.root.text(f"{site}/{name}")
        if text is None:
            self.skipped.append(f"`{site}/{name}`: cannot be read")
            return
        file = parse_pth(text)
        self.startup.extend((f"{site}/{name}", line) for line in file.imports)
        for path in file.paths:
            self.add(posixpath.normpath(posixpath.join(site, path)))


def read_sites(layout: Layout, *, root: Root, environ: Mapping[str, str]) -> SitePath:
    """Return PYTHONPATH, the environment's site folders and the user's, in sys.path's order."""
    found = SitePath(root=root)
    for path in environ.get("PYTHONPATH", "").split(":"):
        if path.startswith("/"):
            found.add(posixpath.normpath(path))
    user = user_site(layout, root=root, environ=environ)
    in_venv = layout.kind is EnvironmentKind.VENV
    before, after = (layout.sites, layout.base_sites) if in_venv else ((), layout.sites)
    for path in before:
        found.add_site(path)
    if user is not None:
        found.user_site = user
        found.add_site(user)
    for path in after:
        found.add_site(path)
    return found


def user_site(layout: Layout, *, root: Root, environ: Mapping[str, str]) -> str | None:
    """Return the user's site folder where the interpreter adds it and it exists."""
    closed = layout.kind is EnvironmentKind.VENV and not layout.system_site
    if closed or environ.get("PYTHONNOUSERSITE") or not layout.executable:
        return None
    home = environ.get("HOME") or ("/root" if root.is_image else "")
    base = environ.get("PYTHONUSERBASE") or (f"{home}/.local" if home else "")
    path = f"{base}/lib/{layout.tag}/site-packages"
    return path if base.startswith("/") and root.is_folder(path) else None
