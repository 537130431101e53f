"""The answer of `envbuild gpus`: names and compute capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.render.canvas import new_canvas

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.core.gpus import KnownGpu


def render_gpus(gpus: Iterable[KnownGpu], *, width: int | None = None, color: bool = False) -> str:
    """Return a table: the name, the compute capability, and whether it needs an Arm host."""
    canvas = new_canvas(width=width, color=color)
    rows = [
        (gpu.name, str(gpu.capability), "platform linux-aarch64 only" if gpu.arm else "")
        for gpu in gpus
    ]
    canvas.table(rows)
    return canvas.text()


def gpus_document(gpus: Iterable[KnownGpu]) -> dict[str, object]:
    """Return the GPUs as plain values, for JSON; `data/gpus.schema.json` describes them."""
    return {
        "version": 1,
        "command": "gpus",
        "gpus": [
            {
                "name": gpu.name,
                "capability": str(gpu.capability),
                "arm": gpu.arm,
                "source": gpu.source,
            }
            for gpu in gpus
        ],
    }
