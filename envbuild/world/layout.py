"""Read how an environment is laid out: who made it, for which Python, and its site folders."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.pyvenv import PyvenvConfig, parse_pyvenv
from envbuild.errors import InputError
from envbuild.model.installed import EnvironmentKind
from envbuild.world.place import HINT, SITE_NAMES, refuse_closed

if TYPE_CHECKING:
    from envbuild.world.place import Place
    from envbuild.world.rootfs import Root

_FOLDER = re.compile(r"python(?P<version>3\.\d+)(?P<threads>t?)")
_PATCHLEVEL = re.compile(r'#define\s+PY_VERSION\s+"(3\.\d+\.\d+[\w.+]*)"')
_CONDA_PYTHON = re.compile(r"python-(3\.\d+\.\d+[\w.]*)-[^-]+\.json")
_STANDALONE = re.compile(r"c?python[-@]?(3\.\d+\.\d+)")
_MOST_LINKS = 40
_PYPY = re.compile(r"pypy3?\.?\d*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The frame of an environment; ``tag`` is ``python3.11`` or ``python3.13t``.

    ``sites`` are its own site folders that exist; ``base_sites`` those of the interpreter below
    it, where the environment sees them.
    """

    prefix: str
    executable: str
    kind: EnvironmentKind
    python: str
    tag: str
    base_prefix: str
    system_site: bool
    sites: tuple[str, ...]
    base_sites: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lost_python: str = ""


def read_layout(place: Place, *, root: Root) -> Layout:
    """Read the frame of an environment; raise InputError where it is none of CPython 3."""
    if place.site is not None:
        return _bare(place, root=root)
    text = root.text(f"{place.prefix}/pyvenv.cfg")
    config = parse_pyvenv(text or "")
    tags = _tags(place.prefix, config, root=root)
    kind = _kind(place.prefix, is_venv=text is not None, root=root)
    tag, notes = _tag(place, config, tags, root=root)
    base = _base_prefix(config.home) if kind is EnvironmentKind.VENV else place.prefix
    system_site = kind is EnvironmentKind.VENV and config.system_site
    executable, missing = _executable(place, tag, root=root)
    return Layout(
        prefix=place.prefix,
        executable=executable,
        kind=kind,
        python=_version(place.prefix, base, config, tag, root=root),
        tag=tag,
        base_prefix=base,
        system_site=system_site,
        sites=site_folders(place.prefix, tag, root=root),
        base_sites=site_folders(base, tag, root=root) if system_site and base else (),
        notes=notes + missing,
        lost_python=_lost(executable, root=root) if kind is EnvironmentKind.VENV else "",
    )


def site_folders(prefix: str, tag: str, *, root: Root) -> tuple[str, ...]:
    """Return the site folders of a prefix that exist, in the order of sys.path, each once."""
    found: dict[str, str] = {}
    for path in _site_candidates(prefix, tag):
        if root.is_folder(path):
            found.setdefault(root.real(path), path)
    return tuple(found.values())


def _site_candidates(prefix: str, tag: str) -> tuple[str, ...]:
    """Name the folders of Fedora (lib64), of Debian (dist-packages) and of everybody else.

    The interpreter of `/usr` also looks into `/usr/local`, where pip then installs.
    """
    own = (f"{prefix}/lib/{tag}/site-packages", f"{prefix}/lib64/{tag}/site-packages")
    if prefix != "/usr":
        return own
    return (
        f"/usr/local/lib/{tag}/dist-packages",
        f"/usr/local/lib64/{tag}/site-packages",
        f"/usr/local/lib/{tag}/site-packages",
        "/usr/lib/python3/dist-packages",
        f"/usr/lib/{tag}/dist-packages",
        *own[::-1],
    )


def _bare(place: Place, *, root: Root) -> Layout:
    """Lay out a site folder that no prefix is known for; its parent may tell the version."""
    site = place.site or place.prefix
    folder = posixpath.basename(posixpath.dirname(site))
    match = _FOLDER.fullmatch(folder)
    prefix = posixpath.dirname(posixpath.dirname(posixpath.dirname(site))) if match else site
    return Layout(
        prefix=prefix or "/",
        executable="",
        kind=EnvironmentKind.SYSTEM,
        python=_version(prefix, prefix, PyvenvConfig(), folder, root=root) if match else "",
        tag=folder if match else "",
        base_prefix=prefix,
        system_site=False,
        sites=(site,),
    )


def _kind(prefix: str, *, is_venv: bool, root: Root) -> EnvironmentKind:
    if is_venv:
        return EnvironmentKind.VENV
    is_conda = root.is_folder(f"{prefix}/conda-meta")
    return EnvironmentKind.CONDA if is_conda else EnvironmentKind.SYSTEM


def _tags(prefix: str, config: PyvenvConfig, *, root: Root) -> tuple[str, ...]:
    """Return the ``pythonX.Y`` of a prefix, oldest first; raise InputError for PyPy and none."""
    names = {name for lib in ("lib", "lib64") for name in root.names(f"{prefix}/{lib}")}
    tags = [name for name in names if _FOLDER.fullmatch(name) and _has_site(prefix, name, root)]
    if config.implementation == "pypy" or (not tags and any(map(_PYPY.fullmatch, names))):
        raise InputError(
            f"`{prefix}` is an environment of PyPy, wanted one of CPython: torch has no wheel "
            "for any other Python"
        )
    if not tags:
        refuse_closed(f"{prefix}/lib", root=root)
        raise InputError(f"`{prefix}` has no `lib/python3.Y/site-packages`, wanted one", hint=HINT)
    return tuple(sorted(tags, key=_order))


def _has_site(prefix: str, tag: str, root: Root) -> bool:
    folders = [f"{prefix}/{lib}/{tag}/{site}" for lib in ("lib", "lib64") for site in SITE_NAMES]
    return any(map(root.is_folder, (*folders, *_site_candidates(prefix, tag))))


def _order(tag: str) -> tuple[int, str]:
    minor = re.sub(r"\D", "", tag.partition(".")[2])
    return int(minor or 0), tag


def _tag(
    place: Place, config: PyvenvConfig, tags: tuple[str, ...], *, root: Root
) -> tuple[str, tuple[str, ...]]:
    """Choose the Python that the interpreter named, or pyvenv.cfg, or the newest folder means."""
    for name in _interpreter_names(place, root=root):
        if name in tags:
            return name, ()
    said = ".".join(config.version.split(".")[:2])
    fitting = [tag for tag in tags if said and tag.rstrip("t") == f"python{said}"]
    if fitting:
        return fitting[-1], ()
    note = f"`{place.prefix}/pyvenv.cfg` says Python {said}, found the folder of `{tags[-1]}`"
    return tags[-1], (note,) if said else ()


def _interpreter_names(place: Place, *, root: Root) -> tuple[str, ...]:
    """Return the names along the links from the interpreter: ``python3.13t`` tells the most."""
    path = place.executable or f"{place.prefix}/bin/python3"
    try:
        return (posixpath.basename(root.real(path)), posixpath.basename(path))
    except OSError:
        return (posixpath.basename(path),)


def _base_prefix(home: str) -> str:
    """Return the prefix of the interpreter whose ``bin`` is named; `/bin` is a link to `/usr`."""
    if not home.startswith("/"):
        return ""
    prefix = posixpath.dirname(posixpath.normpath(home))
    return "/usr" if prefix == "/" else prefix


def _executable(place: Place, tag: str, *, root: Root) -> tuple[str, tuple[str, ...]]:
    if place.executable:
        names: tuple[str, ...] = (place.executable,)
    else:
        names = tuple(f"{place.prefix}/bin/{name}" for name in ("python", "python3", tag))
    for path in names:
        if root.is_file(path):
            return path, ()
    there = next((path for path in names if root.is_there(path)), None)
    if there is not None:
        why = "gone" if _lost(there, root=root) else "out of reach"
        return there, (f"`{there}` is a link to an interpreter that is {why}",)
    return "", (f"`{place.prefix}/bin` has no interpreter",)


def _lost(path: str, *, root: Root) -> str:
    """Return where the link of an interpreter leads if certainly nothing lies there, else ''."""
    try:
        root.status(path)
    except (FileNotFoundError, NotADirectoryError):
        return _end_of(path, root=root)
    except OSError:
        return ""
    return ""


def _end_of(path: str, *, root: Root) -> str:
    """Follow the links from an interpreter as far as they lead."""
    for _ in range(_MOST_LINKS):
        try:
            target = os.readlink(root.host_path(path, follow=False))  # noqa: PTH115
        except OSError:
            break
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return path


def _version(prefix: str, base: str, config: PyvenvConfig, tag: str, *, root: Root) -> str:
    """Return the full version of a Python where a file of it says one, else what ``tag`` says."""
    short = tag.removeprefix("python").rstrip("t")
    said = (
        config.version,
        *(match[1] for name in root.names(f"{prefix}/conda-meta") if (match := _conda(name))),
        _patchlevel(base, tag, root=root),
        *(match[1] for part in base.split("/") if (match := _STANDALONE.match(part))),
    )
    full = (version for version in said if version.startswith(f"{short}."))
    return next(full, short)


def _conda(name: str) -> re.Match[str] | None:
    return _CONDA_PYTHON.fullmatch(name)


def _patchlevel(prefix: str, tag: str, *, root: Root) -> str:
    match = _PATCHLEVEL.search(root.text(f"{prefix}/include/{tag}/patchlevel.h") or "")
    return match[1] if match else ""
