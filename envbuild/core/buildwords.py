"""What a build of a CUDA extension is told by its environment, in the words of each package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from envbuild.core.archs import runs
from envbuild.core.buildtools import nvcc_since, nvcc_wanted, torch_since
from envbuild.core.packagefile import package_text
from envbuild.model.cuda import ComputeCapability
from envbuild.model.plan import Variable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.cuda import CudaVersion

ARCHITECTURES = "TORCH_CUDA_ARCH_LIST"
BY_MACHINE = ("MAX_JOBS", "NVCC_THREADS", "CUDA_HOME", "CC", "CXX", "CUDAHOSTCXX")
"""The variables whose values the machine that builds gives; a user's own value goes before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildAim:
    """What extensions are built for.

    ``capabilities`` are those of the GPUs meant, ``cuda`` that of torch (None: the CPU build),
    ``torch`` its public version. ``ptx`` adds code that newer GPUs can compile for themselves.
    """

    torch: str
    cuda: CudaVersion | None
    capabilities: tuple[ComputeCapability, ...] = ()
    ptx: bool = False

    @property
    def wanted(self) -> tuple[ComputeCapability, ...]:
        """The capabilities, each once, in order."""
        return tuple(sorted(set(self.capabilities)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Words:
    architectures: str | None
    dotted: bool
    knows: tuple[ComputeCapability, ...]
    variables: tuple[tuple[str, str], ...]
    why: str


@cache
def _words() -> dict[str, _Words]:
    text = package_text("envbuild.core", "buildwords.toml")
    return {name: _parsed(row) for name, row in tomllib.loads(text)["packages"].items()}


def _parsed(row: dict[str, Any]) -> _Words:
    return _Words(
        architectures=row.get("architectures"),
        dotted=row.get("form") != "number",
        knows=tuple(ComputeCapability.parse(one) for one in row.get("knows", ())),
        variables=tuple(row.get("variables", {}).items()),
        why=row["why"],
    )


def _words_of(project: str) -> _Words | None:
    """Return the words of a package; ``spconv-cu126`` reads those of ``spconv``."""
    return _words().get(project) or _words().get(project.partition("-cu1")[0])


def arch_list(aim: BuildAim) -> str:
    """Return the architectures in torch's words: ``10.0;12.0``, with ``+PTX`` on the newest."""
    text = ";".join(str(one) for one in aim.wanted)
    return f"{text}+PTX" if aim.ptx and text else text


def common_variables(aim: BuildAim) -> tuple[Variable, ...]:
    """Return what every build of a stack is told; the machine fills in what is empty."""
    return tuple(_common(aim))


def _common(aim: BuildAim) -> Iterator[Variable]:
    if aim.cuda is not None and aim.capabilities:
        names = " and ".join(one.sm for one in aim.wanted)
        yield Variable(
            name=ARCHITECTURES,
            value=arch_list(aim),
            reason=f"the GPUs meant are {names}; without it torch asks the GPU of this machine",
        )
        numbers = _numbers(aim)
        yield Variable(name="CUDAARCHS", value=numbers, reason="the same for CMake")
        yield Variable(
            name="CMAKE_CUDA_ARCHITECTURES",
            value=numbers,
            reason="the same for setup.py files that hand it on to CMake",
        )
        yield Variable(
            name="FORCE_CUDA",
            value="1",
            reason="many setup.py files leave the CUDA part out where they see no GPU",
        )
        yield Variable(name="CUDA_HOME", value="", reason=f"the toolkit of CUDA {aim.cuda.major}")
        for name in ("CC", "CXX", "CUDAHOSTCXX"):
            yield Variable(
                name=name, value="", reason="where the default compiler is too new for nvcc"
            )
    yield Variable(name="MAX_JOBS", value="", reason="from the memory and the cores")
    yield Variable(name="NVCC_THREADS", value="", reason="from the memory and the cores")


def _numbers(aim: BuildAim) -> str:
    return ";".join(_number(one) for one in aim.wanted)


def _number(capability: ComputeCapability) -> str:
    return capability.sm.removeprefix("sm_")


def variables_for(project: str, aim: BuildAim) -> tuple[Variable, ...]:
    """Return what the build of one package is told beside that, sorted by name."""
    words = _words_of(project)
    if words is None or aim.cuda is None or not aim.capabilities:
        return ()
    pairs = {name: value.format(cuda=aim.cuda) for name, value in words.variables}
    if words.architectures is not None:
        pairs[words.architectures] = _in_words(words, aim)
    return tuple(Variable(name=n, value=v, reason=words.why) for n, v in sorted(pairs.items()))


def fixed_words(project: str) -> tuple[tuple[str, str], ...]:
    """Return the variables of a package that are the same for every GPU and every CUDA."""
    words = _words_of(project)
    pairs = words.variables if words else ()
    return tuple(sorted((name, value) for name, value in pairs if "{" not in value))


def _in_words(words: _Words, aim: BuildAim) -> str:
    chosen = [_chosen(words, one) or one for one in aim.wanted]
    each = [str(one) if words.dotted else _number(one) for one in dict.fromkeys(chosen)]
    text = ";".join(each)
    return f"{text}+PTX" if words.dotted and aim.ptx else text


def _chosen(words: _Words, capability: ComputeCapability) -> ComputeCapability | None:
    """Return the newest of what a package knows whose code runs on a GPU."""
    if not words.knows:
        return capability
    return max((one for one in words.knows if runs(one, capability)), default=None)


def built_capabilities(project: str, aim: BuildAim) -> tuple[ComputeCapability, ...]:
    """Return for what a package is compiled, to be found in its shared objects."""
    words = _words_of(project)
    if aim.cuda is None or words is None:
        return aim.wanted if aim.cuda is not None else ()
    return tuple(dict.fromkeys(_chosen(words, one) or one for one in aim.wanted))


def oldest_nvcc(aim: BuildAim) -> CudaVersion | None:
    """Return the first nvcc that compiles for every capability, None where nothing tells."""
    found = [since for one in aim.capabilities if (since := nvcc_since(one)) is not None]
    return max(found, default=None) if aim.cuda is not None else None


def build_refusals(projects: Iterable[str], aim: BuildAim) -> tuple[str, ...]:
    """Return why packages cannot be built for the GPUs, in one sentence each."""
    return tuple(dict.fromkeys(_refusals(tuple(projects), aim)))


def _refusals(projects: tuple[str, ...], aim: BuildAim) -> Iterator[str]:
    if aim.cuda is None or not projects:
        return
    for one in aim.wanted:
        since = torch_since(one)
        if since is not None and _is_before(aim.torch, since):
            yield f"torch {aim.torch} does not take {one} in {ARCHITECTURES}, torch {since} does"
        wanted = nvcc_wanted(aim.cuda, one)
        if wanted is not None and not _same_major_later(aim.cuda, one):
            yield f"nvcc of CUDA {aim.cuda} does not compile for {one}, wanted {wanted}"
        for project in projects:
            words = _words_of(project)
            if words is not None and _chosen(words, one) is None:
                knows = ", ".join(str(known) for known in words.knows)
                yield f"{project} is not written for {one}: it compiles for {knows} alone"


def _same_major_later(cuda: CudaVersion, capability: ComputeCapability) -> bool:
    """Whether a later nvcc of torch's CUDA major compiles for it; torch takes any minor."""
    since = nvcc_since(capability)
    return since is not None and since.major == cuda.major and cuda < since


def nvcc_refusals(nvcc: CudaVersion, aim: BuildAim) -> tuple[str, ...]:
    """Return why the nvcc of a machine cannot build for the GPUs, in one sentence each."""
    if aim.cuda is None:
        return ()
    if nvcc.major != aim.cuda.major:
        return (f"nvcc is of CUDA {nvcc}, torch {aim.torch} is built with CUDA {aim.cuda}",)
    pairs = ((one, nvcc_wanted(nvcc, one)) for one in aim.wanted)
    return tuple(
        f"nvcc of CUDA {nvcc} does not compile for {one}, wanted {wanted}"
        for one, wanted in pairs
        if wanted is not None
    )


def _is_before(version: str, limit: str) -> bool:
    try:
        return Version(version) < Version(limit)
    except InvalidVersion:
        return False
