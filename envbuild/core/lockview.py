"""A locked set with what its names and versions say about CUDA and torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion

from envbuild.core.wheeltags import fits, local_of, public_of
from envbuild.model.cuda import CudaVersion

if TYPE_CHECKING:
    from envbuild.model.lock import Artifact, Pinned, TargetLock
    from envbuild.model.stack import Stack
    from envbuild.model.target import Target
    from envbuild.ports import Facts

# NVIDIA's CUDA 13 packages that dropped the suffix (PyPI, read 2026-11-29); cuDNN, NCCL,
# cuSPARSELt and NVSHMEM keep theirs.
_UNSUFFIXED = frozenset(
    {
        "nvidia-cublas",
        "nvidia-cuda-cccl",
        "nvidia-cuda-cupti",
        "nvidia-cuda-nvcc",
        "nvidia-cuda-nvrtc",
        "nvidia-cuda-runtime",
        "nvidia-cufft",
        "nvidia-cufile",
        "nvidia-curand",
        "nvidia-cusolver",
        "nvidia-cusparse",
        "nvidia-nvjitlink",
        "nvidia-nvtx",
    }
)
_SUFFIX = re.compile(r"-cu(?P<major>1[0-9])(?P<minor>\d?)$")
_LOCAL = re.compile(
    r"(?:pt(?P<pt>\d\d+?))?(?:cu(?P<major>1\d)(?P<minor>\d?)|cpu)"
    r"(?:torch(?P<torch>\d+\.\d+)cxx11abi(?P<abi>true|false))?"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltFor:
    """What a local version says a wheel was built for; None where it says nothing.

    ``accelerator`` is ``cu128``, ``cu12`` where only the major counts, or ``cpu``.
    """

    accelerator: str
    cuda_major: int | None = None
    torch_minor: str | None = None
    cxx11_abi: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LockView:
    """Everything a check of a lock looks at."""

    stack: Stack
    lock: TargetLock
    target: Target
    facts: Facts

    def package(self, name: str) -> Pinned | None:
        """Return a package of the locked set."""
        return next((package for package in self.lock.packages if package.name == name), None)

    @property
    def torch(self) -> Pinned | None:
        """The torch of the locked set."""
        return self.package("torch")

    @property
    def cuda(self) -> CudaVersion | None:
        """The CUDA of the locked torch: by its local version, else as the lock says."""
        local = local_of(self.torch.version) if self.torch else ""
        if local.startswith("cu"):
            return CudaVersion.parse(local)
        return CudaVersion.parse(self.lock.cuda) if self.lock.cuda and local != "cpu" else None

    def wheel(self, package: Pinned) -> Artifact | None:
        """Return the wheel of a package that fits the target."""
        return next(
            (a for a in package.artifacts if a.is_wheel and fits(a.filename, self.target)), None
        )

    def built_for(self, package: Pinned) -> BuiltFor | None:
        """Return what a package's local version says, of the file name if it says more."""
        wheel = self.wheel(package)
        local = (wheel and _local_of_file(wheel.filename)) or local_of(package.version)
        return parse_local(local)


def parse_local(local: str) -> BuiltFor | None:
    """Read ``cu128``, ``cpu``, ``pt27cu128`` or ``cu12torch2.7cxx11abitrue``."""
    match = _LOCAL.fullmatch(local.lower())
    if match is None:
        return None
    minor = match["minor"] if match["abi"] is None else ""  # one wheel serves a whole major
    accelerator = f"cu{match['major']}{minor}" if match["major"] else "cpu"
    pt = match["pt"]
    return BuiltFor(
        accelerator=accelerator,
        cuda_major=int(match["major"]) if match["major"] else None,
        torch_minor=match["torch"] or (f"{pt[0]}.{pt[1:]}" if pt else None),
        cxx11_abi=None if match["abi"] is None else match["abi"] == "true",
    )


def cuda_major(view: LockView, package: Pinned) -> int | None:
    """Return the CUDA major that a package belongs to, by its name or its local version."""
    suffix = _SUFFIX.search(package.name)
    if suffix is not None:
        return int(suffix["major"])
    if package.name in _UNSUFFIXED:
        return 13
    if package.name == "torch":
        return view.cuda.major if view.cuda else None
    built = view.built_for(package)
    return built.cuda_major if built else None


def stem(name: str) -> str:
    """Return a package's name without its CUDA suffix (``nvidia-nccl``)."""
    return _SUFFIX.sub("", name)


def shown(package: Pinned) -> str:
    """Return how messages name a package: ``torch 2.7.0+cu128``."""
    return f"{package.name} {package.version}"


def torch_minor(view: LockView) -> str | None:
    """Return the minor of the locked torch (``2.7``)."""
    if view.torch is None:
        return None
    return ".".join(public_of(view.torch.version).split(".")[:2])


def _local_of_file(filename: str) -> str:
    try:
        _, version, _, _ = parse_wheel_filename(filename)
    except (InvalidWheelFilename, InvalidVersion):
        return ""
    return version.local or ""
