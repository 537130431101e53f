"""EB403, EB404: the NVIDIA driver of the machine, against torch's CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.checks.owners import torch_cuda, torch_label, torch_public
from envbuild.checks.rule import rule
from envbuild.core.ptxisa import cuda_of_driver
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Manual
from envbuild.model.host import Host
from envbuild.model.installed import Installed
from envbuild.model.project import IndexUrls
from envbuild.model.target import Platform
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.model.cuda import CudaVersion


def _driver(host: Host) -> Version | None:
    """Return the driver that counts: a toolkit's `compat` libcuda may be newer than it."""
    if not host.driver:
        return None
    found = (_version(text) for text in (host.driver, host.compat_driver) if text)
    return max((one for one in found if one is not None), default=None)


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def highest_cuda(host: Host) -> CudaVersion | None:
    """Return the CUDA that the driver came with, whose PTX it can still compile.

    None where there is no driver to judge by, or it is newer than what is known.
    """
    driver = None if host.is_image or host.tegra else _driver(host)
    return cuda_of_driver(driver) if driver is not None else None


@rule("EB403", "The driver is too old for torch's CUDA", severity=Severity.ERROR)
def old_driver(installed: Installed, host: Host, facts: Facts) -> Iterator[Finding]:
    """The NVIDIA driver cannot run the CUDA that torch is built with.

    **What it finds.** A driver older than the oldest one that NVIDIA supports for torch's CUDA
    major. Within a major every driver runs the machine code of every release: 525 runs CUDA 12.8,
    and the version in the corner of `nvidia-smi` is no ceiling. For PTX it is one: see EB401. A
    newer `libcuda` of a toolkit's `compat` folder counts as the driver.

    **Why it matters.** `The NVIDIA driver on your system is too old (found version 12080)`, or
    `torch.cuda.is_available()` is False and training runs on the CPU. PyPI's torch is built for
    CUDA 13 from 2.11 on, which needs driver 580.

    **Example.** torch 2.11.0+cu130 needs driver 580 or newer, found 570.86.10.

    **Fix.** Update the driver, or install a build of the same torch for the driver's CUDA major:
    `--index https://download.pytorch.org/whl/cu126` under a driver of CUDA 12.
    """
    cuda, driver = torch_cuda(installed), _driver(host)
    if cuda is None or driver is None or host.is_image or host.tegra:
        return
    arm = installed.machine == "aarch64"
    platform = Platform.LINUX_AARCH64 if arm else Platform.LINUX_X86_64
    least = facts.minimum_driver(cuda, platform)
    if least is None or driver >= Version(least):
        return
    older = _older_build(installed, driver, platform, facts=facts)
    yield Finding(
        code="EB403",
        severity=Severity.ERROR,
        subject=torch_label(installed),
        message=(
            f"{torch_label(installed)} (CUDA {cuda}) needs driver {least} or newer, found"
            f" {host.driver}"
        ),
        evidence=(
            *((f"the driver is of CUDA {highest}",) if (highest := highest_cuda(host)) else ()),
            *((f"libcuda {host.compat_driver} of `compat`",) if host.compat_driver else ()),
        ),
        hint=f"or update the driver to {least}",
        fixes=(older or Manual(text=f"update the NVIDIA driver to {least} or newer"),),
        because=("dist:torch",),
    )


def _older_build(
    installed: Installed, driver: Version, platform: Platform, *, facts: Facts
) -> Install | None:
    """Return the same torch for the newest CUDA that the driver runs, with its companions."""
    public = torch_public(installed)
    for build in facts.torch_builds():
        if build.torch != public or build.cuda is None:
            continue
        least = facts.minimum_driver(build.cuda, platform)
        if least is not None and driver >= Version(least):
            tag = build.cuda.tag
            companions = [(name, v) for name, v in build.companions if installed.find(name)]
            wanted = [("torch", build.torch), *companions]
            return Install(
                requirements=tuple(f"{name}=={version}+{tag}" for name, version in wanted),
                index=f"{IndexUrls().pytorch}/{tag}",
            )
    return None


@rule("EB404", "There is a GPU and no driver", severity=Severity.ERROR)
def no_driver(installed: Installed, host: Host) -> Iterator[Finding]:
    """The machine has an NVIDIA GPU, and no NVIDIA driver was found for it.

    **What it finds.** GPU devices on a machine whose driver cannot be read, under a CUDA build of
    torch. A machine without a GPU is normal (CI, image builds) and not reported.

    **Why it matters.** `torch.cuda.is_available()` is False, and training runs on the CPU without
    an error.

    **Example.** An RTX 4090 in a container that was started without `--gpus all`.

    **Fix.** Install the driver; start a container with `docker run --gpus all` and the NVIDIA
    container toolkit.
    """
    has_gpu = bool(host.gpus or host.unknown_gpus)
    if host.is_image or host.driver or host.tegra or not has_gpu:
        return
    if torch_cuda(installed) is None:
        return
    names = ", ".join(dict.fromkeys((*(gpu.name for gpu in host.gpus), *host.unknown_gpus)))
    yield Finding(
        code="EB404",
        severity=Severity.ERROR,
        subject=names,
        message=f"{names} has no NVIDIA driver, {torch_label(installed)} will use the CPU",
        fixes=(Manual(text="install the NVIDIA driver, or start the container with `--gpus all`"),),
    )


RULES = (old_driver, no_driver)
