"""What the project around an environment says should be in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedVersion:
    """One package as a lock names it.

    ``sha256`` are those of its files; ``index`` is the address it comes from, empty if unknown.
    ``record_sha256`` is not known to a lock, so what lies on disk is compared by RECORD.
    """

    name: str
    version: str
    index: str = ""
    sha256: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LockFile:
    """One lock: ``path`` relative to the project, its packages, and the target it is for.

    ``applies`` is what `uv sync` would install on the examined Python and platform with the
    default groups, where that could be told apart; otherwise every package.
    """

    path: str
    packages: tuple[LockedVersion, ...]
    target: str = ""
    incomplete: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """The project's layers; each None or empty where there is none.

    ``managed`` is False where ``[tool.uv] managed = false``. ``unreadable`` names files that
    could not be read, with the reason.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Aim:
    """The GPUs the environment is meant for, and who says so (the host, the lock, the user)."""

    capabilities: tuple[ComputeCapability, ...]
    source: str
