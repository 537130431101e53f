"""Wheels on an index page, as the page and its metadata describe them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class PageKind(str, Enum):
    """Who publishes an index page; ``base`` stands for what a frozen base already holds."""

    PYTORCH = "pytorch"
    PYG = "pyg"
    FLASH_ATTN = "flash-attn"
    PYPI = "pypi"
    BASE = "base"


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexPage:
    """One index as uv knows it: its name, address and format.

    ``key`` names the page independently of the host it is taken from: ``cu128`` for PyTorch,
    ``2.7.0+cu128`` for PyG, ``2.8.3`` for the flash-attn release, empty for PyPI. On the page of
    a base it is the accelerator where its torch is a build of PyTorch's own, and empty otherwise.
    ``flat`` is uv's ``format = "flat"`` (one page of links), otherwise PEP 503/691.
    """

    kind: PageKind
    key: str
    name: str
    url: str
    flat: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelFile:
    """One wheel of an index page.

    ``version`` is the version of the file name, normalised. ``sha256`` and ``size`` (bytes) are
    None where the index publishes none. ``requires_dist`` is None where it is not known, which
    is not the same as empty. ``metadata_sha256`` is set where the index serves the core
    metadata beside the wheel (PEP 658). ``origin`` says where the fact comes from.
    """

    project: str
    version: str
    filename: str
    url: str
    page: IndexPage
    sha256: str | None = None
    size: int | None = None
    requires_python: str | None = None
    requires_dist: tuple[str, ...] | None = None
    metadata_sha256: str | None = None
    yanked: bool = False
    origin: str = ""
