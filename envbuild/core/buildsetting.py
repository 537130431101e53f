"""How a machine builds an extension: its toolkit, its compilers, its jobs, or why it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.buildjobs import jobs_for
from envbuild.core.buildtools import clashes_with_glibc, gigabytes
from envbuild.core.buildwords import nvcc_refusals
from envbuild.core.hostcompiler import host_compiler, too_new
from envbuild.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.buildwords import BuildAim
    from envbuild.model.host import Host, Toolkit
    from envbuild.model.plan import Compile, Variable

_UNKNOWN_MEMORY = 4 << 30
_OWN = ("CUDA_HOME", "CUDA_PATH")


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildTools:
    """The toolkit and the C++ compiler that a machine builds with, each None where absent."""

    toolkit: Toolkit | None
    compiler: str
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def nvcc(self) -> str:
        """The version of nvcc, empty where there is none."""
        version = self.toolkit.version if self.toolkit else None
        return str(version) if version else ""


def tools_of(host: Host, aim: BuildAim) -> BuildTools:
    """Choose what builds; what the user named in CUDA_HOME, CC and CXX goes before."""
    toolkit = choose_toolkit(host, aim) if aim.cuda is not None else None
    compiler = host_compiler(host.compilers)
    chosen: tuple[tuple[str, str], ...] = ()
    version = compiler.version if compiler else None
    if toolkit is not None and toolkit.version is not None:
        newer = too_new(host.compilers, toolkit.version)
        if newer is not None and newer.fitting is not None and host.variable("CXX") is None:
            chosen = newer.variables
            fitting = next(one for one in host.compilers if one.path == newer.fitting)
            version = fitting.version
    return BuildTools(toolkit=toolkit, compiler=version or "", variables=chosen)


def choose_toolkit(host: Host, aim: BuildAim) -> Toolkit | None:
    """Return the toolkit that fits torch: the user's own, else the closest to torch's CUDA."""
    with_nvcc = [one for one in host.toolkits if one.nvcc and one.version]
    own = next((one for one in with_nvcc if one.how in _OWN), None)
    if own is not None or aim.cuda is None:
        return own
    cuda = aim.cuda
    fitting = [
        one for one in with_nvcc if one.version is not None and not nvcc_refusals(one.version, aim)
    ]
    # An nvcc on PATH may be a link to a toolkit that lies elsewhere, with its headers.
    return min(
        fitting,
        key=lambda one: (one.version != cuda, one.how == "PATH"),
        default=next(iter(with_nvcc), None),
    )


def refuse_machine(host: Host, tools: BuildTools, aim: BuildAim, *, project: str) -> None:
    """Raise WorldError where a machine cannot compile CUDA code for the GPUs meant."""
    reasons = tuple(_reasons(host, tools, aim))
    if not reasons:
        return
    cuda = f"CUDA {aim.cuda}" if aim.cuda else "CUDA"
    raise WorldError(
        f"`{project}` cannot be compiled here: {'; '.join(reasons)}",
        hint=f"install the {cuda} toolkit and name its folder in CUDA_HOME, or build in a `-devel`"
        " image; `envbuild doctor --build` says more",
    )


def _reasons(host: Host, tools: BuildTools, aim: BuildAim) -> Iterator[str]:
    if aim.cuda is None:
        yield "it has CUDA code, and the torch of the lock is a CPU build"
        return
    toolkit = tools.toolkit
    if toolkit is None or toolkit.version is None:
        yield "no nvcc was found"
        return
    yield from nvcc_refusals(toolkit.version, aim)
    newer = too_new(host.compilers, toolkit.version) if not tools.variables else None
    if newer is not None:
        yield (
            f"{newer.name} {newer.compiler.version} is newer than nvcc {toolkit.version} accepts"
            f" ({newer.newest} at most)"
        )
    if host.glibc and clashes_with_glibc(toolkit.version, host.glibc):
        yield f"the headers of glibc {host.glibc} clash with those of CUDA {toolkit.version}"


def build_variables(
    step: Compile, common: tuple[Variable, ...], *, host: Host, tools: BuildTools
) -> dict[str, str]:
    """Return the variables of one build; what only the machine knows is filled in."""
    found = {one.name: one.value for one in (*common, *step.variables) if one.value}
    machine = _machine(step.build.project, host, tools)
    asked = {one.name for one in common if not one.value}
    for name, value in machine.items():
        if name in asked or name in ("MAX_JOBS", "NVCC_THREADS"):
            found.setdefault(name, host.variable(name) or value)
    return {name: value for name, value in found.items() if value}


def _machine(project: str, host: Host, tools: BuildTools) -> dict[str, str]:
    limits = [one for one in (host.memory_bytes, host.memory_limit_bytes) if one]
    jobs = jobs_for(
        memory_bytes=min(limits, default=_UNKNOWN_MEMORY),
        cores=host.cores or 1,
        gigabytes=gigabytes(project),
    )
    return {
        "MAX_JOBS": str(jobs.max_jobs),
        "NVCC_THREADS": str(jobs.nvcc_threads),
        "CUDA_HOME": tools.toolkit.path if tools.toolkit else "",
        **dict(tools.variables),
    }
