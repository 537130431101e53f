"""What the dynamic loader would find: missing libraries and symbols, and the GPU code within."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.facts import DeviceCode


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingLibrary:
    """A DT_NEEDED that nothing satisfies. ``path`` needs ``library``.

    ``optional`` is True for libraries that no wheel is meant to bring (libavutil, libmpi ...)
    and for files that are opened only on demand.
    """

    path: str
    library: str
    optional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StoppedModule:
    """What Python loads of a package, and cannot for want of libraries of the system.

    ``missing`` says what needs which. ``stops`` are the imports that then surely fail,
    ``may_stop`` those that do under a condition. ``part`` is the module's own dotted name where
    it is a public one that the package does without until it is imported, else empty.
    """

    path: str
    missing: tuple[MissingLibrary, ...]
    stops: tuple[str, ...] = ()
    may_stop: tuple[str, ...] = ()
    part: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingSymbol:
    """An undefined symbol of ``path`` that no library in its scope defines.

    ``name`` is the mangled name; ``version`` its symbol version. ``provider`` is the path of
    the library that should define it, where the name tells (``ncclCommSplit`` -> libnccl.so.2)
    and it is loaded; None otherwise.
    """

    path: str
    name: str
    version: str | None = None
    provider: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingVersion:
    """A symbol version (``GLIBC_2.32``, ``GLIBCXX_3.4.32``) that the library found lacks."""

    path: str
    library: str
    version: str
    found: str
    newest: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedLibrary:
    """Which file a SONAME resolves to, and how it was found.

    ``how`` is one of rpath, runpath, ld_library_path, preload, cache, default, loaded. ``path``
    is as the loader builds it, ``real`` the same file's with no link left; empty where unknown.
    """

    soname: str
    path: str
    how: str
    needed_by: str
    real: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportsOf:
    """Torch symbols that a shared object outside torch imports.

    ``abi`` is ``old`` or ``new`` for the C++11 string ABI of its c10/at/torch names, None where
    no name tells. ``stable`` is True where it uses torch's stable C interface alone.
    """

    path: str
    symbols: tuple[str, ...]
    abi: str | None = None
    stable: bool = False
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokenBinary:
    """A shared object that could not be read, or was not, and why."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Links:
    """The loader's view of an environment; every path is absolute inside the image.

    ``unread`` are objects that may well be in order: they hold more than envbuild reads. Nothing
    is said about their symbols.
    """

    libraries: tuple[MissingLibrary, ...] = ()
    symbols: tuple[MissingSymbol, ...] = ()
    versions: tuple[MissingVersion, ...] = ()
    loaded: tuple[LoadedLibrary, ...] = ()
    torch_users: tuple[ImportsOf, ...] = ()
    broken: tuple[BrokenBinary, ...] = ()
    unread: tuple[BrokenBinary, ...] = ()
    examined: int = 0
    stopped: tuple[StoppedModule, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BinaryCode:
    """The GPU code of one shared object; ``path`` is absolute inside the image."""

    path: str
    code: DeviceCode


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceCodes:
    """The GPU code of every shared object that has any; ``unread`` are those it is not known of."""

    binaries: tuple[BinaryCode, ...] = ()
    unread: tuple[BrokenBinary, ...] = ()
