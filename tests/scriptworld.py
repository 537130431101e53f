"""Install scripts in the small world: made, and run for real in a bare environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
from lockworld import PYTHON, UV

from envbuild.commands.script import ScriptOptions, script
from envbuild.world.projectfiles import ProjectFiles

if TYPE_CHECKING:
    from lockworld import World

    from envbuild.model.rendered import RenderReport

SCRIPT = "scripts/install-cu128.sh"
SHELLS = [
    pytest.param(shell, marks=pytest.mark.skipif(which(shell) is None, reason=f"needs {shell}"))
    for shell in ("dash", "bash")
]
SHELL = which("dash") or "/bin/sh"


def make_script(world: World, **options: object) -> RenderReport:
    """Write the script of a target, of ``cu128`` where none is named."""
    return script(
        ScriptOptions(**{"target": "cu128", **options}),  # type: ignore[arg-type]
        files=ProjectFiles(world.root),
    )


def bare(world: World, **changes: str) -> dict[str, str]:
    """Return the environment of a run: little more than a PATH, as under `env -i`."""
    if PYTHON is None:
        pytest.skip("needs Python 3.11")
    folders = f"{Path(UV).parent}:{Path(PYTHON).parent}:/usr/bin:/bin"
    return {
        "PATH": folders,
        "UV_CACHE_DIR": str(world.cache / "uv"),
        "ENVBUILD_CACHE_DIR": str(world.cache / "envbuild"),
        **changes,
    }


def run_script(
    world: World,
    *arguments: str,
    shell: str = SHELL,
    stdin: int | None = subprocess.DEVNULL,
    path: str = SCRIPT,
    **changes: str,
) -> subprocess.CompletedProcess[str]:
    """Run the script of the project to its end."""
    return subprocess.run(
        [shell, str(world.root / path), *arguments],
        env=bare(world, **changes),
        stdin=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def shellchecked(world: World) -> str:
    """Return what shellcheck finds in the script; skips the test where there is none."""
    shellcheck = which("shellcheck") or which("shellcheck", path=str(Path(UV).parent))
    if shellcheck is None:
        pytest.skip("needs shellcheck")
    found = subprocess.run(
        [shellcheck, str(world.root / SCRIPT)], capture_output=True, text=True, check=False
    )
    return found.stdout


def versions(venv: Path) -> dict[str, str]:
    """Return what lies in an environment, by the names of the dist-info folders."""
    folders = venv.glob("lib/python3.*/site-packages/*.dist-info")
    pairs = (folder.name.removesuffix(".dist-info").partition("-") for folder in folders)
    return {name: version for name, _, version in pairs}


def contents(venv: Path) -> dict[str, bytes]:
    """Return every file of an environment but compiled Python and the stamp."""
    return {
        str(path.relative_to(venv)): path.read_bytes()
        for path in sorted(venv.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
    }


def is_root() -> bool:
    """Whether the tests run as root, and can become somebody else."""
    return os.geteuid() == 0 and which("setpriv") is not None
