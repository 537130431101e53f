"""What is done to install a lock, as data: one plan, rendered as a script, a Dockerfile or run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    from envbuild.model.stack import SourceBuild


@dataclass(frozen=True, kw_only=True, slots=True)
class Variable:
    """An environment variable of the whole install, with the reason for its value.

    ``value`` may be empty where the machine gives it (MAX_JOBS from memory and cores).
    """

    name: str
    value: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What must be there before anything is changed.

    ``disk_bytes`` is for the environment, ``cuda_major`` for an nvcc that a build needs (None:
    nothing is compiled for a GPU). ``oldest_nvcc`` is the least CUDA version, ``12.8``, that
    knows every architecture meant. ``hosts`` are those that files come from.
    """

    python: str
    uv: str
    disk_bytes: int
    hosts: tuple[str, ...] = ()
    cuda_major: int | None = None
    oldest_nvcc: str | None = None
    compiler: bool = False
    git: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class MakeEnvironment:
    """Make the virtual environment, or keep one of the right Python."""

    python: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class InstallLock:
    """Install exactly the lock, every file checked against its hash.

    ``pylock`` is relative to the project. In the layer "project" ``uv sync --locked`` does it
    (``by_project``), so that the next `uv run` changes nothing; ``options`` choose the target's
    extras and groups there.
    """

    pylock: str
    by_project: bool
    reason: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Compile:
    """Compile one package against the torch that is installed, without isolation.

    ``variables`` hold for this build alone. ``capabilities`` are those that its shared objects
    must hold afterwards.
    """

    build: SourceBuild
    variables: tuple[Variable, ...]
    capabilities: tuple[str, ...]
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfCheck:
    """Look at what lies there, without importing it."""

    reason: str


if TYPE_CHECKING:
    Step: TypeAlias = MakeEnvironment | InstallLock | Compile | SelfCheck


@dataclass(frozen=True, kw_only=True, slots=True)
class InstallPlan:
    """How a target is installed.

    ``lock`` is the path of its pylock relative to the project, ``lock_sha256`` of that file's
    bytes. ``base`` is an image or interpreter whose torch is kept, None otherwise. ``glibc`` is
    the oldest that the machine may have, None for any.
    """

    target: str
    lock: str
    lock_sha256: str
    python: str
    platform: str
    needs: Needs
    variables: tuple[Variable, ...]
    steps: tuple[Step, ...]
    base: str | None = None
    glibc: str | None = None
