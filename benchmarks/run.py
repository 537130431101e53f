"""Measure envbuild beside uv in one run: `python benchmarks/run.py [--rounds N]`.

Every pair is timed alternately, as whole processes with warm caches; medians are printed as a
Markdown table with the fastest and slowest run. Reaches PyPI for metadata.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import uv
from installing import measure_install
from packaging.pylock import Pylock
from timing import Timing, alternate, print_table, run_timed

from envbuild.catalog.reader import Catalog
from envbuild.commands.lock import lock
from envbuild.commands.lockrun import LockOptions
from envbuild.core.scratch import ROOT
from envbuild.render.progress import Silent
from envbuild.world.basereader import DiskBases
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.uv import UvResolver

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from envbuild.model.resolution import (
        Resolution,
        ResolveRequest,
        Unavailable,
        Unsatisfiable,
    )

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "ptv3-blackwell"
UV = uv.find_uv_bin()
ENVBUILD = [sys.executable, "-m", "envbuild"]
SIZES = (10, 100, 300)


class Recorder:
    """uv, with the last request kept so that plain uv can be given the same one."""

    def __init__(self) -> None:
        self.request: ResolveRequest | None = None
        self._uv = UvResolver()

    def resolve(self, request: ResolveRequest) -> Resolution | Unsatisfiable | Unavailable:
        self.request = request
        return self._uv.resolve(request)


def main() -> int:
    """Run every measurement and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"uv {_words([UV, '--version'])}; Python {sys.version.split()[0]}; {rounds} rounds\n")
    with tempfile.TemporaryDirectory() as folder:
        _measure_example(Path(folder), rounds)
        _measure_growth(Path(folder), rounds)
        measure_install(Path(folder), rounds)
    return 0


def _words(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1]


def _measure_example(folder: Path, rounds: int) -> None:
    project = folder / "example"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("uv.lock", "lockfiles"))
    plain = folder / "plain"
    _lay_out_plain(project, plain)
    first = (project / "pyproject.toml").read_text()
    compile_plain = _compile(plain)

    def fresh() -> None:
        (project / "pyproject.toml").write_text(first)
        (project / "uv.lock").unlink(missing_ok=True)
        shutil.rmtree(project / "lockfiles", ignore_errors=True)

    lock_fresh = [*ENVBUILD, "lock", str(project), "--quiet"]
    timings = alternate(
        rounds,
        ("`uv pip compile` of the same set", compile_plain, lambda: None),
        ("`envbuild lock`, no lock yet", lock_fresh, fresh),
    )
    _assert_same_set(plain, project)
    timings += alternate(
        rounds,
        ("`envbuild lock`, unchanged", lock_fresh, lambda: None),
        ("`envbuild lock --check`, unchanged", [*lock_fresh, "--check"], lambda: None),
        ("`envbuild --version`", [*ENVBUILD, "--version"], lambda: None),
        ("`python -c pass`", [sys.executable, "-c", "pass"], lambda: None),
    )
    print_table("examples/ptv3-blackwell, default index pages, warm", timings, base=timings[0])


def _lay_out_plain(project: Path, plain: Path) -> None:
    """Write the scratch project that envbuild gives uv, for plain `uv pip compile`."""
    recorder = Recorder()
    lock(
        LockOptions(directory=project, dry_run=True),
        source=Catalog.load(),
        facts=Catalog.load(),
        resolver=recorder,
        files=ProjectFiles(project),
        reporter=Silent(),
        bases=DiskBases({}),
    )
    if recorder.request is None:
        raise SystemExit("uv was not asked: the example is locked already")
    for path, text in recorder.request.files:
        goal = plain / path
        goal.parent.mkdir(parents=True, exist_ok=True)
        # `uv pip compile` binds transitive packages to an index only where it is not explicit.
        goal.write_text(text.replace(ROOT, str(plain)).replace("explicit = true\n", ""))


def _compile(plain: Path) -> list[str]:
    options = ["--python", sys.executable, "--no-python-downloads", "--python-version", "3.11"]
    options += ["--python-platform", "x86_64-manylinux_2_40", "--group", "envbuild"]
    options += ["--upgrade", "--quiet", "--format", "pylock.toml", "-o", "pylock.plain.toml"]
    return [UV, "--directory", str(plain), "pip", "compile", "pyproject.toml", *options]


def _assert_same_set(plain: Path, project: Path) -> None:
    held = [
        {
            package.name: str(package.version)
            for package in Pylock.from_dict(tomllib.loads(path.read_text())).packages
        }
        for path in (plain / "pylock.plain.toml", project / "lockfiles" / "pylock.cu128.toml")
    ]
    if held[0] != held[1]:
        differing = sorted(set(held[0].items()) ^ set(held[1].items()))
        raise SystemExit(f"the two sets differ, so their times do not compare: {differing}")


def _measure_growth(folder: Path, rounds: int) -> None:
    sys.path.insert(0, str(HERE.parent / "tests"))
    from index import LocalIndex  # noqa: PLC0415 - lies among the tests
    from lockworld import World, populate  # noqa: PLC0415

    timings = []
    with LocalIndex() as index:
        world = World(index=index, root=folder / "growth", cache=folder / "cache")
        populate(index, world.catalog)
        _add_packages(index)
        for size in SIZES:
            names = [f"package-{number}" for number in range(size)]
            timings.append(_time_size(world, names, rounds))
    print_table(
        "torch and N more requirements, on an index of this machine", timings, base=timings[0]
    )


def _add_packages(index: object) -> None:
    from index import local_wheel  # noqa: PLC0415 - lies among the tests

    wheels = [
        local_wheel(f"package-{number}", "1.0", requires=[f"package-{(number * 7) % 300}"])
        for number in range(max(SIZES))
    ]
    index.add_pypi(*wheels)  # type: ignore[attr-defined]


def _time_size(world: object, names: list[str], rounds: int) -> Timing:
    from lockworld import pyproject  # noqa: PLC0415 - lies among the tests

    seconds = []
    for number in range(rounds + 1):
        shutil.rmtree(world.root, ignore_errors=True)  # type: ignore[attr-defined]
        world.write(pyproject("torch", *names))  # type: ignore[attr-defined]
        command = [*ENVBUILD, "lock", str(world.root), "--quiet"]  # type: ignore[attr-defined]
        taken = run_timed(command, world.environ)  # type: ignore[attr-defined]
        if number > 0:
            seconds.append(taken)
    return Timing(name=f"`envbuild lock`, {len(names)} requirements", seconds=tuple(seconds))


if __name__ == "__main__":
    raise SystemExit(main())
