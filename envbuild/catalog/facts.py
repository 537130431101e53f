"""What is known about builds from their bytes: GPU code, symbols, pairs, drivers."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from envbuild.catalog.order import release_key
from envbuild.catalog.wheels import canonical
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.facts import DeviceCode, Pairing, SymbolSpan, TorchBuild

if TYPE_CHECKING:
    from envbuild.catalog.layout import BuildRow, CodeRow, LibraryRow, PairRow
    from envbuild.catalog.storage import Storage
    from envbuild.model.target import Platform

# CUDA's minor version compatibility holds within a major from 11.1 on, so the oldest driver of
# a major serves minors that are not listed.
_FIRST_COMPATIBLE = CudaVersion(major=11, minor=1)
_MACHINE = re.compile(r"(x86_64|aarch64)\.whl$")


class FactTable:
    """Builds of torch and facts about single releases."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._builds: dict[tuple[str, CudaVersion | None], TorchBuild] = {}

    def torch_builds(self) -> tuple[TorchBuild, ...]:
        """Return every known build of torch, newest first, the CPU build last of its release."""
        return tuple(self._known_builds().values())

    def torch_build(self, public: str, cuda: CudaVersion | None) -> TorchBuild | None:
        """Return what is known of one build of torch."""
        return self._known_builds().get((public, cuda))

    def device_code(self, filename: str) -> DeviceCode | None:
        """Return the GPU code of a wheel: of this file, else of its release on that machine."""
        data = self._storage.code()
        if filename in data["files"]:
            return _code(data["files"][filename])
        project, version = _release(filename)
        machine = _MACHINE.search(filename)
        if machine is None:
            return None
        row = data["releases"].get(f"{project}=={version} {machine[1]}")
        if row is not None:
            return dataclasses.replace(_code(row), family=True)
        return self._torch_code(filename, version, machine[1]) if project == "torch" else None

    def pairing(self, project: str, version: str) -> Pairing | None:
        """Return which torch a release works with; the local version is ignored."""
        name, public = canonical(project), version.partition("+")[0]
        data = self._storage.pairings()
        for row in data["releases"].get(name, []):
            if row["version"] == public:
                return _pairing(name, row)
        row_of_minor = data["minors"].get(name, {}).get(".".join(public.split(".")[:2]))
        return _pairing(name, {**row_of_minor, "version": public}) if row_of_minor else None

    def pairings(self, project: str) -> tuple[Pairing, ...]:
        """Return every known pairing of a project, newest release first."""
        name = canonical(project)
        rows = self._storage.pairings()["releases"].get(name, [])
        return tuple(_pairing(name, row) for row in rows)

    def torch_needs(self, public: str, library: str) -> tuple[str, ...] | None:
        """Return the symbols that torch imports from a library; empty if it uses none of it."""
        data = self._storage.symbols()
        libraries = data["releases"].get(public)
        if libraries is None:
            return None
        index = libraries.get(library.lower())
        return () if index is None else tuple(data["sets"][index])

    def nccl_first_version(self, symbol: str, *, cuda_major: int) -> str | None:
        """Return the first NCCL version that exports a symbol."""
        return self._storage.nccl()["first"].get(f"cu{cuda_major}", {}).get(symbol)

    def nccl_versions(self, *, cuda_major: int) -> tuple[str, ...]:
        """Return every NCCL version that was examined, oldest first."""
        return tuple(self._storage.nccl()["versions"].get(f"cu{cuda_major}", ()))

    def symbol_span(self, symbol: str, *, library: str) -> SymbolSpan | None:
        """Return between which releases a library exports a symbol, of all its packages.

        One that the builds for an old CUDA lost is not gone while the others have it.
        """
        spans = []
        for package in self._storage.libraries()["packages"].values():
            for soname, row in package["libraries"].items():
                if library == soname or library.startswith(f"{soname}."):
                    spans.append(_span(symbol, row, package["product"]))
        known = [span for span in spans if span.first or span.gone]
        if not known:
            return None
        first = [span.first for span in known if span.first]
        gone = [span.gone for span in known if span.gone]
        return SymbolSpan(
            product=known[0].product,
            first=min(first, key=release_key, default=None),
            gone=max(gone, key=release_key) if len(gone) == len(known) else None,
        )

    def shared_paths(self, a: str, b: str) -> tuple[str, ...]:
        """Return paths that two distributions both own with different content."""
        key = " ".join(sorted((canonical(a), canonical(b))))
        return tuple(self._storage.shared()["paths"].get(key, ()))

    def minimum_driver(self, cuda: CudaVersion, platform: Platform) -> str | None:
        """Return the oldest driver of a CUDA version, or of its major if that is all known."""
        table = self._storage.drivers()["systems"].get(platform.value.partition("-")[0], {})
        if cuda.tag in table or cuda < _FIRST_COMPATIBLE:
            return table.get(cuda.tag)
        majors = {CudaVersion.parse(tag).major: driver for tag, driver in table.items()}
        return majors.get(cuda.major)

    def _known_builds(self) -> dict[tuple[str, CudaVersion | None], TorchBuild]:
        if not self._builds:
            builds = map(_build, self._storage.builds())
            self._builds = {(build.torch, build.cuda): build for build in builds}
        return self._builds

    def _torch_code(self, filename: str, version: str, machine: str) -> DeviceCode | None:
        """Return the code of a torch wheel by the arch list of its build."""
        public, _, local = version.partition("+")
        if not local and filename.endswith("-linux_aarch64.whl"):
            return None  # NOTE: the CPU page and the CUDA pages use the same name
        build = self._build_named(public, local, machine)
        if build is None:
            return None
        if build.cuda is None:
            return DeviceCode(sass=(), source="CPU build", family=True)
        code = build.code_x86_64 if machine == "x86_64" else build.code_aarch64
        return None if code is None else dataclasses.replace(code, family=True)

    def _build_named(self, public: str, local: str, machine: str) -> TorchBuild | None:
        """Return the build of a version: by its local version, else the one that PyPI serves."""
        if local == "cpu":
            return self.torch_build(public, None)
        if local:
            try:
                return self.torch_build(public, CudaVersion.parse(local))
            except ValueError:
                return None
        for build in self.torch_builds():
            on_pypi = build.on_pypi if machine == "x86_64" else build.on_pypi_aarch64
            if build.torch == public and on_pypi:
                return build
        return None


def _span(symbol: str, row: LibraryRow, product: str) -> SymbolSpan:
    first = next((version for version, names in row["first"].items() if symbol in names), None)
    gone = next((version for version, names in row["gone"].items() if symbol in names), None)
    return SymbolSpan(product=product, first=first, gone=gone)


def _release(filename: str) -> tuple[str, str]:
    """Return the project and the version that a wheel's file name holds."""
    project, _, rest = filename.partition("-")
    return canonical(project), rest.partition("-")[0].lower()


def _code(row: CodeRow) -> DeviceCode:
    return DeviceCode(
        sass=tuple(map(ComputeCapability.parse, row["sass"])),
        ptx=tuple(map(ComputeCapability.parse, row["ptx"])),
        isa=tuple(
            (ComputeCapability.parse(capability), _isa(version))
            for capability, version in row.get("isa", {}).items()
        ),
        source=row["source"],
    )


def _isa(version: str) -> tuple[int, int]:
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def _build(row: BuildRow) -> TorchBuild:
    code = {machine: _code(found) for machine, found in row["code"].items()}
    return TorchBuild(
        torch=row["torch"],
        cuda=None if row["cuda"] is None else CudaVersion.parse(row["cuda"]),
        on_pypi=row["on_pypi"],
        on_pypi_aarch64=row["on_pypi_aarch64"],
        companions=tuple(sorted(row["companions"].items())),
        cxx11_abi=row["cxx11_abi"],
        code_x86_64=code.get("x86_64"),
        code_aarch64=code.get("aarch64"),
        pythons=tuple(row["pythons"]),
        confidence=row["confidence"],
        source=row["source"],
    )


def _pairing(project: str, row: PairRow) -> Pairing:
    return Pairing(
        project=project, version=row["version"], torch=row["torch"], source=row["source"]
    )
