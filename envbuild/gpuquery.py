"""Which GPUs `envbuild gpus` is asked for."""

from __future__ import annotations

from envbuild.core.gpus import KnownGpu, UnknownGpuError, known_gpu, known_gpus, parse_gpu
from envbuild.errors import InputError


def gpus_named(name: str) -> tuple[KnownGpu, ...]:
    """Return every GPU for an empty name, the one of that name, or all of that compute capability."""
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
