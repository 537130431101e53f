"""Family EB5: the layers around an environment: uv.lock, pylock, requirements and uv's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envbuild.checks import drift, lockedbuild, lockedglibc, locksets
from envbuild.checks.drift import is_synced
from envbuild.checks.owners import counted, shortened
from envbuild.checks.rule import rule
from envbuild.core.installedrequires import python_of
from envbuild.core.lockdrift import drift_from, is_coupled
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual, Relock
from envbuild.model.installed import Installed
from envbuild.model.layers import Layers

if TYPE_CHECKING:
    from envbuild.model.layers import LockFile

_MOST = 4
_MINORS = tuple(f"3.{minor}.{patch}" for minor in range(7, 20) for patch in (0, 30))


@rule("EB503", "Both layers of uv are in use", severity=Severity.WARNING)
def both_layers(installed: Installed, layers: Layers) -> Iterator[Finding]:
    """Find a project that is installed by `uv sync` and by `uv pip`.

    **What it finds.** A uv.lock beside `managed = false`, which nothing keeps up to date; and,
    in a managed project, a package that belongs to torch and was installed by pip in a version
    the lock does not have. What `uv pip` installed looks as what `uv sync` did, so that only
    EB501 can see it.

    **Why it matters.** Each layer undoes the other: `uv run` restores the lock, `uv pip` changes
    what it restored, and which one is on disk depends on the last command.

    **Example.** `uv pip install torch==2.7.0+cu128`, then `uv run --with open3d train.py`.

    **Fix.** Layer "project": put the version into pyproject.toml and lock it. Layer "pip": set
    `managed = false`, delete uv.lock, and call `.venv/bin/python`.
    """
    if layers.uv_lock is not None and not layers.managed:
        yield Finding(
            code="EB503",
            severity=Severity.WARNING,
            subject=layers.uv_lock.path,
            message=f"{layers.uv_lock.path} lies beside `managed = false`: uv does not read it",
            hint="delete it, or take `managed = false` out of [tool.uv]",
            fixes=(Manual(text=f"rm {layers.uv_lock.path}"),),
        )
    if not is_synced(layers) or layers.uv_lock is None:
        return
    changed = [
        change.one.label
        for change in drift_from(layers.uv_lock, installed).changed
        if change.one.installer == "pip" and is_coupled(change.one.name) and not change.flag
    ]
    if changed:
        yield Finding(
            code="EB503",
            severity=Severity.WARNING,
            subject=changed[0],
            message=f"{', '.join(changed)} came by pip into a project that `uv sync` manages",
            evidence=(
                "INSTALLER in its metadata: pip",
                f"{layers.uv_lock.path} has another version",
            ),
            because=(f"lock:{layers.uv_lock.path}",),
        )


@rule("EB505", "Settings of uv let torch be swapped", severity=Severity.WARNING)
def loose_settings(layers: Layers) -> Iterator[Finding]:
    """Find settings in `[tool.uv]` that let torch or its companions come from elsewhere.

    **What it finds.** `index-strategy = "unsafe-best-match"`; companions without an entry in
    `[tool.uv.sources]` where torch has one; and, as notes, PyTorch's index without
    `explicit = true` and `torch-backend`, which `uv lock` ignores.

    **Why it matters.** The highest version of all indexes wins, and `2.9.0+cu126` beats
    `2.8.0+cu128`. A companion without a source comes from PyPI, built for another CUDA.

    **Example.** torch from the cu128 index, torchvision from PyPI for CUDA 13.

    **Fix.** `explicit = true` on PyTorch's index, and an entry in `[tool.uv.sources]` for each
    package that comes from it.
    """
    if not layers.managed:
        return
    if layers.unrouted:
        names = ", ".join(layers.unrouted)
        yield Finding(
            code="EB505",
            severity=Severity.WARNING,
            subject="pyproject.toml",
            message=f"torch has an entry in [tool.uv.sources], {names} not: PyPI's build is taken",
            hint=f"give {names} the same index as torch in [tool.uv.sources]",
            fixes=(Relock(reason=f"{names} must come from torch's index"),),
        )
    for text in layers.hazards:
        unsafe = "index-strategy" in text
        yield Finding(
            code="EB505",
            severity=Severity.WARNING if unsafe else Severity.NOTE,
            subject="pyproject.toml",
            message=text,
            brings=("lock:uv.lock",) if unsafe else (),
        )


@rule("EB506", "A lock is incomplete", severity=Severity.WARNING)
def incomplete(layers: Layers) -> Iterator[Finding]:
    """Find locks with packages that have no hash.

    **What it finds.** What `envbuild lock --allow-unhashed` left out, and requirements without
    `--hash` among others that have one.

    **Why it matters.** `pip install --require-hashes` refuses the whole file, and a file without
    a hash may be another one tomorrow.

    **Example.** A wheel of a page that publishes no hashes, locked without a network.

    **Fix.** Run `envbuild lock` where the index can be reached. Without envbuild,
    `uv pip compile --generate-hashes` writes them all.
    """
    for lock in (*layers.pylocks, *layers.requirements):
        if lock.incomplete:
            number = counted(len(lock.incomplete), "package")
            yield Finding(
                code="EB506",
                severity=Severity.WARNING,
                subject=lock.path,
                message=f"{lock.path} has {number} without a hash",
                evidence=shortened(lock.incomplete, most=_MOST),
                fixes=(Relock(reason=f"{lock.path} is incomplete"),),
            )


@rule("EB507", "A lock cannot be read, or is for another Python", severity=Severity.ERROR)
def unusable_locks(installed: Installed, layers: Layers) -> Iterator[Finding]:
    """Find lock files that are broken or made for another Python.

    **What it finds.** Files that are no TOML or no lock, a uv.lock for a Python that the project
    excludes or that is not the environment's, and a project none of whose locks fits.

    **Why it matters.** uv throws a lock for another Python away and resolves anew, with a
    warning that nobody reads; for another Python it makes the environment anew.

    **Example.** uv.lock says `==3.10.*`, `requires-python` says `==3.11.*`.

    **Fix.** `uv lock --python 3.11`, or `envbuild lock`, for the Python that is meant.
    """
    for path, reason in layers.unreadable:
        yield Finding(
            code="EB507",
            severity=Severity.ERROR if path == "uv.lock" and layers.managed else Severity.WARNING,
            subject=path,
            message=f"{path} cannot be read: {reason}",
            fixes=(Relock(reason=f"{path} cannot be read"),) if _is_lock(path) else (),
            brings=(f"lock:{path}",),
        )
    for path, reason in layers.unread:
        yield Finding(
            code="EB507",
            severity=Severity.UNKNOWN,
            subject=path,
            message=f"{path} was not read: it {reason}",
        )
    python = python_of(installed)
    if layers.uv_lock is not None and layers.managed:
        yield from _other_python(layers.uv_lock, layers, python)
    files = (*layers.pylocks, *layers.requirements)
    if files and layers.owned and not any(lock.fits for lock in files):
        yield Finding(
            code="EB507",
            severity=Severity.WARNING,
            subject=files[0].path,
            message=f"no lock file fits Python {python} on {installed.machine}",
            evidence=tuple(f"{lock.path}: Python {lock.requires_python}" for lock in files[:_MOST]),
            hint="make the environment with the Python of a target, or add a target for this one",
        )


def _is_lock(path: str) -> bool:
    return path != "pyproject.toml"


def _other_python(lock: LockFile, layers: Layers, python: str) -> Iterator[Finding]:
    relock = (Relock(reason=f"{lock.path} is for Python {lock.requires_python}"),)
    if not _intersect(lock.requires_python, layers.requires_python):
        yield Finding(
            code="EB507",
            severity=Severity.ERROR,
            subject=lock.path,
            message=(
                f"{lock.path} is for Python {lock.requires_python}, the project wants"
                f" {layers.requires_python}: uv ignores the lock"
            ),
            hint="`uv sync --locked` refuses it, which a plain `uv sync` does not",
            fixes=relock,
            brings=(f"lock:{lock.path}",),
        )
    elif python and not _admits(lock.requires_python, python):
        yield Finding(
            code="EB507",
            severity=Severity.WARNING if layers.owned else Severity.NOTE,
            subject=lock.path,
            message=f"{lock.path} is for Python {lock.requires_python}, found Python {python}",
            hint="`uv run` makes the environment anew with another Python"
            if layers.owned
            else None,
            fixes=relock if layers.owned else (),
        )


def _admits(specifier: str, python: str) -> bool:
    try:
        wanted = SpecifierSet(specifier)
    except InvalidSpecifier:
        return True
    versions = (python,) if python.count(".") > 1 else (f"{python}.0", f"{python}.30")
    return any(wanted.contains(version, prereleases=True) for version in versions)


def _intersect(a: str, b: str) -> bool:
    return any(_admits(a, version) and _admits(b, version) for version in _MINORS)


RULES = (
    *drift.RULES,
    *locksets.RULES,
    both_layers,
    loose_settings,
    incomplete,
    unusable_locks,
    *lockedbuild.RULES,
    *lockedglibc.RULES,
)
