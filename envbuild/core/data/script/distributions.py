"""Compare what lies in an environment with the lock, by files alone: nothing of it is imported.

Run by the install script: ``distributions.py check|mend|missing SITE PACKAGES [NAME ...]``.
PACKAGES holds lines ``name version bytes flag``; NAMEs are what is compiled, and ``=NAME`` what may
be there, the project itself.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import sys
from pathlib import Path

Rows = list[tuple[str, int | None]]


def normal(name: str) -> str:
    """Return a name as package indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def same(a: str, b: str) -> bool:
    """Whether two versions are spelled alike but for separators of the local part."""
    return re.sub(r"[-_.]", ".", a).lower() == re.sub(r"[-_.]", ".", b).lower()


class Found:
    """One dist-info folder; ``rows`` is None where its RECORD cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name, self.version = self._identity()
        self.rows = self._record()

    def _identity(self) -> tuple[str, str]:
        name, _, version = self.folder.name[: -len(".dist-info")].partition("-")
        try:
            text = (self.folder / "METADATA").read_text("utf-8", "replace")
        except OSError:
            return normal(name), ""
        for line in text.splitlines():
            if not line.strip():
                break
            if line.lower().startswith("name:"):
                name = line.partition(":")[2].strip()
            elif line.lower().startswith("version:"):
                version = line.partition(":")[2].strip()
        return normal(name), version

    def _record(self) -> Rows | None:
        try:
            with (self.folder / "RECORD").open(encoding="utf-8", newline="") as file:
                rows = [(row[0], _size(row)) for row in csv.reader(file) if row]
        except (OSError, ValueError, csv.Error):
            return None
        return rows or None


def _size(row: list[str]) -> int | None:
    return int(row[2]) if len(row) > 2 and row[2].isdigit() else None


def installed(site: Path) -> list[Found]:
    """Return every distribution, in the order of their names."""
    folders = site.glob("*.dist-info") if site.is_dir() else ()
    return sorted((Found(folder) for folder in folders), key=lambda one: one.folder.name)


def owners(found: list[Found]) -> dict[str, int]:
    """Return how many distributions record each path."""
    counted: dict[str, int] = {}
    for one in found:
        for path, _ in one.rows or ():
            counted[path] = counted.get(path, 0) + 1
    return counted


def broken(one: Found, site: str, counted: dict[str, int]) -> str:
    """Return what is wrong with the files of a distribution, empty where nothing is."""
    if not one.version:
        return "has no METADATA"
    if one.rows is None:
        return "has no RECORD"
    stat = os.stat
    for path, size in one.rows:
        try:
            held = stat(f"{site}/{path}").st_size
        except OSError:
            if path.endswith(".pyc"):
                continue
            return f"lacks `{path}`"
        if size is not None and held != size and counted[path] == 1:
            return f"has {held} of {size} bytes of `{path}`"
    return ""


def expected(path: str) -> dict[str, tuple[str, int, str]]:
    """Return version, bytes and flag of each package of the lock."""
    wanted = {}
    for line in Path(path).read_text("utf-8").splitlines():
        name, version, size, flag = line.split(" ")
        wanted[name] = (version, int(size), flag)
    return wanted


def fits(found: str, wanted: str, flag: str) -> bool:
    """Whether an installed version is the one locked."""
    return same(found, wanted) or (flag == "direct" and same(found, wanted.partition("+")[0]))


def problems(site: Path, wanted: dict[str, tuple[str, int, str]], own: set[str]) -> list[str]:
    """Return every difference between the environment and the lock."""
    found = installed(site)
    counted = owners(found)
    lines = []
    seen: set[str] = set()
    for one in found:
        if one.name in seen:
            lines.append(f"{one.name} is there twice: {one.folder.name}")
        seen.add(one.name)
        fault = broken(one, str(site), counted)
        if fault:
            lines.append(f"{one.name} {one.version} {fault}")
        elif one.name in wanted and not fits(one.version, wanted[one.name][0], wanted[one.name][2]):
            lines.append(f"{one.name} is {one.version}, the lock has {wanted[one.name][0]}")
        elif one.name not in wanted and not own & {one.name, f"={one.name}"}:
            lines.append(f"{one.name} {one.version} is not in the lock")
    for name, (version, _, flag) in wanted.items():
        if name not in seen and flag != "optional":
            lines.append(f"{name} {version} is not installed")
    lines += [f"{name} was not built" for name in sorted(own - seen) if not name.startswith("=")]
    return lines + torch_problems(site, wanted)


def torch_problems(site: Path, wanted: dict[str, tuple[str, int, str]]) -> list[str]:
    """Return how torch/version.py contradicts the lock; it knows the build, METADATA may not."""
    version = wanted.get("torch", ("",))[0]
    try:
        text = (site / "torch" / "version.py").read_text("utf-8", "replace")
    except OSError:
        return []
    match = re.search(r"^__version__ = ['\"]([^'\"]+)", text, re.MULTILINE)
    said = match[1] if match else ""
    if not said or not version or same(said, version):
        return []
    if "+" not in version and same(said.partition("+")[0], version):
        return []
    return [f"torch/version.py says {said}, the lock has {version}"]


def mend(site: Path) -> list[str]:
    """Take out what a killed run left half installed, so that it is installed anew."""
    found = installed(site)
    counted = owners(found)
    prefix = os.path.realpath(site.parents[2])
    lines = []
    for one in found:
        fault = broken(one, str(site), counted)
        if not fault:
            continue
        lines.append(f"{one.folder.name} {fault}")
        for path, _ in one.rows or ():
            goal = os.path.realpath(site / os.path.dirname(path))
            if counted[path] == 1 and (goal + os.sep).startswith(prefix + os.sep):
                (Path(goal) / os.path.basename(path)).unlink(missing_ok=True)
        shutil.rmtree(one.folder)
    return lines


def main(arguments: list[str]) -> int:
    """Do what is asked; for ``check`` the answer is 1 where something differs."""
    verb, site, packages, *own = arguments
    if verb == "mend":
        sys.stdout.writelines(f"{line}\n" for line in mend(Path(site)))
        return 0
    wanted = expected(packages)
    if verb == "missing":
        held = {one.name: one.version for one in installed(Path(site))}
        missing = [
            size
            for name, (version, size, flag) in wanted.items()
            if not fits(held.get(name, ""), version, flag)
        ]
        sys.stdout.write(f"{sum(missing)}\n")
        return 0
    found = problems(Path(site), wanted, set(own))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
