"""EB701, EB703, EB704, EB706: libraries that the loader takes from elsewhere."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.checks.leaks import RULES as _LEAK_RULES
from envbuild.checks.owners import (
    owners_for,
    requirements_of,
    shortened,
    torch_label,
    variable_of,
)
from envbuild.checks.rule import rule
from envbuild.core.elf.libnames import is_from_wheel
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual, Unset
from envbuild.model.host import Host
from envbuild.model.installed import EnvironmentKind, Installed, Ownership
from envbuild.model.links import Links

if TYPE_CHECKING:
    from envbuild.checks.owners import Owners
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution
    from envbuild.model.links import LoadedLibrary

_FOLDER_VERSION = re.compile(r"/cuda-(?P<version>\d+\.\d+)/")
_FILE_VERSION = re.compile(r"\.so\.(?P<version>\d+(?:\.\d+)+)$")
# The libraries whose version is the toolkit's; others on such a folder have numbers of their own.
_OF_TOOLKIT = re.compile(r"lib(?:cudart|cublas(?:Lt)?|nvrtc|nvJitLink|cupti)\.so")
_RUNTIMES = ("libstdc++.so.6", "libgomp.so.1")


@rule("EB701", "A library from elsewhere wins over the wheel's", severity=Severity.WARNING)
def shadowed(installed: Installed, ownership: Ownership, links: Links) -> Iterator[Finding]:
    """The loader takes a library from outside the environment although a wheel brings it.

    **What it finds.** Libraries that a package of the environment brings and that are loaded
    from `LD_LIBRARY_PATH`, `LD_PRELOAD` or the system instead, worked out as the loader does it.
    A folder on the path that loses is not reported: torch from 2.6 on opens most of its libraries
    itself, and finds NCCL and cuBLAS before the path is looked at. It is an error where the file
    lacks what others need of it, or is a part of another cuDNN.

    **Why it matters.** `libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1`, or `cuDNN
    version incompatibility`, only on the machines that have a CUDA toolkit on the path.

    **Example.** LD_LIBRARY_PATH has /usr/local/cuda-12.1/lib64 before nvidia-nvjitlink-cu12
    12.4.127, under torch 2.5.1.

    **Fix.** `env -u LD_LIBRARY_PATH python train.py` for one process; take that folder out of the
    variable where it is set (shell profile, module, image) for all.
    """
    owners = owners_for(installed, ownership)
    lacking = {one.provider for one in links.symbols} | {one.found for one in links.versions}
    for one in links.loaded:
        places = {one.path, one.real}
        if any(_is_inside(path, installed) or path in owners.labels for path in places):
            continue
        if one.soname in _RUNTIMES:
            continue
        holder = _holder(owners, one)
        if holder is not None:
            yield _shadowed(one, holder, is_lacking=one.path in lacking)


def _is_inside(path: str, installed: Installed) -> bool:
    return any(path.startswith(f"{site}/") for site in installed.sites)


def _holder(owners: Owners, one: LoadedLibrary) -> Distribution | None:
    """Return the package that brings the library to whoever needs it."""
    if one.needed_by.startswith("/") and not _is_inside(one.needed_by, owners.installed):
        return None
    needing = owners.subject(one.needed_by).distribution
    for found, _ in owners.present(one.soname):
        if needing is None or is_from_wheel(one.soname) or _is_meant(found, needing):
            return found
    return None


def _is_meant(found: Distribution, needing: Distribution) -> bool:
    """Say whether a copy is there for another's sake: what else wheels bring is their own."""
    needed = {str(canonicalize_name(one.name)) for one in requirements_of(needing)}
    return found.name in {needing.name, *needed}


def _shadowed(one: LoadedLibrary, holder: Distribution, *, is_lacking: bool) -> Finding:
    version = version_of(one.real or one.path) or version_of(one.path)
    variable = variable_of(one)
    said = f" ({version})" if version else ""
    return Finding(
        code="EB701",
        severity=Severity.ERROR if is_lacking else _severity(one, version, holder),
        subject=one.path,
        message=(
            f"{variable or 'the system'} puts `{one.path}`{said} before the copy of {holder.label}"
        ),
        evidence=(
            f"needed by {one.needed_by}",
            f"found by {one.how}",
            *((f"which is {one.real}",) if one.real not in {"", one.path} else ()),
        ),
        fixes=(_take_away(one.path, variable),),
        because=(f"env:{variable}",) if variable else (),
        brings=(f"file:{one.path}", f"library:{one.soname}"),
    )


def _severity(one: LoadedLibrary, version: str | None, holder: Distribution) -> Severity:
    """Judge a library that lacks nothing: by its version, where its path tells one.

    The parts of cuDNN must all be of one release; other libraries only not be older.
    """
    order = _compare(version, holder.version) if version else None
    if one.soname.startswith("libcudnn"):
        known = Severity.NOTE if order == 0 else Severity.ERROR
        return Severity.WARNING if order is None else known
    return Severity.WARNING if order is not None and order < 0 else Severity.NOTE


def _take_away(path: str, variable: str | None) -> Fix:
    if variable is not None:
        return Unset(variable=variable)
    return Manual(text=f"remove `{path}`, or reinstall the package that brings its own copy")


def version_of(path: str) -> str | None:
    """Return the version that a library's file name tells, or its folder for the toolkit's own."""
    match = _FILE_VERSION.search(path)
    if match is None and _OF_TOOLKIT.match(posixpath.basename(path)):
        match = _FOLDER_VERSION.search(path)
    return match["version"] if match else None


def _compare(version: str, wheel: str) -> int:
    """Compare as many numbers as both have: 12.1 is older than 12.4.127, 12.4 is equal."""
    a, b = ([int(n) for n in re.findall(r"\d+", text)] for text in (version, wheel))
    shared = min(len(a), len(b))
    return (a[:shared] > b[:shared]) - (a[:shared] < b[:shared])


@rule("EB703", "conda's libraries get in the way of a venv", severity=Severity.WARNING)
def conda_in_the_way(installed: Installed, links: Links, host: Host) -> Iterator[Finding]:
    """A venv is used while a conda environment is active, and loads libraries of that.

    **What it finds.** Libraries of the active conda environment that are loaded by way of
    `LD_LIBRARY_PATH`, or that are too old for what the venv holds.

    **Why it matters.** conda's libstdc++ is often older than the one a wheel was built with:
    `version 'GLIBCXX_3.4.32' not found`, although the system has it.

    **Example.** gymtorch.so needs GLIBCXX_3.4.32, conda's libstdc++ has 3.4.29.

    **Fix.** `conda deactivate` before the venv is used, or a newer libstdc++ in conda.
    """
    conda = host.variable("CONDA_PREFIX")
    if conda is None or installed.kind is not EnvironmentKind.VENV:
        return
    folder = conda.rstrip("/") + "/"
    if installed.prefix.startswith(folder):
        return
    lacking = sorted({one.found for one in links.versions if one.found.startswith(folder)})
    pushed = sorted(
        {o.path for o in links.loaded if o.path.startswith(folder) and o.how == "ld_library_path"}
    )
    found = lacking or pushed
    if not found:
        return
    yield Finding(
        code="EB703",
        severity=Severity.ERROR if lacking else Severity.WARNING,
        subject=conda,
        message=(
            f"the active conda environment `{conda}` brings"
            f" `{posixpath.basename(found[0])}` into the venv `{installed.prefix}`"
            f"{', and it is too old' if lacking else ''}"
        ),
        evidence=shortened(found),
        fixes=(
            Manual(text="conda deactivate") if not pushed else Unset(variable="LD_LIBRARY_PATH"),
        ),
        because=("env:CONDA_PREFIX",),
        brings=tuple(f"file:{path}" for path in found),
    )


@rule("EB704", "Two copies of one runtime library are loaded", severity=Severity.WARNING)
def two_copies(links: Links) -> Iterator[Finding]:
    """Two files of the same name are loaded by different parts, and the first one wins.

    **What it finds.** Two different files for `libstdc++.so.6` or `libgomp.so.1`. Copies that
    wheels bundle under a name of their own do not count: they live side by side. It is a warning
    where one of the files lacks a version that others need, else a note.

    **Why it matters.** Whether an import works depends on what was imported before.

    **Example.** libstdc++ of the system and of conda: an extension loads alone, and fails when
    torch is imported first.

    **Fix.** Take the folder of the second copy out of `LD_LIBRARY_PATH`, or deactivate conda; the
    finding names both files.
    """
    lacking = {one.found for one in links.versions}
    for soname in _RUNTIMES:
        files = {one.real or one.path: one.path for one in links.loaded if one.soname == soname}
        paths = sorted(files.values())
        if len(paths) < 2:  # noqa: PLR2004
            continue
        short = any(path in lacking for path in paths)
        users = {one.path: one for one in links.loaded if one.soname == soname}
        yield Finding(
            code="EB704",
            severity=Severity.WARNING if short else Severity.NOTE,
            subject=soname,
            message=f"`{soname}` is loaded from {len(paths)} places, the first loaded wins",
            evidence=tuple(f"{path} for {users[path].needed_by}" for path in paths),
            because=tuple(f"file:{path}" for path in paths),
        )


@rule("EB706", "A system cuDNN fills a hole in the wheel's", severity=Severity.ERROR)
def foreign_part(installed: Installed, ownership: Ownership, links: Links) -> Iterator[Finding]:
    """cuDNN opens its parts by name; one that the wheel lacks is taken from the system.

    **What it finds.** Parts of cuDNN (`libcudnn_engines_tensor_ir.so.9`) that are found outside
    the environment while the wheel brings cuDNN itself without that part.

    **Why it matters.** `CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH` on the first convolution: the
    part is of another release, often of another CUDA.

    **Example.** nvidia-cudnn-cu13 9.20.0.48 beside libcudnn9-cuda-12 9.23.2 of the distribution.

    **Fix.** Remove the system's cuDNN (`apt remove 'libcudnn9*'`), or install the cuDNN wheel that
    torch pins, which has the part.
    """
    owners = owners_for(installed, ownership)
    mains = [one for one in links.loaded if re.fullmatch(r"libcudnn\.so\.\d+", one.soname)]
    wheel = next((d for m in mains for d, path in owners.present(m.soname) if path == m.path), None)
    if wheel is None:
        return
    for one in links.loaded:
        if not one.soname.startswith("libcudnn_") or _is_inside(one.path, installed):
            continue
        if any(True for _ in owners.present(one.soname)):
            continue  # the wheel has it, so this is EB701
        version = version_of(one.real or one.path)
        yield Finding(
            code="EB706",
            severity=Severity.ERROR,
            subject=one.path,
            message=(
                f"`{one.path}`{f' ({version})' if version else ''} is used with {wheel.label},"
                f" which has no {one.soname}"
            ),
            evidence=(f"found by {one.how}", f"loaded for {torch_label(installed)}"),
            fixes=(
                Manual(
                    text=f"remove the system's cuDNN that `{one.path}` belongs to"
                    " (Debian, Ubuntu: apt-get remove -y 'libcudnn*')"
                ),
            ),
            because=(f"dist:{wheel.name}",),
            brings=(f"library:{one.soname}", f"file:{one.path}"),
        )


RULES = (shadowed, *_LEAK_RULES, conda_in_the_way, two_copies, foreign_part)
