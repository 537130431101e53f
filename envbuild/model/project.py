"""The project as its pyproject.toml describes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from envbuild.model.target import Target


class Layer(str, Enum):
    """Which half of uv owns the environment: ``uv.lock``, or ``uv pip``."""

    PROJECT = "project"
    PIP = "pip"


class Prefer(str, Enum):
    """How a package that has both wheels and a source build is taken."""

    WHEEL = "wheel"
    SOURCE = "source"
    WHEEL_OR_SOURCE = "wheel-or-source"


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildSpec:
    """One entry of ``[tool.envbuild.build]``.

    Exactly one of ``path`` (a folder, relative to the project) and ``git`` (an address with a
    commit) is set for an extension that no index serves; neither for a package of an index.
    ``requires`` are the build requirements (PEP 508); empty means setuptools, wheel and ninja.
    """

    name: str
    path: str | None = None
    git: str | None = None
    prefer: Prefer = Prefer.WHEEL_OR_SOURCE
    requires: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexUrls:
    """Where the wheels come from: the public hosts, or the user's mirrors of them.

    ``pytorch`` None means that torch comes from the default index alone. ``pypi`` None leaves
    the default index to uv. Credentials may stand in these addresses and never leave them.
    """

    pytorch: str | None = "https://download.pytorch.org/whl"
    pyg: str = "https://data.pyg.org/whl"
    flash_attn: str = "https://github.com/Dao-AILab/flash-attention/releases"
    pypi: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredRequirement:
    """One requirement of the project and where it stands (``[project] dependencies`` ...).

    ``group`` is empty for the main dependencies, ``extra:NAME`` for an extra, ``group:NAME``
    for a dependency group. ``line`` counts from 1, or is None where it could not be found.
    """

    requirement: Requirement
    where: str
    group: str = ""
    line: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A project that ``envbuild lock`` can work on.

    ``default_target`` is the target whose set also goes to ``uv.lock``. ``targets`` keeps the
    order of the file. ``name`` and ``requires_python`` are None without a ``[project]`` table.
    ``exclude_newer`` is RFC 3339 text. ``text`` is the pyproject.toml it was read from. ``notes``
    are sentences the user must know though they stop nothing.
    """

    text: str
    layer: Layer
    targets: tuple[Target, ...]
    default_target: str
    name: str | None = None
    requires_python: str | None = None
    requirements: tuple[DeclaredRequirement, ...] = ()
    requirement_files: tuple[str, ...] = ()
    builds: tuple[BuildSpec, ...] = ()
    indexes: IndexUrls = field(default_factory=IndexUrls)
    exclude_newer: str | None = None
    notes: tuple[str, ...] = ()
