"""Read an environment as it lies on disk; nothing of it is imported, run or judged."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from envbuild.core.torchversion import parse_torch_version
from envbuild.errors import WorldError
from envbuild.model.installed import UNFINISHED, EnvironmentKind, Installed
from envbuild.world.distributions import SiteReader, read_conda
from envbuild.world.layout import read_layout
from envbuild.world.place import Surroundings, find_place
from envbuild.world.rootfs import Root
from envbuild.world.sites import read_sites

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.installed import Distribution, TorchText
    from envbuild.world.distributions import SiteContent
    from envbuild.world.layout import Layout
    from envbuild.world.sites import SitePath

_SITE = re.compile(r"(?P<prefix>/.*|)/lib(?:64)?/python[^/]*/(?:site|dist)-packages")
_MACHINES = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 22: "s390x", 243: "riscv64", 3: "i686"}
_ELF_HEADER = 20
_MOST_SKIPPED = 200


def read_environment(
    path: str | None,
    *,
    root: str = "/",
    environ: Mapping[str, str],
    around: Surroundings | None = None,
) -> Installed:
    """Read the environment that a path means, or the active or nearest one for None.

    A path names a venv, a conda or a system prefix, an interpreter, a project with a `.venv`, or
    a site folder, absolute inside ``root``. Raises InputError where it means none; what cannot
    be read of an environment is in ``skipped``.
    """
    folder = Root(root)
    where = around or Surroundings(folder=os.getcwd(), own_prefix=sys.prefix)  # noqa: PTH109
    place = find_place(path, root=folder, environ=environ, around=where)
    layout = read_layout(place, root=folder)
    sites = read_sites(layout, root=folder, environ=environ)
    contents = {site: _read_site(site, root=folder) for site in sites.sites}
    torch, torch_skipped = _torch(contents, root=folder)
    skipped = (
        *layout.notes,
        *sites.skipped,
        *(why for content in contents.values() for why in content.skipped),
        *torch_skipped,
    )
    return Installed(
        root=folder.path,
        prefix=layout.prefix,
        executable=layout.executable,
        python=layout.python,
        kind=layout.kind,
        sites=tuple(sites.sites),
        distributions=_distributions(layout, contents, root=folder),
        torch=torch,
        system_site=layout.system_site,
        user_site=sites.user_site,
        machine=_machine(layout, root=folder),
        skipped=_shortened(skipped),
        unfinished=bool(layout.prefix) and folder.is_there(f"{layout.prefix}/{UNFINISHED}"),
        own_sites=layout.sites,
        base_prefix=layout.base_prefix,
        free_threaded=layout.tag.endswith("t"),
        tops=tuple((site, content.tops) for site, content in contents.items()),
        startup=_startup(sites),
        lost_python=layout.lost_python,
    )


def site_prefix(site: str) -> str:
    """Return the folder that a site folder's RECORD files may name files in."""
    match = _SITE.fullmatch(site)
    return (match["prefix"] or "/") if match else site


def _read_site(site: str, *, root: Root) -> SiteContent:
    return SiteReader(site, prefix=site_prefix(site), root=root).read()


def _distributions(
    layout: Layout, contents: Mapping[str, SiteContent], *, root: Root
) -> tuple[Distribution, ...]:
    """Join the sites; add what conda alone knows, which no dist-info describes."""
    found = tuple(one for content in contents.values() for one in content.distributions)
    if layout.kind is not EnvironmentKind.CONDA:
        return found
    names = {one.name for one in found}
    return found + tuple(
        one for one in read_conda(layout.prefix, root=root) if one.name not in names
    )


def _torch(
    contents: Mapping[str, SiteContent], *, root: Root
) -> tuple[TorchText | None, tuple[str, ...]]:
    """Read the version file of the torch that is imported."""
    site = next((site for site, content in contents.items() if "torch" in content.tops), None)
    path = f"{site}/torch/version.py"
    text = root.text(path, limit=1 << 16) if site is not None else None
    if text is None:
        return None, (f"`{path}`: cannot be read",) if site and root.is_there(path) else ()
    try:
        return parse_torch_version(text), ()
    except WorldError as error:
        return None, (f"`{path}`: {error.message}",)


def _machine(layout: Layout, *, root: Root) -> str:
    """Return the processor that the interpreter is built for, by its ELF header."""
    try:
        header = root.head(layout.executable, _ELF_HEADER) if layout.executable else b""
    except OSError:
        header = b""
    if header[:4] == b"\x7fELF" and len(header) == _ELF_HEADER:
        is_big = header[5] == 2  # noqa: PLR2004
        number = int.from_bytes(header[18:20], "big" if is_big else "little")
        return _MACHINES.get(number, f"elf-{number}")
    return os.uname().machine


def _startup(sites: SitePath) -> tuple[tuple[str, str], ...]:
    return tuple(sites.startup[:_MOST_SKIPPED])


def _shortened(skipped: tuple[str, ...]) -> tuple[str, ...]:
    """Keep a hostile environment from filling the report."""
    unique = tuple(dict.fromkeys(skipped))
    if len(unique) <= _MOST_SKIPPED:
        return unique
    return (*unique[:_MOST_SKIPPED], f"{len(unique) - _MOST_SKIPPED:,} more files were skipped")
