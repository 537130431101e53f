"""The layout of the catalog's data files, for type checking alone."""

from __future__ import annotations

from typing import TypedDict


class _RequiredRow(TypedDict):
    """What every wheel has: its file name and an index into the page's ``origins``."""

    file: str
    origin: int


class WheelRow(_RequiredRow, total=False):
    """One wheel of a page; a key is absent where nothing is known.

    ``version`` stands only where the normalised version differs from the one in the file name.
    ``requires`` is an index into the page's ``requires``.
    """

    version: str
    sha256: str
    size: int
    requires: int
    python: str
    metadata: str


class PageData(TypedDict):
    """One index page: string tables, then rows by project, newest release first."""

    date: str
    origins: list[str]
    requires: list[list[str]]
    projects: dict[str, list[WheelRow]]


class PageList(TypedDict):
    """The keys of every page, newest first, and PyG's alias pages."""

    date: str
    pages: dict[str, list[str]]
    aliases: dict[str, str]


class _Code(TypedDict):
    """GPU code as capabilities (``12.0``, ``9.0a``)."""

    sass: list[str]
    ptx: list[str]
    source: str


class CodeRow(_Code, total=False):
    """The same with the version of the PTX for each capability, where there is any."""

    isa: dict[str, str]


class CodeData(TypedDict):
    """GPU code by file name, and by ``project==version machine``."""

    files: dict[str, CodeRow]
    releases: dict[str, CodeRow]


class BuildRow(TypedDict):
    """One build of torch; ``cuda`` is ``12.8``, or None for the CPU build."""

    torch: str
    cuda: str | None
    on_pypi: bool
    on_pypi_aarch64: bool
    companions: dict[str, str]
    cxx11_abi: bool | None
    code: dict[str, CodeRow]
    pythons: list[str]
    confidence: str
    source: str


class PairRow(TypedDict):
    """Which torch a release works with."""

    version: str
    torch: str
    source: str


class PairData(TypedDict):
    """Pairings by project, newest first, and by minor release where no more is known."""

    releases: dict[str, list[PairRow]]
    minors: dict[str, dict[str, PairRow]]


class SymbolData(TypedDict):
    """Symbols that torch imports: for each release, library -> index into ``sets``."""

    sets: list[list[str]]
    releases: dict[str, dict[str, int]]


class NcclData(TypedDict):
    """NCCL versions examined and the first that exports each symbol, by CUDA major."""

    versions: dict[str, list[str]]
    first: dict[str, dict[str, str]]


class LibraryRow(TypedDict):
    """Symbols of one library by the release that they came with, or went with."""

    first: dict[str, list[str]]
    gone: dict[str, list[str]]


class PackageRow(TypedDict):
    """One package: what its product is called, its releases, and its libraries by name."""

    product: str
    versions: list[str]
    libraries: dict[str, LibraryRow]


class LibraryData(TypedDict):
    """The packages of NVIDIA whose libraries were read."""

    packages: dict[str, PackageRow]


class SharedData(TypedDict):
    """Paths with different content, by ``a b`` (project names, sorted)."""

    paths: dict[str, list[str]]


class DriverData(TypedDict):
    """The oldest driver by operating system (``linux``) and CUDA tag."""

    systems: dict[str, dict[str, str]]
