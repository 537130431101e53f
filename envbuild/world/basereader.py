"""Reads the base that a target is locked around: an interpreter here, or an unpacked image."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.installed import Installed


class DiskBases:
    """See `envbuild.ports.BaseReader`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._path = {"PATH": environ.get("PATH", "")}

    def installed(self, path: str | None, *, root: str | None = None) -> Installed:
        """Read an environment; no variable of this process counts as the base's."""
        # Few targets have a base, and what reads one takes longer to import than all else here.
        from envbuild.world.environment import read_environment  # noqa: PLC0415

        if root is None:
            return read_environment(path, environ=self._path)
        return read_environment(path, root=root, environ={})
