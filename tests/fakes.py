"""Wheels and facts as literals, in the place of the catalog and of the live indexes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename

from envbuild.core.context import context_for
from envbuild.core.indexpages import PYPI, flash_attn_page, pyg_page, pytorch_page
from envbuild.errors import WorldError
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.facts import DeviceCode
from envbuild.model.lock import Artifact, Pinned
from envbuild.model.project import DeclaredRequirement, IndexUrls, Layer, Project
from envbuild.model.stack import Candidate
from envbuild.model.target import Gpu, Platform, Target
from envbuild.model.wheel import WheelFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envbuild.core.context import Context
    from envbuild.model.facts import Pairing, SymbolSpan, TorchBuild
    from envbuild.model.project import BuildSpec
    from envbuild.model.wheel import IndexPage, PageKind

URLS = IndexUrls()


def cuda(text: str) -> CudaVersion:
    return CudaVersion.parse(text)


def capability(text: str) -> ComputeCapability:
    return ComputeCapability.parse(text)


def code(text: str) -> DeviceCode:
    """Read ``sm_80 sm_90 compute_90`` as the code of a wheel."""
    names = text.split()
    return DeviceCode(
        sass=tuple(capability(name) for name in names if name.startswith("sm")),
        ptx=tuple(capability(name) for name in names if name.startswith("compute")),
    )


def page(where: str) -> IndexPage:
    """Return the page of ``cu128``, ``pyg 2.7.0 cu128``, ``flash-attn 2.8.3`` or ``pypi``."""
    words = where.split()
    if where == "pypi":
        return PYPI
    if words[0] == "pyg":
        return pyg_page(URLS, words[1], words[2])
    if words[0] == "flash-attn":
        return flash_attn_page(URLS, words[1])
    found = pytorch_page(URLS, where)
    assert found is not None
    return found


def wheel(
    where: str,
    filename: str,
    *,
    requires: tuple[str, ...] | None = (),
    sha256: str | None = "0" * 64,
    folder: str | None = None,
) -> WheelFile:
    """Return a wheel of a page; ``folder`` is where it lies when that is not the page's own."""
    project, version, _, _ = parse_wheel_filename(filename)
    base = folder or (where if len(where.split()) == 1 else "files")
    return WheelFile(
        project=project,
        version=str(version),
        filename=filename,
        url=f"https://host.example/whl/{base}/{filename}",
        page=page(where),
        sha256=sha256,
        requires_dist=requires,
    )


def linux(name: str, python: str = "cp311", machine: str = "x86_64") -> str:
    """Return ``torch-2.7.0+cu128`` as the file name of a manylinux wheel."""
    return f"{name}-{python}-{python}-manylinux_2_28_{machine}.whl"


@dataclass
class FakeSource:
    """A WheelSource over literals; ``asked`` records the pages that were looked at.

    ``sdists`` are those of the default index by project and version; None where it is silent.
    """

    files: tuple[WheelFile, ...] = ()
    asked: list[tuple[str, str]] = field(default_factory=list)
    sdists: Mapping[tuple[str, str], Artifact] | None = None

    def wheels(self, page: IndexPage, project: str) -> tuple[WheelFile, ...]:
        self.asked.append((page.name, project))
        return tuple(f for f in self.files if f.page == page and f.project == project)

    def requires_dist(self, wheel: WheelFile) -> tuple[str, ...] | None:
        return wheel.requires_dist

    def sha256(self, wheel: WheelFile) -> str | None:
        return wheel.sha256

    def sdist(self, page: IndexPage, project: str, version: str) -> Artifact | None:
        if self.sdists is None:
            raise WorldError(f"{page.name} is silent")
        return self.sdists.get((project, version))


@dataclass(kw_only=True)
class FakeFacts:
    """Facts over literals; what is not given is not known."""

    builds: tuple[TorchBuild, ...] = ()
    keys: dict[PageKind, tuple[str, ...]] = field(default_factory=dict)
    codes: dict[str, DeviceCode] = field(default_factory=dict)
    pairs: tuple[Pairing, ...] = ()
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nccl: dict[str, str] = field(default_factory=dict)
    spans: dict[tuple[str, str], SymbolSpan] = field(default_factory=dict)
    shared: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    drivers: dict[int, str] = field(default_factory=dict)
    date: str = "2026-11-29"

    def pages(self, kind: PageKind) -> tuple[str, ...]:
        return self.keys.get(kind, ())

    def torch_builds(self) -> tuple[TorchBuild, ...]:
        return self.builds

    def torch_build(self, public: str, cuda: CudaVersion | None) -> TorchBuild | None:
        return next((b for b in self.builds if (b.torch, b.cuda) == (public, cuda)), None)

    def device_code(self, filename: str) -> DeviceCode | None:
        return self.codes.get(filename)

    def pairing(self, project: str, version: str) -> Pairing | None:
        return next((p for p in self.pairs if (p.project, p.version) == (project, version)), None)

    def pairings(self, project: str) -> tuple[Pairing, ...]:
        return tuple(p for p in self.pairs if p.project == project)

    def torch_needs(self, public: str, library: str) -> tuple[str, ...] | None:
        return self.needs.get(public) if library == "nccl" else None

    def nccl_first_version(self, symbol: str, *, cuda_major: int) -> str | None:
        return self.nccl.get(symbol) if cuda_major else None

    def nccl_versions(self, *, cuda_major: int) -> tuple[str, ...]:
        return tuple(sorted(set(self.nccl.values()))) if cuda_major else ()

    def symbol_span(self, symbol: str, *, library: str) -> SymbolSpan | None:
        return self.spans.get((library, symbol))

    def shared_paths(self, a: str, b: str) -> tuple[str, ...]:
        return self.shared.get((a, b), self.shared.get((b, a), ()))

    def minimum_driver(self, cuda: CudaVersion, platform: Platform) -> str | None:
        return self.drivers.get(cuda.major) if platform else None


def target(
    *gpus: str,
    python: str = "3.11",
    platform: Platform = Platform.LINUX_X86_64,
    cuda: str | None = None,
    torch: str | None = None,
    driver: str | None = None,
) -> Target:
    return Target(
        name="t",
        python=python,
        platform=platform,
        gpus=tuple(Gpu(name=gpu, capability=capability(gpu)) for gpu in gpus),
        cuda=SpecifierSet(cuda) if cuda else None,
        torch=SpecifierSet(torch) if torch else None,
        driver=SpecifierSet(driver) if driver else None,
    )


def project(
    where: Target,
    *requirements: str,
    builds: Iterable[BuildSpec] = (),
    indexes: IndexUrls = URLS,
) -> Project:
    return Project(
        text="",
        layer=Layer.PROJECT,
        targets=(where,),
        default_target=where.name,
        requirements=tuple(
            DeclaredRequirement(requirement=Requirement(text), where="[project] dependencies")
            for text in requirements
        ),
        builds=tuple(builds),
        indexes=indexes,
    )


def context(
    where: Target,
    *requirements: str,
    source: FakeSource,
    facts: FakeFacts,
    builds: Iterable[BuildSpec] = (),
) -> Context:
    found = project(where, *requirements, builds=builds)
    return context_for(found, where, source=source, facts=facts)


def candidate(where: str, version: str, *, built: str | None = None) -> Candidate:
    """Return a build of torch on a page, for Python 3.11 on x86_64."""
    accelerator = built or where
    found = wheel(where, linux(f"torch-{version}"))
    return Candidate(torch=found, cuda=None if accelerator == "cpu" else cuda(accelerator))


def pinned(
    requirement: str, filename: str | None = None, *, index: str = "https://pypi.org/simple"
) -> Pinned:
    """Return ``torch==2.7.0+cu128`` as a locked package with one file."""
    name, _, version = requirement.partition("==")
    file = filename or linux(f"{name.replace('-', '_')}-{version}")
    artifact = Artifact(filename=file, url=f"https://host.example/{file}", sha256="0" * 64)
    return Pinned(name=canonicalize_name(name), version=version, index=index, artifacts=(artifact,))
