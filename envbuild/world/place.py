"""Find the environment that is meant: by a folder, an interpreter, a site folder, or nothing."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from envbuild.world.rootfs import Root

SITE_NAMES = ("site-packages", "dist-packages")
_INTERPRETER = re.compile(r"(?:python|pypy)[\d.]*t?")
_SITE_PREFIX = re.compile(r"(?P<prefix>.*)/lib(?:64)?/(?P<tag>(?:python|pypy)[\d.]+t?)/[^/]+")
_IMAGE_PREFIXES = ("/.venv", "/app/.venv", "/opt/venv", "/venv", "/opt/conda", "/usr/local", "/usr")
HINT = "name a venv's folder or its interpreter: `envbuild doctor --python .venv`"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where an environment is; ``executable`` is empty where no interpreter was named.

    ``site`` is set for a lone site folder that belongs to no interpreter's prefix.
    """

    prefix: str
    executable: str = ""
    site: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """Where envbuild runs: the current folder, and the prefix of its own interpreter."""

    folder: str
    own_prefix: str


def find_place(
    path: str | None, *, root: Root, environ: Mapping[str, str], around: Surroundings
) -> Place:
    """Find an environment; raise InputError where the path means none."""
    if path is None:
        return _default(root=root, environ=environ, around=around)
    if not root.is_image:
        path = _on_path(path, root=root, environ=environ) or path
        path = posixpath.normpath(posixpath.join(around.folder, posixpath.expanduser(path)))
    path = root.inside(path)
    if root.is_folder(path):
        return _of_folder(path, root=root)
    if _INTERPRETER.fullmatch(posixpath.basename(path)) and root.is_there(path):
        return _of_interpreter(path, root=root)
    raise InputError(
        f"found {_what(path, root=root)} at `{path}`, wanted an environment's folder or its"
        " interpreter",
        hint=HINT,
    )


def _on_path(name: str, *, root: Root, environ: Mapping[str, str]) -> str | None:
    """Return the interpreter that a shell would start for a bare name (``python3.11``)."""
    if not _INTERPRETER.fullmatch(name):
        return None
    paths = (f"{folder}/{name}" for folder in environ.get("PATH", "").split(":") if folder)
    return next((path for path in paths if root.is_file(path)), None)


def is_prefix(path: str, *, root: Root) -> bool:
    """Return whether a folder is the prefix of a venv, of conda, or of an interpreter."""
    if root.is_file(f"{path}/pyvenv.cfg") or root.is_folder(f"{path}/conda-meta"):
        return True
    return any(_python_folders(path, root=root))


def _python_folders(prefix: str, *, root: Root) -> Iterator[str]:
    for lib in ("lib", "lib64"):
        for name in root.names(f"{prefix}/{lib}"):
            folder = f"{prefix}/{lib}/{name}"
            if _INTERPRETER.fullmatch(name) and any(
                root.is_folder(f"{folder}/{site}") for site in SITE_NAMES
            ):
                yield folder


def _of_folder(path: str, *, root: Root) -> Place:
    if posixpath.basename(path) in SITE_NAMES:
        return _of_site(path, root=root)
    if is_prefix(path, root=root):
        return Place(prefix=path)
    if posixpath.basename(path) == "bin" and is_prefix(posixpath.dirname(path), root=root):
        return Place(prefix=posixpath.dirname(path))
    if is_prefix(f"{path}/.venv", root=root):
        return Place(prefix=f"{path}/.venv")
    if any(name.endswith(".dist-info") for name in root.names(path)):
        return Place(prefix=path, site=path)
    refuse_closed(path, root=root)
    raise InputError(
        f"found no environment in `{path}`, wanted `pyvenv.cfg`, `conda-meta` or "
        "`lib/pythonX.Y/site-packages` in it",
        hint=HINT,
    )


def refuse_closed(folder: str, *, root: Root) -> None:
    """Raise InputError for a folder that may not be read: what is in it is not known."""
    try:
        root.scan(folder)
    except PermissionError as error:
        raise InputError(
            f"the folder `{folder}` may not be read, wanted one that this user can read",
            hint="run it as the owner of the environment",
        ) from error
    except OSError:
        return


def _what(path: str, *, root: Root) -> str:
    if not root.is_there(path):
        return "nothing"
    try:
        root.status(path)
    except PermissionError:
        return "a link that this user may not follow"
    except OSError:
        return "a link that leads nowhere"
    return "a file"


def _of_site(path: str, *, root: Root) -> Place:
    match = _SITE_PREFIX.fullmatch(path)
    if match is not None:
        for prefix in (match["prefix"], posixpath.dirname(match["prefix"])):
            if root.is_file(f"{prefix}/pyvenv.cfg") or root.is_folder(f"{prefix}/conda-meta"):
                return Place(prefix=prefix)
    return Place(prefix=path, site=path)


def _of_interpreter(path: str, *, root: Root) -> Place:
    """Look for pyvenv.cfg beside the link that was named, as the interpreter does."""
    folder = posixpath.dirname(path)
    for prefix in (folder, posixpath.dirname(folder)):
        if root.is_file(f"{prefix}/pyvenv.cfg"):
            return Place(prefix=prefix, executable=path)
    try:
        real = root.real(path)
    except OSError:
        real = path
    prefix = _prefix_of_binary(real)
    if not is_prefix(prefix, root=root):
        raise InputError(
            f"the interpreter `{path}` has no `lib/pythonX.Y` in `{prefix}`, wanted a Python "
            "with its library",
            hint=HINT,
        )
    return Place(prefix=prefix, executable=path)


def _prefix_of_binary(path: str) -> str:
    prefix = posixpath.dirname(posixpath.dirname(path))
    return "/usr" if prefix == "/" else prefix


def _default(*, root: Root, environ: Mapping[str, str], around: Surroundings) -> Place:
    candidates = (
        _of_image(environ)
        if root.is_image
        else _of_shell(root=root, environ=environ, around=around)
    )
    fitting: Iterable[str] = (one for one in candidates if is_prefix(one, root=root))
    if root.is_image:
        fitting = sorted(fitting, key=lambda one: not _has_interpreter(one, root=root))
    for prefix in fitting:
        return Place(prefix=prefix)
    raise InputError(
        "found no environment: no active venv, no `.venv` here or above, no active conda "
        "environment",
        hint=HINT,
    )


def _has_interpreter(prefix: str, *, root: Root) -> bool:
    """Whether a prefix is more than a folder of packages, as Debian's `/usr/local` is one."""
    return any(map(_INTERPRETER.fullmatch, root.names(f"{prefix}/bin")))


def _of_image(environ: Mapping[str, str]) -> Iterator[str]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(variable):
            yield environ[variable]
    yield from _IMAGE_PREFIXES


def _of_shell(*, root: Root, environ: Mapping[str, str], around: Surroundings) -> Iterator[str]:
    """Yield what is active or near; the environment of envbuild itself only where it is near.

    NOTE: `uv run --with envbuild` and the like set VIRTUAL_ENV to a passing environment.
    """
    own = root.real(around.own_prefix)
    active = environ.get("VIRTUAL_ENV", "")
    if active and root.real(active) != own:
        yield active
    folder = around.folder
    while True:
        yield f"{folder.rstrip('/')}/.venv"
        if folder == posixpath.dirname(folder):
            break
        folder = posixpath.dirname(folder)
    conda = environ.get("CONDA_PREFIX", "")
    if conda and root.real(conda) != own:
        yield conda
