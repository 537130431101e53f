"""What the lock is made for: a Python, a platform and GPUs, described and never probed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from envbuild.model.cuda import ComputeCapability


class Platform(str, Enum):
    """The platforms that a target can name."""

    LINUX_X86_64 = "linux-x86_64"
    LINUX_AARCH64 = "linux-aarch64"

    @property
    def machine(self) -> str:
        """``platform_machine`` of PEP 508."""
        return self.value.partition("-")[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One GPU by the name the user gave, and its compute capability."""

    name: str
    capability: ComputeCapability


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One ``[tool.envbuild.targets.NAME]`` table.

    ``python`` is ``3.11``. ``gpus`` empty and ``cuda`` None mean the CPU build of torch;
    ``cuda``, ``torch`` and ``driver`` are None where the user left them out. ``base`` is an image
    and ``base_python`` an interpreter, in it or of this machine, that is kept as it is. ``glibc``
    is ``2.35``, the oldest that the machines have; None means that no wheel is too new.
    """

    name: str
    python: str
    platform: Platform
    gpus: tuple[Gpu, ...] = ()
    cuda: SpecifierSet | None = None
    torch: SpecifierSet | None = None
    driver: SpecifierSet | None = None
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    base: str | None = None
    base_python: str | None = None
    glibc: str | None = None

    @property
    def machines(self) -> str:
        """The machines as messages name them: ``Python 3.11 on linux-x86_64``."""
        glibc = f" with glibc {self.glibc}" if self.glibc else ""
        return f"Python {self.python} on {self.platform.value}{glibc}"

    @property
    def is_frozen(self) -> bool:
        """Whether something is kept and locked around."""
        return self.base is not None or self.base_python is not None

    @property
    def is_cpu(self) -> bool:
        """Whether the CPU build of torch is wanted."""
        return not self.gpus and self.cuda is None

    @property
    def python_tag(self) -> str:
        """The interpreter tag of wheels (``cp311``)."""
        return "cp" + self.python.replace(".", "")
