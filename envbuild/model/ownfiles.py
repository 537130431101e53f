"""What envbuild itself wrote around an environment, and how it stands to the project now."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Generated:
    """An install script or a Dockerfile: the lock it was made from, and that lock's hash.

    ``now`` is the hash of what lies at ``lock`` today, None where nothing does. ``untouched`` is
    False where the file was edited after it was written.
    """

    path: str
    lock: str
    made_from: str
    now: str | None
    untouched: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnFiles:
    """Every path is relative to the project.

    ``stale`` pairs a lock with what it differs in from pyproject.toml, in sentences. ``stage`` is
    the folder that a broken-off `envbuild lock` left, empty where there is none; ``half_written``
    is True where it was already at work on the files themselves.
    """

    generated: tuple[Generated, ...] = ()
    stale: tuple[tuple[str, tuple[str, ...]], ...] = ()
    stage: str = ""
    half_written: bool = False
