"""Environments as literals for the rules of `envbuild doctor`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.catalog.reader import Catalog
from envbuild.checks.rule import Judged, judge
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.facts import DeviceCode
from envbuild.model.host import Compiler, Host, Toolkit
from envbuild.model.installed import (
    Distribution,
    EnvironmentKind,
    Installed,
    Ownership,
    RecordEntry,
    TorchText,
)
from envbuild.model.layers import Aim
from envbuild.model.links import (
    BinaryCode,
    DeviceCodes,
    ImportsOf,
    Links,
    LoadedLibrary,
    MissingLibrary,
    MissingSymbol,
    MissingVersion,
)
from envbuild.model.target import Gpu
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.checks.rule import Rule
    from envbuild.model.finding import Finding

PREFIX = "/app/.venv"
SITE = f"{PREFIX}/lib/python3.11/site-packages"
FACTS = Catalog.load()
TORCH_CUDA = "torch/lib/libtorch_cuda.so"
OLD_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
NEW_ERROR = (
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)


def dist(label: str, *files: str, site: str = SITE, **changes: object) -> Distribution:
    """Return ``torch 2.11.0`` with files, relative to its site folder."""
    name, _, version = label.partition(" ")
    base = Distribution(
        name=name,
        version=version,
        site=site,
        info=f"{name.replace('-', '_')}-{version}.dist-info",
        record=tuple(RecordEntry(path=path, sha256="0" * 64, size=1) for path in files),
        installer="uv",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def env(*dists: Distribution, torch: str | None = None, **changes: object) -> Installed:
    """Return an environment; ``torch`` is what torch/version.py says (``2.11.0+cu130``)."""
    text = None
    if torch is not None:
        local = torch.partition("+cu")[2]
        cuda = f"{local[:2]}.{local[2:]}" if local else None
        text = TorchText(version=torch, cuda=cuda)
    base = Installed(
        root="/",
        prefix=PREFIX,
        executable=f"{PREFIX}/bin/python",
        python="3.11.7",
        kind=EnvironmentKind.VENV,
        sites=(SITE,),
        own_sites=(SITE,),
        distributions=dists,
        torch=text,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def owned(*dists: Distribution, **changes: object) -> Ownership:
    """Return who owns what when no file is shared."""
    pairs = {f"{one.site}/{e.path}": one.label for one in dists for e in one.record or ()}
    base = Ownership(owners=tuple(pairs.items()))
    return replace(base, **changes)  # type: ignore[arg-type]


def at(path: str) -> str:
    return f"{SITE}/{path}"


def symbols(path: str, *names: str, provider: str | None = None) -> tuple[MissingSymbol, ...]:
    found = provider if provider is None or provider.startswith("/") else at(provider)
    return tuple(MissingSymbol(path=at(path), name=name, provider=found) for name in names)


def library(path: str, name: str, *, optional: bool = False) -> MissingLibrary:
    return MissingLibrary(path=at(path), library=name, optional=optional)


def version(path: str, name: str, found: str, newest: str) -> MissingVersion:
    soname = found.rpartition("/")[2]
    return MissingVersion(path=at(path), library=soname, version=name, found=found, newest=newest)


def loaded(soname: str, path: str, how: str = "rpath", by: str = TORCH_CUDA) -> LoadedLibrary:
    return LoadedLibrary(
        soname=soname, path=path, how=how, needed_by=by if by == "LD_PRELOAD" else at(by)
    )


def imports(path: str, *names: str, abi: str | None = None) -> ImportsOf:
    return ImportsOf(path=at(path), symbols=names, abi=abi)


def capability(text: str) -> ComputeCapability:
    return ComputeCapability.parse(text)


def aim(*gpus: str) -> Aim:
    return Aim(capabilities=tuple(map(capability, gpus)), source="--gpu")


def code(path: str, text: str, *, isa: tuple[int, int] | None = None) -> BinaryCode:
    """Return the code of a file from ``sm_80 sm_90 compute_90``; ``isa`` is that of its PTX."""
    names = text.split()
    found = DeviceCode(
        sass=tuple(capability(name) for name in names if name.startswith("sm")),
        ptx=tuple(capability(name) for name in names if name.startswith("compute")),
        isa=tuple((capability(name), isa) for name in names if isa and name.startswith("compute")),
    )
    return BinaryCode(path=path if path.startswith("/") else at(path), code=found)


def codes(*binaries: BinaryCode) -> DeviceCodes:
    return DeviceCodes(binaries=binaries)


def host(**changes: object) -> Host:
    base = Host(glibc="2.36", cores=8, memory_bytes=64 << 30)
    return replace(base, **changes)  # type: ignore[arg-type]


def gpu(name: str, capability_: str) -> Gpu:
    return Gpu(name=name, capability=capability(capability_))


def toolkit(text: str | None, how: str = "default", **changes: object) -> Toolkit:
    path = f"/usr/local/cuda-{text}" if text else "/usr/local/cuda"
    base = Toolkit(
        path=path,
        version=CudaVersion.parse(text) if text else None,
        how=how,
        nvcc=f"{path}/bin/nvcc",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def compiler(path: str, number: str) -> Compiler:
    return Compiler(path=path, version=number)


def found(rule: Rule, *facts: object) -> list[Finding]:
    """Judge one rule; it must be judged."""
    given: dict[type, object] = {type(fact): fact for fact in facts}
    given.setdefault(Links, Links())
    given.setdefault(Ownership, Ownership())
    given.setdefault(Host, host())
    given[Facts] = FACTS
    (outcome,) = judge((rule,), given)
    assert isinstance(outcome, Judged), outcome
    return list(outcome.findings)


def one(rule: Rule, *facts: object) -> Finding:
    """Judge one rule, which must find exactly one thing."""
    (finding,) = found(rule, *facts)
    assert finding.code == rule.code
    return finding
