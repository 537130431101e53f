"""What the solver chooses: a torch build and, around it, one build of each coupled package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.model.wheel import PageKind

if TYPE_CHECKING:
    from typing import TypeAlias

    from envbuild.model.cuda import CudaVersion
    from envbuild.model.wheel import WheelFile


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One build of torch: a wheel for the target, and the CUDA it was built with (None: CPU)."""

    torch: WheelFile
    cuda: CudaVersion | None

    @property
    def public(self) -> str:
        """The public version of torch (``2.7.0``)."""
        return self.torch.version.partition("+")[0]

    @property
    def accelerator(self) -> str:
        """``cu128``, or ``cpu``."""
        return self.cuda.tag if self.cuda else "cpu"

    @property
    def label(self) -> str:
        """How messages name it: ``torch 2.7.0+cu128``, ``torch 2.8.0 from PyPI (CUDA 12.8)``."""
        if "+" in self.torch.version:
            return f"torch {self.torch.version}"
        where = "of the base" if self.torch.page.kind is PageKind.BASE else "from PyPI"
        cuda = f"CUDA {self.cuda}" if self.cuda else "CPU"
        return f"torch {self.torch.version} {where} ({cuda})"


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexPin:
    """A coupled package taken as exactly this wheel from an explicit index."""

    wheel: WheelFile
    reason: str = ""

    @property
    def project(self) -> str:
        """Normalised name of the distribution."""
        return self.wheel.project

    @property
    def requirement(self) -> str:
        """The strict pin, local version included."""
        return f"{self.wheel.project}=={self.wheel.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PypiPin:
    """A coupled package that the default index serves, bound by a specifier.

    ``replaces`` is the name in the project's requirements that it stands for when that differs
    (``spconv`` for ``spconv-cu126``).
    """

    project: str
    specifier: str
    replaces: str | None = None
    reason: str = ""

    @property
    def requirement(self) -> str:
        """The requirement as PEP 508 text."""
        return f"{self.project}{self.specifier}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceBuild:
    """A package compiled on install, after torch: a folder, or an sdist of the default index.

    ``url`` and ``sha256`` are those of the sdist, None where they are not known.
    ``requires`` are the build requirements that must be in the environment already,
    ``runtime_requires`` what the built package needs to run (PEP 508), torch left out.
    """

    project: str
    version: str | None = None
    path: str | None = None
    git: str | None = None
    url: str | None = None
    sha256: str | None = None
    requires: tuple[str, ...] = ("setuptools", "wheel", "ninja")
    runtime_requires: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_sdist(self) -> bool:
        """Whether the source is an sdist of an index, and no folder or commit."""
        return self.path is None and self.git is None

    @property
    def hashed(self) -> bool:
        """Whether the source cannot change unseen: it is the project's own, a commit, or hashed."""
        return not self.is_sdist or (self.url is not None and self.sha256 is not None)


if TYPE_CHECKING:
    Pin: TypeAlias = IndexPin | PypiPin | SourceBuild


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why a provider has nothing for a candidate, in one sentence without a final period.

    ``excludes`` names the requirement or the target's key that rules the candidate out.
    """

    project: str
    reason: str
    excludes: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """A candidate with one pin for each coupled package that the project needs.

    ``notes`` are sentences the user must know though they stop nothing. ``dropped`` are projects
    that nothing may install: a base has them, in a version that no requirement can name.
    """

    candidate: Candidate
    pins: tuple[Pin, ...]
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def builds(self) -> tuple[SourceBuild, ...]:
        """The packages of the stack that are compiled on install."""
        return tuple(pin for pin in self.pins if isinstance(pin, SourceBuild))


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejection:
    """A candidate that was not taken, with its reasons."""

    candidate: Candidate
    refusals: tuple[Refusal, ...]
