"""Real environments of PyPI's wheels: made by uv, broken as people break them, told by an import.

    base = make_base(folder, "torch==2.8.0")
    venv = base.copy(folder / "venv")
    venv.install("--no-deps", "torchtext==0.18.0")
    told = venv.mend(trying="import torch")

Files are hard links into uv's cache, so a copy costs next to nothing and `cut` makes a file of its
own before it changes it. What an import says is for assertions; doctor itself runs nothing.

Each repair is noted in the logger ``realvenv``: `--log-file FILE --log-file-level INFO` keeps it.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uv

if TYPE_CHECKING:
    from pathlib import Path

LOG = logging.getLogger("realvenv")
MANIFEST = '[project]\nname = "x"\nversion = "0"\nrequires-python = ">=3.11,<3.12"\n'
DAY = "2026-11-30T00:00:00Z"  # what PyPI had then; the incidents depend on it
_HIDDEN = ("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH")


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a process ended."""

    code: int
    out: str
    error: str

    @property
    def first(self) -> str:
        """Return the first line of its answer."""
        return self.out.partition("\n")[0]

    @property
    def reason(self) -> str:
        """Return the last line that it complained with."""
        return self.error.strip().rpartition("\n")[2]

    @property
    def state(self) -> str:
        """Return why it failed, or that it did not."""
        return f"exit status {self.code}: {self.reason}" if self.code else "works"


@dataclass(frozen=True, kw_only=True)
class Told:
    """What doctor said of a specimen, before and after its repair, and what an import said."""

    before: Done
    found: Done
    fixed: Done
    after: Done

    @property
    def cause(self) -> str:
        """Return the root cause with its evidence, as printed."""
        return self.found.out.partition("\n\n")[0]

    @property
    def repair(self) -> tuple[str, ...]:
        """Return the commands of the repair."""
        section = self.found.out.partition("\nrepair:\n")[2].partition("\n\n")[0]
        return tuple(line.strip() for line in section.splitlines() if line.startswith("  uv "))


@dataclass(frozen=True, kw_only=True)
class RealVenv:
    """A venv, or a project's with ``project``."""

    prefix: Path
    project: Path | None = None

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.prefix / "bin" / "python"

    @property
    def site(self) -> Path:
        """Return its site folder."""
        return self.prefix / "lib" / "python3.11" / "site-packages"

    def copy(self, prefix: Path) -> RealVenv:
        """Copy it by hard links."""
        shutil.copytree(self.prefix, prefix, symlinks=True, copy_function=os.link)
        return RealVenv(prefix=prefix)

    def install(self, *words: str) -> RealVenv:
        """Run `uv pip install`, which has to succeed."""
        run_uv("pip", "install", "--python", str(self.python), *words)
        return self

    def uninstall(self, *names: str) -> RealVenv:
        """Run `uv pip uninstall`, which has to succeed."""
        run_uv("pip", "uninstall", "--python", str(self.python), *names)
        return self

    def lose(self, path: str) -> RealVenv:
        """Remove a file of the site folder, whatever RECORD says."""
        (self.site / path).unlink()
        return self

    def cut(self, path: str, size: int) -> RealVenv:
        """Cut a file short, as a full disk does."""
        goal = self.site / path
        with goal.open("rb") as file:
            start = file.read(size)
        assert len(start) == size
        goal.unlink()
        goal.write_bytes(start)
        return self

    def tries(self, code: str) -> Done:
        """Run code in it."""
        return _run(str(self.python), "-B", "-c", code, folder=self.prefix)

    def is_content(self) -> bool:
        """Say whether `uv pip check` finds nothing."""
        return _run(uv.find_uv_bin(), "pip", "check", "--python", str(self.python)).code == 0

    def doctor(self, *words: str) -> Done:
        """Run `envbuild doctor` on it from outside."""
        where = self.project or self.prefix
        return _run(sys.executable, "-m", "envbuild", "doctor", str(where), "--quiet", *words)

    def mend(self, *words: str, trying: str, then: str = "") -> Told:
        """Examine it, apply the repair, and tell what code says before and after (``then``)."""
        before, found = self.tries(trying), self.doctor(*words)
        told = Told(
            before=before,
            found=found,
            fixed=self.doctor(*words, "--fix", "--yes"),
            after=self.tries(then or trying),
        )
        name = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[2].partition(" ")[0]
        lines = (f"before: {told.before.state}", f"doctor: {found.first}", *told.repair)
        ends = (f"then: {told.fixed.first}", f"after: {told.after.state}")
        LOG.info("%s\n  %s\n", name, "\n  ".join((*lines, *ends)))
        return told


def make_base(folder: Path, *requirements: str) -> RealVenv:
    """Make a venv of Python 3.11 with some packages."""
    run_uv("venv", "--python", "3.11", str(folder))
    return RealVenv(prefix=folder).install(*requirements)


def make_project(folder: Path, *requirements: str) -> RealVenv:
    """Make a project with a lock and a venv, as `uv add` does."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(MANIFEST, encoding="utf-8")
    venv = RealVenv(prefix=folder / ".venv", project=folder)
    run_uv("add", "--directory", str(folder), "--python", "3.11", *requirements)
    return venv


def run_uv(*words: str) -> Done:
    """Run uv, which has to succeed."""
    done = _run(uv.find_uv_bin(), *words)
    assert done.code == 0, done.error
    return done


def _run(*command: str, folder: Path | None = None) -> Done:
    environ = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
    environ |= {"UV_NO_CONFIG": "1", "UV_EXCLUDE_NEWER": DAY, "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environ, check=False, capture_output=True, text=True
    )
    return Done(code=done.returncode, out=done.stdout, error=done.stderr)
