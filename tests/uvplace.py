"""A folder with a project and real uv in it, before an index of this machine."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkvalues import FACTS, found
from lockworld import UV

from envbuild.world.environment import read_environment
from envbuild.world.layers import read_layers

if TYPE_CHECKING:
    from pathlib import Path

    from index import LocalIndex, LocalWheel

    from envbuild.checks.rule import Rule
    from envbuild.model.finding import Finding

HEAD = '[project]\nname = "{name}"\nversion = "0"\nrequires-python = "==3.11.*"\n'


@dataclass(frozen=True, kw_only=True)
class Place:
    """The folder and the index; uv has a cache of its own there."""

    folder: Path
    index: LocalIndex

    def uv(self, *words: str, at: str = ".") -> None:
        """Run uv in the folder, or in one below it; it must succeed."""
        named = {"--no-index", "--index-url"}
        index = () if named & set(words) else ("--default-index", self.index.urls.pypi)
        place = ("--directory", str(self.folder / at), "--cache-dir", str(self.folder / "cache"))
        done = subprocess.run(
            [UV, *words, *place, *index], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def project(self, *tables: str, at: str = ".", name: str = "p") -> None:
        """Write the pyproject.toml of a project that is no package."""
        folder = self.folder / at
        folder.mkdir(parents=True, exist_ok=True)
        more = "\n".join(tables)
        text = f"{HEAD.format(name=name)}{more}\n"
        (folder / "pyproject.toml").write_text(
            text if "[tool.uv]" in more else f"{text}[tool.uv]\npackage = false\n", "utf-8"
        )

    def wheel(self, wheel: LocalWheel) -> str:
        """Lay a wheel beside the project and return its path."""
        path = self.folder / "w" / wheel.filename
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(wheel.data)
        return str(path)

    def judged(self, rules: tuple[Rule, ...], *, project: str | None = None) -> list[Finding]:
        """Judge the environment of the folder by rules that ask for packages and locks."""
        installed = read_environment(str(self.folder / ".venv"), environ={})
        directory = None if project is None else str(self.folder / project)
        layers = read_layers(installed, directory=directory)
        return [finding for rule in rules for finding in found(rule, installed, layers, FACTS)]
