"""Jetson modules: integrated GPUs that run few of the builds made for Arm servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.archs import own_code_only

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.cuda import ComputeCapability, CudaVersion

# Capabilities of Jetson modules before Thor (CUDA's table of GPUs, read 2026-11-29): TX1/Nano,
# TX2, Xavier, Orin.
_MODULES = frozenset({(5, 3), (6, 2), (7, 2), (8, 7)})
_INSTEAD = "a Jetson needs NVIDIA's own wheels for its JetPack"


def jetson_reason(gpus: Iterable[ComputeCapability]) -> str:
    """Return what to add to a refusal where one of the GPUs is a Jetson's, or nothing."""
    return f"; {_INSTEAD}" if any(map(_is_module, gpus)) else ""


def jetson_notes(
    label: str, gpus: Iterable[ComputeCapability], cuda: CudaVersion | None
) -> Iterator[str]:
    """Yield what a build made for Arm servers asks of a Jetson that may run it."""
    for gpu in gpus:
        if _is_module(gpu) and cuda is not None and not own_code_only(gpu, cuda):
            yield (
                f"{gpu.sm} is a Jetson: {label} runs there only under a JetPack whose driver"
                f" supports CUDA {cuda}; under an older one (6 and before) {_INSTEAD}"
            )


def _is_module(gpu: ComputeCapability) -> bool:
    return (gpu.major, gpu.minor) in _MODULES
