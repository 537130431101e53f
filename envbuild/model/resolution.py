"""What uv is asked to resolve, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolveRequest:
    """A scratch project for uv.

    ``files`` are paths below the scratch folder and their texts. ``beside`` is the folder of
    the user's project, whose other files are linked in where the project builds itself or
    names folders. ``export_extras`` and ``export_groups`` select what the exported set holds
    besides the project's dependencies and default groups. ``upgrade`` ignores what the
    ``uv.lock`` among the files prefers, ``upgrade_packages`` what it prefers of these.
    ``credentials`` are environment variables for uv.
    """

    files: tuple[tuple[str, str], ...]
    beside: Path | None = None
    export_extras: tuple[str, ...] = ()
    export_groups: tuple[str, ...] = ()
    exclude_newer: str | None = None
    offline: bool = False
    upgrade: bool = False
    upgrade_packages: tuple[str, ...] = ()
    credentials: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """The resolved set, as uv.lock and as pylock (PEP 751); scratch addresses still in both.

    ``yanked`` are the releases in it that were withdrawn (``six==1.16.0``), with the reasons
    their authors gave; uv names them when it resolves anew, not when it confirms a lock.
    ``absent_extras`` pairs packages with extras that are asked of them and that they lack.
    """

    uv_lock: str
    pylock: str
    yanked: tuple[tuple[str, str], ...] = ()
    absent_extras: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Unsatisfiable:
    """No set satisfies the request; ``reason`` is uv's explanation."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unavailable:
    """The set could not be resolved without the network."""

    reason: str
