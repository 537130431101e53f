"""What will be compiled in an environment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Builds:
    """Packages that are built from source; where nothing is built there is no such value.

    ``packages`` come from the lock's builds or from ``[tool.envbuild.build]``, normalised; empty
    where the user says that something is built and not what. ``source`` says who says so.
    """

    packages: tuple[str, ...] = ()
    source: str = ""

    @property
    def named(self) -> str:
        """How messages name what is built."""
        return ", ".join(self.packages) or "CUDA extensions"
