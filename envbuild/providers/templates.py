"""The data files beside the providers: how names of wheels encode what they belong to."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

from envbuild.core.packagefile import package_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from envbuild.model.stack import Candidate


@cache
def strings(name: str, key: str) -> tuple[str, ...]:
    """Return a list of texts from ``data/NAME.toml``."""
    text = package_text("envbuild.providers", f"{name}.toml")
    return tuple(str(value) for value in tomllib.loads(text)[key])


def locals_for(name: str, candidate: Candidate, *, abi: bool | None = None) -> frozenset[str]:
    """Return the local versions that a provider's wheels carry for a candidate.

    Local versions compare as text (``pt29`` sorts above ``pt210``), so they are only ever
    matched whole. The toolkit tags of another CUDA major are left out.
    """
    major, minor = candidate.public.split(".")[:2]
    cuda = candidate.cuda
    tags = (
        [t for t in strings(name, "cuda") if cuda and t[: len(str(cuda.major))] == str(cuda.major)]
        if any("{cuda}" in template for template in strings(name, "local"))
        else [""]
    )
    return frozenset(
        template.format(
            torch_major=major,
            torch_minor=minor,
            accelerator=candidate.accelerator,
            cuda=tag,
            abi=str(abi).lower(),
        )
        for template in strings(name, "local")
        for tag in tags
    )
