"""Find the C and C++ libraries that a host's programs load, and their versions."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from envbuild.core.libctext import (
    glibc_of_bytes,
    glibc_of_confstr,
    glibc_of_name,
    glibcxx_of_chunks,
    glibcxx_of_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.world.rootfs import Root

_MOST_LIBC = 16 << 20
_MOST_STDCXX = 48 << 20
_CHUNK = 1 << 20


def system_folders(machine: str) -> tuple[str, ...]:
    """Return the folders that the loader searches by itself, Debian's and Fedora's."""
    triple = f"{machine}-linux-gnu"
    return (
        f"/lib/{triple}",
        f"/usr/lib/{triple}",
        "/lib64",
        "/usr/lib64",
        "/usr/local/lib64",
        "/lib",
        "/usr/lib",
    )


def read_glibc(machine: str, *, root: Root) -> str | None:
    """Return the version of a root's glibc, None under another C library."""
    if not root.is_image:
        return running_glibc()
    for folder in system_folders(machine):
        path = f"{folder}/libc.so.6"
        try:
            name = posixpath.basename(root.real(path))
            found = glibc_of_name(name) or glibc_of_bytes(root.head(path, _MOST_LIBC))
        except OSError:
            continue
        if found is not None:
            return found
    return None


def running_glibc() -> str | None:
    """Return the version of the glibc of this process, None under another C library."""
    try:
        return glibc_of_confstr(os.confstr("CS_GNU_LIBC_VERSION"))
    except (OSError, ValueError):
        return None


def read_libstdcxx(
    machine: str, prefixes: Iterable[str], *, root: Root
) -> tuple[tuple[str, str], ...]:
    """Return each libstdc++ of the prefixes and of the system, with its newest GLIBCXX."""
    folders = (*(f"{prefix}/lib" for prefix in prefixes), *system_folders(machine))
    found: dict[str, tuple[str, str]] = {}
    for folder in folders:
        path = f"{folder}/libstdc++.so.6"
        try:
            real = root.real(path)
            newest = None if real in found else _newest(path, real, root=root)
        except OSError:
            continue
        if newest is not None:
            found[real] = (path, newest)
    return tuple(found.values())


def _newest(path: str, real: str, *, root: Root) -> str | None:
    """Search the bytes; a library that hides its names still has one of its own."""
    newest = glibcxx_of_chunks(_chunks(path, root=root))
    return newest or glibcxx_of_name(posixpath.basename(real))


def _chunks(path: str, *, root: Root) -> Iterator[bytes]:
    with root.open(path) as file:
        for _ in range(_MOST_STDCXX // _CHUNK):
            chunk = file.read(_CHUNK)
            if not chunk:
                return
            yield chunk
