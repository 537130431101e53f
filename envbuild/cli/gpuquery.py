"""Which GPUs `envbuild gpus` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.gpus import UnknownGpuError, known_gpu, known_gpus, parse_gpu
from envbuild.errors import InputError

if TYPE_CHECKING:
    from envbuild.core.gpus import KnownGpu


def gpus_named(name: str) -> tuple[KnownGpu, ...]:
    """Return the GPU of a name, those of a compute capability, or all for an empty name."""
    if not name:
        return known_gpus()
    try:
        meant = parse_gpu(name)
        alike = tuple(gpu for gpu in known_gpus() if gpu.capability == meant.capability)
        return alike if _is_capability(name) else (known_gpu(name),)
    except UnknownGpuError as error:
        choices = ", ".join(f"`{choice}`" for choice in error.choices)
        hint = f"did you mean {choices}?" if choices else "`envbuild gpus` lists what is known"
        raise InputError(str(error), hint=hint) from error


def _is_capability(name: str) -> bool:
    try:
        known_gpu(name)
    except UnknownGpuError:
        return True
    return False
