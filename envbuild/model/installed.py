"""An environment as it lies on disk: what its metadata says, and nothing that was run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

UNFINISHED = ".envbuild-sync"
"""The file that lies in an environment while `envbuild sync` is at work in it."""


class EnvironmentKind(str, Enum):
    """Who made an environment."""

    VENV = "venv"
    CONDA = "conda"
    SYSTEM = "system"


class RecordEntry(NamedTuple):
    """One line of a RECORD: a path relative to the site folder, POSIX, with no ``..`` left.

    What lies outside of the site folder (``bin/torchrun``) has an absolute path. ``sha256`` is
    lower-case hex, None where the line has none (RECORD itself, ``.pyc``). ``size`` is in bytes.
    An environment has 10^4 to 10^5 of them: a tuple is made in a third of a dataclass's time.
    """

    path: str
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """One installed distribution.

    ``name`` is normalised. ``site`` is the folder that holds it, ``info`` the name of its
    metadata folder there. ``record`` is None where there is no RECORD (eggs, conda, Debian).
    ``tags`` are those of its WHEEL file. ``origin`` is the address of direct_url.json, without
    credentials, and ``origin_kind`` says what that is: ``archive``, ``folder`` or ``checkout``.
    ``origin_sha256`` is the archive's, where the installer noted it: pip does, uv does not.
    ``editable`` is True where that is a folder whose files are imported in place.
    What conda installed and no dist-info describes has its ``conda-meta`` folder as ``site``.
    """

    name: str
    version: str
    site: str
    info: str
    requires: tuple[str, ...] = ()
    record: tuple[RecordEntry, ...] | None = None
    tags: tuple[str, ...] = ()
    installer: str = ""
    origin: str | None = None
    origin_kind: str = ""
    origin_sha256: str = ""
    requested: bool = False
    editable: bool = False

    @property
    def label(self) -> str:
        """How messages name it: ``torch 2.7.0+cu128``."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchText:
    """What ``torch/version.py`` says, read as text.

    ``version`` holds the local part that PyPI's metadata lacks (``2.11.0+cu130``); ``cuda`` is
    ``13.0``, or None for a CPU build; ``hip`` is set by a ROCm build alone.
    """

    version: str
    cuda: str | None
    git: str | None = None
    hip: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """An environment.

    ``root`` is the image's root (``/`` for the machine itself); every other path is absolute
    inside it. ``python`` is the interpreter's version as far as it can be read (``3.11.7``,
    ``3.11``), empty for a bare site folder. ``executable`` is the interpreter that repairs are
    bound to, empty where there is none; ``lost_python`` is where its link leads when nothing lies
    there. ``sites`` are the folders of sys.path that can hold
    packages, in its order: PYTHONPATH, site-packages, and what ``.pth`` files add.
    ``own_sites`` are those of the environment itself. ``user_site`` is set only where the
    interpreter would add it and it exists. ``tops`` pairs each site with the names that can be
    imported from it; ``startup`` pairs a ``.pth`` file with each line of code in it.
    ``distributions`` come in the order of the sites, the newest of one name first.
    ``unfinished`` is True where `envbuild sync` is at work, or was broken off.
    """

    root: str
    prefix: str
    executable: str
    python: str
    kind: EnvironmentKind
    sites: tuple[str, ...]
    distributions: tuple[Distribution, ...]
    torch: TorchText | None = None
    system_site: bool = False
    user_site: str | None = None
    machine: str = "x86_64"
    unfinished: bool = False
    skipped: tuple[str, ...] = ()
    own_sites: tuple[str, ...] = ()
    base_prefix: str = ""
    free_threaded: bool = False
    tops: tuple[tuple[str, tuple[str, ...]], ...] = ()
    startup: tuple[tuple[str, str], ...] = ()
    lost_python: str = ""

    def site_of(self, top: str) -> str | None:
        """Return the first site that a top-level name (``torch``) is imported from, or None."""
        return next((site for site, names in self.tops if top in names), None)

    def find(self, name: str) -> Distribution | None:
        """Return the distribution of a normalised name that is imported, or None."""
        return next((one for one in self.distributions if one.name == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class OnDisk:
    """What lies at a path: its size in bytes, and its sha256 where it was computed."""

    size: int
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedPath:
    """A path that two or more distributions record, as a `RecordEntry` writes it.

    ``owners`` pairs each owner's label with the entry of its RECORD. ``disk`` is None where
    nothing lies there. ``winner`` is the label whose entry fits the bytes on disk, None where
    none does or all entries are the same file.
    """

    path: str
    owners: tuple[tuple[str, RecordEntry], ...]
    disk: OnDisk | None
    winner: str | None = None

    @property
    def identical(self) -> bool:
        """Whether every owner records the same content."""
        hashes = {entry.sha256 for _, entry in self.owners}
        return len(hashes) == 1 and None not in hashes


@dataclass(frozen=True, kw_only=True, slots=True)
class Ownership:
    """Which files the distributions share, and which of their files are gone or cut short.

    ``missing`` and ``resized`` map a distribution's label to paths of its RECORD; compiled
    Python files (``.pyc``) do not count, and a path that another owner's bytes lie at is in
    ``shared`` alone. ``whole`` are the absolute paths of the shared objects among ``resized`` that
    are all there by what their own heads say, ``cut`` those of the Python modules that are shorter
    than recorded and hold nothing or break off. ``unowned`` are the absolute paths of shared
    objects no RECORD names. ``owners`` pairs the absolute path of each other shared object with
    the label of the distribution whose bytes lie there, the first that records it where none fits.
    """

    shared: tuple[SharedPath, ...] = ()
    missing: tuple[tuple[str, tuple[str, ...]], ...] = ()
    resized: tuple[tuple[str, tuple[str, ...]], ...] = ()
    whole: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    unowned: tuple[str, ...] = ()
    owners: tuple[tuple[str, str], ...] = ()
