"""`envbuild sync` beside `uv pip sync` of the same lock, with warm caches."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uv
from timing import alternate, print_table

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGES = 100
_TESTS = Path(__file__).resolve().parent.parent / "tests"
_LOCK = "lockfiles/pylock.cu128.toml"


def measure_install(folder: Path, rounds: int) -> None:
    """Install a lock of torch and many packages, into a new environment and over itself."""
    if str(_TESTS) not in sys.path:
        sys.path.insert(0, str(_TESTS))
    from index import LocalIndex, local_wheel  # noqa: PLC0415 - lies among the tests
    from lockworld import World, populate, pyproject  # noqa: PLC0415

    names = [f"package-{number}" for number in range(PACKAGES)]
    with LocalIndex() as index:
        world = World(index=index, root=folder / "install", cache=folder / "install-cache")
        populate(index, world.catalog)
        index.add_pypi(*(local_wheel(name, "1.0") for name in names))
        world.write(pyproject("torch", *names, layer="pip"))
        world.lock()
        _measure(world.root, world.environ, rounds)


def _measure(root: Path, environ: dict[str, str], rounds: int) -> None:
    venv = root / ".venv"
    python = str(venv / "bin" / "python")
    uv_binary = uv.find_uv_bin()
    plain = [uv_binary, "--directory", str(root), "pip", "sync", "--no-config"]
    plain += ["--python", python, "--require-hashes", _LOCK]
    ours = [sys.executable, "-m", "envbuild", "sync", str(root), "--quiet"]

    def fresh() -> None:
        shutil.rmtree(venv, ignore_errors=True)
        made = [uv_binary, "venv", "--no-config", "--python", "3.11", str(venv)]
        subprocess.run(made, check=True, capture_output=True, env=environ)

    def keep() -> None:
        """Leave the environment as it is."""

    for title, prepare in (("a new environment", fresh), ("nothing to do", keep)):
        _compare(title, prepare, plain, ours, environ=environ, rounds=rounds)


def _compare(
    title: str,
    prepare: Callable[[], None],
    plain: list[str],
    ours: list[str],
    *,
    environ: dict[str, str],
    rounds: int,
) -> None:
    timings = alternate(
        rounds,
        ("`uv pip sync`", plain, prepare),
        ("`envbuild sync`, doctor included", ours, prepare),
        environ=environ,
    )
    print_table(f"torch and {PACKAGES} packages, {title}, warm", timings, base=timings[0])
    over = timings[1].median - 1.2 * timings[0].median
    print(f"beyond 1.2 times of it: {over:.2f} s, allowed is 1 s\n")
