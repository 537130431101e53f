"""EB303, EB304, EB305: libraries that are too old, gone, or of another CUDA."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import Version

from envbuild.checks.ffmpeg import without_ffmpeg
from envbuild.checks.lazylibraries import for_torch_alone, is_lazy, without_toolkit
from envbuild.checks.owners import owners_for, shortened, torch_cuda, torch_label, torch_pin
from envbuild.checks.rule import rule
from envbuild.checks.tables import first_from, majors_of, package_for
from envbuild.core.elf.libnames import is_torch_library
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Manual, Reinstall
from envbuild.model.installed import Installed, Ownership
from envbuild.model.links import Links

if TYPE_CHECKING:
    from envbuild.checks.owners import Owners, Subject
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution
    from envbuild.model.links import MissingLibrary, MissingVersion

_VERSION = re.compile(r"(?P<family>GLIBC|GLIBCXX|CXXABI)_(?P<version>\d+(?:\.\d+)*)")
_CONDA = re.compile(r"/(?:[^/]*conda[^/]*|envs/[^/]+)/(?:.*/)?lib/[^/]+$")


@rule("EB303", "A system library is too old", severity=Severity.ERROR)
def too_old(installed: Installed, ownership: Ownership, links: Links) -> Iterator[Finding]:
    """A compiled file asks for a newer C or C++ runtime than the one it is given.

    **What it finds.** For each package the newest `GLIBC_…` or `GLIBCXX_…` it needs, the newest
    that the library found has, and which systems have what is needed.

    **Why it matters.** `version 'GLIBC_2.32' not found`. Wheels tagged `linux_x86_64`, as on
    release pages, promise nothing about the system they run on, so no installer can refuse them.
    With `GLIBCXX_…` the library found is often an older one of conda.

    **Example.** A flash-attn wheel built on Ubuntu 22.04 on a machine with glibc 2.31.

    **Fix.** Take an image with a newer glibc, a wheel that was built on an older one, or build
    the package on this system. For libstdc++ of conda: `conda install 'libstdcxx-ng>=13'`.
    """
    owners = owners_for(installed, ownership)
    groups: dict[tuple[Subject, str, str], list[MissingVersion]] = {}
    for one in links.versions:
        match = _VERSION.fullmatch(one.version)
        family = match["family"] if match else one.version
        groups.setdefault((owners.subject(one.path), one.found, family), []).append(one)
    for (subject, found, family), versions in groups.items():
        yield _too_old(subject, found, family, versions)


def _too_old(subject: Subject, found: str, family: str, versions: list[MissingVersion]) -> Finding:
    worst = max(versions, key=lambda one: _number(one.version))
    newest = worst.newest or f"no {family} version"
    return Finding(
        code="EB303",
        severity=Severity.ERROR,
        subject=subject.label,
        message=f"{subject.label} needs {worst.version}, `{found}` has at most {newest}",
        evidence=shortened(
            sorted({f"{one.path} needs {one.version} of {one.library}" for one in versions})
        ),
        fixes=(_newer(subject, found, family, worst.version),),
        because=(f"file:{found}", f"library:{posixpath.basename(found)}", subject.token),
        brings=subject.brings,
    )


def _number(version: str) -> Version:
    match = _VERSION.fullmatch(version)
    return Version(match["version"] if match else "0")


def _newer(subject: Subject, found: str, family: str, version: str) -> Fix:
    number = str(_number(version))
    if family == "GLIBC":
        systems = first_from("glibc", number)
        where = f" ({systems} or later)" if systems else ""
        return Manual(
            text=f"use a system with glibc {number}{where}, or build {subject.label} on this one"
        )
    if family == "GLIBCXX":
        gcc = first_from("glibcxx", number)
        if gcc and _CONDA.search(found):
            return Manual(text=f"conda install 'libstdcxx-ng>={gcc}'")
        of = f" of GCC {gcc}" if gcc else ""
        return Manual(
            text=f"use a libstdc++{of} or later, or build {subject.label} with an older GCC"
        )
    return Manual(text=f"install a `{posixpath.basename(found)}` that has {version}")


@rule("EB304", "A library that a package should bring is missing", severity=Severity.ERROR)
def missing_library(installed: Installed, ownership: Ownership, links: Links) -> Iterator[Finding]:
    """A compiled file is linked to a library that is nowhere to be found.

    **What it finds.** Each library that a wheel is meant to bring and that nothing satisfies,
    the package that brings it, and whether that package is installed. Libraries that only some
    uses need (the driver's `libcuda.so.1`, MPI, RDMA) are not reported. No FFmpeg is a warning
    for torchcodec before 0.16, which opens it when it is imported, and else a note;
    so is no CUDA for cupy, which is made to find that on the system.

    **Why it matters.** `libcusparseLt.so.0: cannot open shared object file` on `import torch`.
    The file often went with another package that owned the same path: metadata still lists it.

    **Example.** torch 2.8.0 without nvidia-nvshmem-cu12, which it pins at 3.3.20.

    **Fix.** Install the version that torch pins; where it is installed and its file is gone,
    `uv pip install --reinstall-package NAME --no-deps NAME==VERSION`.
    """
    owners = owners_for(installed, ownership)
    groups: dict[tuple[Subject, str], list[MissingLibrary]] = {}
    unused = for_torch_alone(owners, links)
    missing = [
        one
        for one in links.libraries
        if not one.optional and not _is_foreign(owners.subject(one.path), one.library, installed)
    ]
    for one in missing:
        if not is_lazy(subject := owners.subject(one.path)) and one.path not in unused:
            groups.setdefault((subject, one.library), []).append(one)
    for (subject, library), alike in groups.items():
        yield _missing(owners, subject, library, [one.path for one in alike])
    yield from without_toolkit(owners, missing)
    yield from without_ffmpeg(owners, links)


def _missing(owners: Owners, subject: Subject, library: str, paths: list[str]) -> Finding:
    cuda = torch_cuda(owners.installed)
    package = package_for(library, cuda.major) if cuda else None
    if package is None and is_torch_library(library):
        package = "torch"
    held = owners.installed.find(package) if package else None
    pin = torch_pin(owners.installed, package) if package else None
    places = [place for one, place in owners.holders(library) if held and one.name == held.name]
    bring = _bring(owners, package, pin, is_recorded=bool(places))
    apart = _apart(paths, places)
    return Finding(
        code="EB304",
        severity=Severity.ERROR,
        subject=subject.label,
        message=f"{subject.label} needs `{library}`, {_where(owners, package, pin, places)}",
        evidence=(
            *shortened(sorted(f"needed by {path}" for path in set(paths)), most=3),
            *(f"{held.label} records {place}" for place in places if held),
        ),
        hint=apart,
        fixes=(_together(held),) if apart and held else bring,
        because=(f"library:{library}", *(f"file:{place}" for place in places), subject.token),
        brings=(f"library:{library}", *subject.brings),
    )


def _where(owners: Owners, package: str | None, pin: str | None, places: list[str]) -> str:
    if package is None:
        return "which nothing brings"
    if package == "torch" and not places:
        return _not_of_torch(owners.installed)
    held = owners.installed.find(package)
    if held is None and pin:
        return f"which `{package}` brings: torch pins {pin}, and it is not installed"
    if held is None:
        return f"which `{package}` brings: it is not installed"
    if places:
        return f"which {held.label} brings and the loader does not find"
    return f"which {held.label} does not hold"


def _not_of_torch(installed: Installed) -> str:
    build = torch_label(installed)
    if build == "torch":
        return "which torch brings, and there is none"
    is_cpu = installed.torch is not None and installed.torch.cuda is None
    return f"which {build} does not have{': it is a CPU build' if is_cpu else ''}"


def _apart(paths: list[str], places: list[str]) -> str | None:
    """Say that torch's path to NVIDIA's folders leads nowhere from another site folder."""
    for place in (one for one in places if "/nvidia/" in one):
        site = place.partition("/nvidia/")[0]
        if not any(path.startswith(f"{site}/") for path in paths):
            return f"it lies in `{site}`, where those that need it do not look"
    return None


def _together(held: Distribution) -> Fix:
    """Say what ends it: installed again they would lie apart again."""
    return Manual(
        text=(
            f"install torch and {held.name} into one site folder: make a new environment with"
            " `uv venv`, whose lib64 is a link to lib, and install everything there"
        )
    )


def _bring(
    owners: Owners, package: str | None, pin: str | None, *, is_recorded: bool
) -> tuple[Fix, ...]:
    if package is None:
        return ()
    held = owners.installed.find(package)
    if package == "torch" and held is None:
        return (Manual(text="install torch: `envbuild lock` finds the build that fits"),)
    if package == "torch" and not is_recorded:
        return (Manual(text="install a CUDA build of torch: name a GPU in a target and lock"),)
    if held is not None and (pin is None or held.version == pin):
        return (Reinstall(names=(package,)),)
    return (Install(requirements=(f"{package}=={pin}" if pin else package,)),)


@rule("EB305", "A package is linked to another CUDA major", severity=Severity.ERROR)
def other_cuda(installed: Installed, ownership: Ownership, links: Links) -> Iterator[Finding]:
    """A compiled package needs the runtime of another CUDA major than torch brings.

    **What it finds.** Packages whose libraries of another CUDA major (`libcudart.so.12` under a
    CUDA 13 torch) are not there.

    **Why it matters.** `libcudart.so.12: cannot open shared object file`. PyPI's torch is built
    for CUDA 13 from 2.11 on, while wheels of other packages are for one CUDA major only; a flag
    that chooses torch's build does not choose theirs. Installing the other runtime beside torch's
    makes the error go away and leaves two CUDA runtimes in one process.

    **Example.** vllm/_C.abi3.so needs libcudart.so.13, torch is 2.9.1+cu129.

    **Fix.** Take the package's build for torch's CUDA, or the torch of the package's CUDA.
    """
    owners = owners_for(installed, ownership)
    found = [
        one
        for one in links.libraries
        if not one.optional and _is_foreign(owners.subject(one.path), one.library, installed)
    ]
    for subject, missing in owners.group(found, (one.path for one in found)).items():
        libraries = sorted({one.library for one in missing})
        major = majors_of(libraries[0])[0]
        yield _other_cuda(subject, libraries, major, missing, installed)


def _other_cuda(
    subject: Subject,
    libraries: list[str],
    major: int,
    missing: list[MissingLibrary],
    installed: Installed,
) -> Finding:
    cuda = torch_cuda(installed)
    return Finding(
        code="EB305",
        severity=Severity.WARNING if is_lazy(subject) else Severity.ERROR,
        subject=subject.label,
        message=(
            f"{subject.label} is linked to CUDA {major} (`{libraries[0]}`),"
            f" {torch_label(installed)} brings CUDA {cuda.major if cuda else 'none'}"
        ),
        evidence=shortened(sorted({f"{one.path} needs {one.library}" for one in missing})),
        fixes=(
            Manual(
                text=(
                    f"install the build of {subject.name or subject.label} for CUDA"
                    f" {cuda.major if cuda else major}, or a torch for CUDA {major}"
                )
            ),
        ),
        because=(subject.token, "dist:torch"),
        # Not the library: what others lack for want of it is no consequence of this package.
        brings=(subject.token, *subject.brings),
    )


def _is_foreign(subject: Subject, library: str, installed: Installed) -> bool:
    """Whether a library belongs to another CUDA major than torch's, for anyone but torch."""
    cuda, majors = torch_cuda(installed), majors_of(library)
    if subject.name == "torch" or subject.name.startswith("nvidia-") or cuda is None:
        return False
    return bool(majors) and cuda.major not in majors


RULES = (too_old, missing_library, other_cuda)
