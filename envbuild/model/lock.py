"""The locked set of one target, the same in every file it is written to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.frozen import Frozen
    from envbuild.model.stack import SourceBuild


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """One file that can be installed: a wheel or an sdist.

    ``sha256`` is None only while a lock is incomplete. ``size`` is in bytes.
    ``upload_time`` is RFC 3339 text.
    """

    filename: str
    url: str
    sha256: str | None
    size: int | None = None
    upload_time: str | None = None

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel; otherwise an sdist."""
        return self.filename.endswith(".whl")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pinned:
    """One package of the locked set.

    ``version`` is strict, local version included. ``index`` is the address of the index that
    serves it. ``artifacts`` hold the files that fit the target, wheels before the sdist.
    ``flat`` is uv's word for an index that is one page of links. ``direct`` is True where the
    file is taken by its address: a wheel that was renamed after it was built holds another
    version in its metadata than in its name, and installers refuse it under either.
    ``marker`` is set where only some patch releases of the target's Python need the package.
    """

    name: str
    version: str
    index: str
    artifacts: tuple[Artifact, ...]
    flat: bool = False
    direct: bool = False
    marker: str | None = None

    @property
    def hashed(self) -> bool:
        """Whether every file has a hash."""
        return bool(self.artifacts) and all(a.sha256 is not None for a in self.artifacts)


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetLock:
    """What ``lockfiles/pylock.<target>.toml`` says.

    ``python`` is ``3.11``; ``platform`` and ``glibc`` as in Target; ``capabilities`` of the GPUs
    meant; ``cuda`` is ``12.8``, or None for the CPU build; ``packages`` are sorted by name.
    ``base`` is the image and ``frozen`` what it holds, none of which is among the packages.
    """

    target: str
    python: str
    platform: str
    packages: tuple[Pinned, ...]
    gpus: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    cuda: str | None = None
    builds: tuple[SourceBuild, ...] = ()
    base: str | None = None
    frozen: Frozen | None = None
    glibc: str | None = None

    @property
    def unhashed(self) -> tuple[Pinned, ...]:
        """The packages without a hash; a lock with any is incomplete."""
        return tuple(package for package in self.packages if not package.hashed)

    @property
    def incomplete(self) -> tuple[tuple[str, str], ...]:
        """Name and version of whatever has no hash, sources of what is compiled included."""
        builds = ((one.project, one.version or "") for one in self.builds if not one.hashed)
        return (*((one.name, one.version) for one in self.unhashed), *builds)
