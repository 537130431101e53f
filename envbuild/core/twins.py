"""The builds of one library of NVIDIA for several CUDA majors: which of some packages are such."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Protocol, TypeVar

from envbuild.core.lockview import stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Named(Protocol):
    """Something with the name of a package: locked, or installed."""

    @property
    def name(self) -> str:
        """The name, normalised."""
        ...


Item = TypeVar("Item", bound=Named)


def twin_pairs(packages: Iterable[Item]) -> Iterator[tuple[Item, Item]]:
    """Give every two packages that are builds of one library, in their order."""
    libraries: dict[str, list[Item]] = {}
    for one in packages:
        if one.name.startswith("nvidia-"):
            libraries.setdefault(stem(one.name), []).append(one)
    for group in libraries.values():
        yield from combinations(group, 2)
