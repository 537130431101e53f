"""EB605, EB606, EB607: the memory of a build, and the Python packages that drive it."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from envbuild.checks.owners import torch_label, torch_public
from envbuild.checks.rule import rule
from envbuild.core.buildtools import gigabytes, imports_pkg_resources
from envbuild.model.builds import Builds
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Export, Install
from envbuild.model.host import Host
from envbuild.model.installed import Installed

_GB = 1 << 30
_WITHOUT_PKG_RESOURCES = Version("82")
# torch.utils.cpp_extension imports pkg_resources in 1.13.1, 2.0.1 and 2.1.2, not in 2.2.2.
_FIRST_FREE_TORCH = Version("2.2")


@rule("EB605", "The build takes more memory than there is", severity=Severity.WARNING)
def too_many_jobs(host: Host, builds: Builds) -> Iterator[Finding]:
    """Each parallel nvcc needs gigabytes, and ninja starts as many as there are cores.

    **What it finds.** Jobs (`MAX_JOBS`, else the cores) times
    `NVCC_THREADS` times the memory of one nvcc, against the memory of the machine and of its
    control group, which is what a container is given.

    **Why it matters.** The build is killed (exit code 137) or the machine freezes; one nvcc for
    flash-attn takes about 5 GB.

    **Example.** 16 cores with 32 GB: 80 GB for flash-attn.

    **Fix.** `export MAX_JOBS=N`, with memory in GB divided by 5 as N (6 on 32 GB), and
    `NVCC_THREADS=1`.
    """
    memory = min((m for m in (host.memory_bytes, host.memory_limit_bytes) if m), default=None)
    if memory is None or host.is_image:
        return
    needs = {name: gigabytes(name) for name in builds.packages or ("CUDA extensions",)}
    package = max(needs, key=lambda name: needs[name])
    threads = _number(host.variable("NVCC_THREADS")) or 1
    chosen = _number(host.variable("MAX_JOBS"))
    jobs = chosen or host.cores
    each = needs[package] * threads
    if jobs is None or jobs * each * _GB <= memory:
        return
    fitting = max(1, int(memory / _GB // each))
    if fitting >= jobs:
        return
    yield Finding(
        code="EB605",
        severity=Severity.WARNING,
        subject=package,
        message=(
            f"{jobs} jobs of about {each} GB each may take {jobs * each} GB to build {package},"
            f" there are {memory / _GB:.0f} GB"
        ),
        evidence=(f"MAX_JOBS is {chosen or 'unset'}, NVCC_THREADS {threads}",),
        fixes=(Export(variable="MAX_JOBS", value=str(fitting)),),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and int(text) else None


@rule("EB606", "setuptools has no pkg_resources any more", severity=Severity.ERROR)
def no_pkg_resources(installed: Installed, builds: Builds) -> Iterator[Finding]:
    """setuptools 82 removed pkg_resources, which old releases of torch import to build.

    **What it finds.** setuptools 82 or newer with torch before 2.2, or
    with a package whose setup.py imports pkg_resources (mmcv).

    **Why it matters.** `ModuleNotFoundError: No module named 'pkg_resources'`. From torch 2.2 on
    cpp_extension does not import it.

    **Example.** setuptools 84.2.1 with torch 2.0.1.

    **Fix.** Install `setuptools<82`, and build with `--no-build-isolation`.
    """
    setuptools = installed.find("setuptools")
    if setuptools is None or not _at_least(setuptools.version):
        return
    public = torch_public(installed)
    who = [name for name in builds.packages if imports_pkg_resources(name)]
    if public is not None and _is_before(public, _FIRST_FREE_TORCH):
        who.insert(0, torch_label(installed))
    if who:
        yield Finding(
            code="EB606",
            severity=Severity.ERROR,
            subject=setuptools.label,
            message=f"{setuptools.label} has no pkg_resources, {who[0]} needs it to build",
            fixes=(Install(requirements=("setuptools<82",)),),
            because=("dist:setuptools",),
            brings=tuple(f"build:{one}" for one in builds.packages),
        )


def _at_least(version: str) -> bool:
    return not _is_before(version, _WITHOUT_PKG_RESOURCES)


def _is_before(version: str, limit: Version) -> bool:
    try:
        return Version(version) < limit
    except InvalidVersion:
        return False


@rule("EB607", "ninja is not installed", severity=Severity.NOTE)
def no_ninja(installed: Installed, builds: Builds) -> Iterator[Finding]:
    """Without ninja extensions are compiled one file at a time.

    **What it finds.** No `ninja` package in the environment. One that
    the system has on PATH serves as well and is not seen.

    **Why it matters.** A build takes many times as long, and `MAX_JOBS` has no effect; some
    packages (flash-attn) then take hours.

    **Example.** flash-attn on 16 cores: minutes with ninja, about two hours without.

    **Fix.** `uv pip install ninja`.
    """
    if installed.find("torch") and installed.find("ninja") is None:
        yield Finding(
            code="EB607",
            severity=Severity.NOTE,
            subject="ninja",
            message=f"ninja is not installed: {builds.named} will be built one file at a time",
            fixes=(Install(requirements=("ninja",)),),
        )


RULES = (too_many_jobs, no_pkg_resources, no_ninja)
