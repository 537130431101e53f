"""What is known about builds from their bytes: GPU code, symbols, pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envbuild.model.cuda import ComputeCapability, CudaVersion


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceCode:
    """GPU code of a wheel: machine code (SASS) and intermediate code (PTX) per capability.

    ``isa`` is the version of PTX that the code for a capability is written in, the newest of a
    capability; what is not known is left out. ``family`` is True where the numbers were taken
    from another build of the same release (another Python, say) and not from this very file.
    """

    sass: tuple[ComputeCapability, ...]
    ptx: tuple[ComputeCapability, ...] = ()
    isa: tuple[tuple[ComputeCapability, tuple[int, int]], ...] = ()
    source: str = ""
    family: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SymbolSpan:
    """Between which releases of a product a library exports a symbol.

    ``first`` is None where it is older than what was read, ``gone`` where it is still there.
    """

    product: str
    first: str | None = None
    gone: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchBuild:
    """One released build of torch; fields are None where nothing is known.

    ``torch`` is the public version; ``cuda`` None means the CPU build. ``companions`` maps
    torchvision and torchaudio to the public version released for it. ``on_pypi`` speaks of
    PyPI's x86_64 wheel, ``on_pypi_aarch64`` of its aarch64 wheel, which is the CPU build up to
    torch 2.10.
    """

    torch: str
    cuda: CudaVersion | None
    on_pypi: bool
    companions: tuple[tuple[str, str], ...] = ()
    cxx11_abi: bool | None = None
    code_x86_64: DeviceCode | None = None
    code_aarch64: DeviceCode | None = None
    pythons: tuple[str, ...] = ()
    confidence: str = ""
    source: str = ""
    on_pypi_aarch64: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Pairing:
    """Which torch a release of a coupled package works with, whatever its metadata declares.

    ``torch`` is a PEP 440 specifier over public versions.
    """

    project: str
    version: str
    torch: str
    source: str = ""
