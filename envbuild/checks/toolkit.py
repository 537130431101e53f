"""EB601, EB608: the CUDA toolkit that builds, and a torch that CUDA code can be built for."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import torch_cuda, torch_label, torch_public
from envbuild.checks.rule import rule
from envbuild.model.builds import Builds
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Export, Install, Manual
from envbuild.model.host import Host
from envbuild.model.installed import Installed
from envbuild.model.project import IndexUrls
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.model.cuda import CudaVersion
    from envbuild.model.fix import Fix
    from envbuild.model.host import Toolkit

# Where torch looks for the toolkit, in its order; `conda` and `wheel` are found by PATH as well.
_ORDER = ("CUDA_HOME", "CUDA_PATH", "PATH", "conda", "default", "wheel")


def toolkit_of(host: Host) -> Toolkit | None:
    """Return the toolkit that a build takes."""
    named = [one for one in host.toolkits if one.how in _ORDER]
    return min(named, key=lambda one: _ORDER.index(one.how), default=None)


def is_of_another_cuda(toolkit: Toolkit, installed: Installed | None) -> bool:
    """Whether nothing can be built with a toolkit, so that it has to go for torch's sake."""
    cuda = torch_cuda(installed) if installed is not None else None
    return cuda is not None and toolkit.version is not None and toolkit.version.major != cuda.major


@rule("EB601", "nvcc does not fit torch", severity=Severity.ERROR)
def wrong_toolkit(installed: Installed, host: Host, builds: Builds) -> Iterator[Finding]:
    """CUDA code is built with the nvcc of CUDA_HOME, which must be of torch's CUDA major.

    **What it finds.** No nvcc; a `CUDA_HOME` that names nothing, a list
    of folders, or nvcc itself; an nvcc of another CUDA major than torch's (an error), or of
    another minor (a note).

    **Why it matters.** `The detected CUDA version (10.1) mismatches the version that was used to
    compile PyTorch (12.1)`; some releases of torch print `(%s)` in the place of both numbers.
    Debian's `/usr/bin/nvcc` is often an old one that stands before the toolkit in PATH.

    **Example.** nvcc 13.0 of /usr/local/cuda, torch 2.8.0 is built with CUDA 12.8.

    **Fix.** Install the toolkit of torch's CUDA, and `export CUDA_HOME=/usr/local/cuda-12.8`.
    """
    cuda = torch_cuda(installed)
    if cuda is None:
        return
    toolkit = toolkit_of(host)
    problem = _problem(toolkit, host)
    if toolkit is None or problem:
        yield _finding(builds, problem or "no CUDA toolkit was found", cuda, host, toolkit)
    elif is_of_another_cuda(toolkit, installed):
        text = f"nvcc is of CUDA {toolkit.version}, {torch_label(installed)} of CUDA {cuda}"
        yield _finding(builds, text, cuda, host, toolkit)
    elif toolkit.version is not None and toolkit.version != cuda:
        yield Finding(
            code="EB601",
            severity=Severity.NOTE,
            subject=toolkit.path,
            message=f"nvcc is of CUDA {toolkit.version}, torch of {cuda}: torch warns and builds",
            evidence=(f"found by {toolkit.how}",),
        )


def _problem(toolkit: Toolkit | None, host: Host) -> str | None:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        value = host.variable(variable)
        if value and ":" in value:
            return f"{variable} is a list of folders (`{value}`), wanted one"
        if value and posixpath.basename(value.rstrip("/")) in ("nvcc", "bin"):
            return f"{variable} is `{value}`, wanted the folder above `bin`"
        if value:
            break
    if toolkit is None:
        return "no CUDA toolkit was found"
    if not toolkit.exists:
        return f"{toolkit.how} names `{toolkit.path}`, where nothing lies"
    if toolkit.nvcc is None:
        return f"`{toolkit.path}` has no bin/nvcc"
    return None


def _finding(
    builds: Builds, text: str, cuda: CudaVersion, host: Host, toolkit: Toolkit | None
) -> Finding:
    debian = toolkit is not None and toolkit.nvcc == "/usr/bin/nvcc"
    return Finding(
        code="EB601",
        severity=Severity.ERROR,
        subject=toolkit.path if toolkit else "nvcc",
        message=f"{text}: {builds.named} cannot be built",
        evidence=(
            *((f"found by {toolkit.how}",) if toolkit else ()),
            *(
                ("/usr/bin/nvcc is of the distribution, not of NVIDIA's packages",)
                if debian
                else ()
            ),
        ),
        fixes=(_better(cuda, host),),
        because=(f"env:{toolkit.how}",) if toolkit and toolkit.how.startswith("CUDA") else (),
        brings=tuple(f"build:{name}" for name in builds.packages),
    )


def _better(cuda: CudaVersion, host: Host) -> Fix:
    """Name a toolkit of torch's major that is there, its own minor first."""
    there = [
        one
        for one in host.toolkits
        if one.exists and one.nvcc and one.version and one.version.major == cuda.major
    ]
    for one in sorted(there, key=lambda one: (one.version != cuda, one.how == "PATH")):
        return Export(variable="CUDA_HOME", value=one.path)
    return Manual(
        text=(
            f"install the CUDA {cuda} toolkit (apt-get install -y cuda-toolkit-"
            f"{cuda.major}-{cuda.minor}, or a `-devel` image) and"
            f" export CUDA_HOME=/usr/local/cuda-{cuda}"
        )
    )


@rule("EB608", "torch is a CPU build, CUDA extensions are built", severity=Severity.ERROR)
def cpu_torch(installed: Installed, host: Host, builds: Builds, facts: Facts) -> Iterator[Finding]:
    """The installed torch has no CUDA, so nothing with CUDA code can be compiled for it.

    **What it finds.** A CPU build of torch on a machine with a GPU, or
    with `TORCH_CUDA_ARCH_LIST` or `FORCE_CUDA` set. Without these it is a warning, since some
    packages also build without CUDA.

    **Why it matters.** The build fails, or makes a package without its CUDA part, and the error
    looks as if nvcc were at fault.

    **Example.** pointops with torch 2.7.0+cpu.

    **Fix.** Install a CUDA build of torch (EB104 says how), then build again.
    """
    if installed.torch is None or installed.torch.hip or installed.torch.cuda:
        return
    wants = host.gpus or host.variable("TORCH_CUDA_ARCH_LIST") or host.variable("FORCE_CUDA")
    yield Finding(
        code="EB608",
        severity=Severity.ERROR if wants else Severity.WARNING,
        subject=torch_label(installed),
        message=(
            f"{torch_label(installed)} is a CPU build (torch.version.cuda is None): {builds.named}"
            " cannot be built, with any nvcc"
        ),
        fixes=(_cuda_torch(installed, host, facts, wanted=bool(wants)),),
        because=("dist:torch",),
        brings=tuple(f"build:{name}" for name in builds.packages),
    )


def _cuda_torch(installed: Installed, host: Host, facts: Facts, *, wanted: bool) -> Fix:
    """Name the build of the same torch for the toolkit that is there, else for the newest CUDA."""
    public, toolkit = torch_public(installed), toolkit_of(host)
    there = toolkit.version if toolkit else None
    found = [one.cuda for one in facts.torch_builds() if one.torch == public and one.cuda]
    found.sort(key=lambda cuda: (cuda == there, there and cuda.major == there.major, cuda))
    if not found or not wanted:
        return Manual(text="install a CUDA build of torch: name a GPU in a target and lock")
    tag = found[-1].tag
    index = f"{IndexUrls().pytorch}/{tag}"
    return Install(requirements=(f"torch=={public}+{tag}",), index=index)


RULES = (wrong_toolkit, cpu_torch)
