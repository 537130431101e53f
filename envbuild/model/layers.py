"""What the project around an environment says should be in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from envbuild.model.ownfiles import OwnFiles

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability


class Taken(str, Enum):
    """Where a lock takes a package from; ``other`` is a checkout or a folder, or not known."""

    INDEX = "index"
    ADDRESS = "address"
    OTHER = "other"


UV_LOCK_SCHEMA = 1
"""The schema version of uv.lock that uv reads and writes; its revisions may be any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedVersion:
    """One package as a lock names it.

    ``sha256`` are those of its files; ``index`` is the address it comes from, empty if unknown.
    ``wheels`` pairs the names of its wheels with their bytes, where the lock says them; ``built``
    is True where it also has an sdist, so that what is installed may well have been built.
    ``any_local`` is True for a pin without hashes that names no local version: each fits it.
    """

    name: str
    version: str
    index: str = ""
    sha256: tuple[str, ...] = ()
    taken: Taken = Taken.OTHER
    wheels: tuple[tuple[str, int | None], ...] = ()
    built: bool = False
    any_local: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LockFile:
    """One lock: ``path`` relative to the project, its packages, and the target it is for.

    ``packages`` are what `uv sync` would install on the examined Python and platform with the
    default groups, where that could be told apart; otherwise every package.

    ``fits`` is False where the lock is for another Python or platform. ``requires_python`` is a
    specifier, ``cuda`` is ``12.8``, both empty where the lock names none. ``optional`` are
    packages that an extra or a group which is no default adds, with the flag that asks for it
    (``--extra cu128``). ``hashed`` is False for pins without any hash, which are no whole lock.
    ``glibc`` is the oldest that the target's machines have (``2.35``), empty where none is named.
    """

    path: str
    packages: tuple[LockedVersion, ...]
    target: str = ""
    incomplete: tuple[str, ...] = ()
    fits: bool = True
    requires_python: str = ""
    cuda: str = ""
    optional: tuple[tuple[str, LockedVersion], ...] = ()
    hashed: bool = True
    glibc: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """The project's layers; each None or empty where there is none.

    ``managed`` is False where ``[tool.uv] managed = false``. ``unreadable`` names files that
    could not be read, with the reason; ``unread`` those that are larger than is read.

    ``newer`` pairs locks of a format that is not read yet with that format, ``own`` is what
    envbuild itself wrote.

    ``owned`` is True where the environment is the project's own, which `uv run` keeps at its
    lock. ``hazards`` are settings of uv that let torch come from elsewhere; ``unrouted`` are
    companions of torch that no entry of ``[tool.uv.sources]`` leads to torch's index.
    """

    directory: str
    managed: bool = True
    uv_lock: LockFile | None = None
    pylocks: tuple[LockFile, ...] = ()
    requirements: tuple[LockFile, ...] = ()
    has_pyproject: bool = False
    uses_envbuild: bool = False
    index_strategy: str | None = None
    torch_backend: str | None = None
    unreadable: tuple[tuple[str, str], ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    owned: bool = True
    requires_python: str = ""
    default_target: str = ""
    newer: tuple[tuple[str, str], ...] = ()
    own: OwnFiles = field(default_factory=OwnFiles)
    hazards: tuple[str, ...] = ()
    unrouted: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Aim:
    """The GPUs the environment is meant for, and who says so (the host, the lock, the user)."""

    capabilities: tuple[ComputeCapability, ...]
    source: str
