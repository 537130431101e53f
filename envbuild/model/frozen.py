"""What a base image or interpreter already holds, and a lock leaves as it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class FrozenPackage:
    """A distribution of the base.

    ``version`` is that of its metadata, normalised and with its local part. ``extras`` pairs an
    extra with the requirements that it alone brings (PEP 508).
    """

    name: str
    version: str
    extras: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def pin(self) -> str:
        """The strict pin (``torch==2.8.0a0+5228986c39.nv25.5``)."""
        return f"{self.name}=={self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Frozen:
    """Everything a base holds, sorted by name.

    ``torch`` is what ``torch/version.py`` calls itself, ``cuda`` its CUDA (``12.9``); both None
    in a base without torch. ``python`` is the interpreter inside the base. ``unversioned`` are
    distributions whose version no requirement can name. ``complete`` is False where only those
    extras are known that the lock needed so far.
    """

    packages: tuple[FrozenPackage, ...]
    python: str
    torch: str | None = None
    cuda: str | None = None
    unversioned: tuple[str, ...] = ()
    complete: bool = True

    def find(self, name: str) -> FrozenPackage | None:
        """Return the package of a normalised name, or None."""
        return next((package for package in self.packages if package.name == name), None)
