"""Whose file a path is, and what torch asks of the distributions around it."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envbuild.model.cuda import CudaVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    from envbuild.model.installed import Distribution, Installed, Ownership
    from envbuild.model.links import Links, LoadedLibrary

    Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What a finding is about: a distribution, or files that none owns.

    ``label`` is how messages name it; ``token`` is what findings are linked by.
    """

    label: str
    token: str
    distribution: Distribution | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The distribution's name, empty where there is none."""
        return self.distribution.name if self.distribution else ""

    @property
    def brings(self) -> tuple[str, ...]:
        """The token of an import that fails with it."""
        return (f"import:{self.name}",) if self.name else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Owners:
    """The owners of shared objects; made by `owners_for`."""

    installed: Installed
    labels: dict[str, str] = field(default_factory=dict)
    distributions: dict[str, Distribution] = field(default_factory=dict)

    def subject(self, path: str) -> Subject:
        """Return what a finding about a file is about."""
        label = self.labels.get(path)
        found = self.distributions.get(label) if label is not None else None
        if found is None:
            return Subject(label=posixpath.basename(path), token=f"file:{path}")
        return Subject(label=found.label, token=f"dist:{found.name}", distribution=found)

    def named(self, path: str) -> str:
        """Return a file's owner in words: ``nvidia-nccl-cu12 2.26.2's``, ``no package's``."""
        label = self.labels.get(path)
        return f"{label}'s" if label is not None else "no package's"

    def holders(self, library: str) -> Iterator[tuple[Distribution, str]]:
        """Give every distribution that records a file of this name, there or not, with its path."""
        for one in self.installed.distributions:
            for entry in one.record or ():
                if entry.path.endswith(library) and posixpath.basename(entry.path) == library:
                    yield one, posixpath.join(one.site, entry.path)

    def present(self, library: str) -> Iterator[tuple[Distribution, str]]:
        """Give every distribution whose file of this name lies on disk, with its path."""
        for path, label in self.labels.items():
            if path.endswith(f"/{library}") and label in self.distributions:
                yield self.distributions[label], path

    def group(self, items: Iterable[Item], paths: Iterable[str]) -> dict[Subject, list[Item]]:
        """Sort items by the subject that the path of each belongs to, in their order."""
        groups: dict[Subject, list[Item]] = {}
        for item, path in zip(items, paths, strict=True):
            groups.setdefault(self.subject(path), []).append(item)
        return groups


def owners_for(installed: Installed, ownership: Ownership) -> Owners:
    """Make the table of owners."""
    by_label: dict[str, Distribution] = {}
    for one in installed.distributions:
        by_label.setdefault(one.label, one)
    return Owners(installed=installed, labels=dict(ownership.owners), distributions=by_label)


def torch_cuda(installed: Installed) -> CudaVersion | None:
    """Return the CUDA of the installed torch; None for a CPU build, or without torch."""
    if installed.torch is None or installed.torch.cuda is None:
        return None
    try:
        return CudaVersion.parse(installed.torch.cuda)
    except ValueError:
        return None


def torch_public(installed: Installed) -> str | None:
    """Return the public version of the installed torch."""
    if installed.torch is not None:
        return installed.torch.version.partition("+")[0]
    torch = installed.find("torch")
    return torch.version.partition("+")[0] if torch else None


def torch_label(installed: Installed) -> str:
    """Return how messages name the installed torch: ``torch 2.11.0+cu130``."""
    if installed.torch is not None:
        return f"torch {installed.torch.version}"
    torch = installed.find("torch")
    return torch.label if torch else "torch"


def pin_of(distribution: Distribution | None, name: str) -> str | None:
    """Return the version that a distribution pins another at, None where it pins none."""
    for requirement in requirements_of(distribution):
        if canonicalize_name(requirement.name) == name:
            pins = [one.version for one in requirement.specifier if one.operator == "=="]
            if pins:
                return pins[0].removesuffix(".*")
    return None


def torch_pin(installed: Installed, name: str) -> str | None:
    """Return the version that torch pins a package at: itself, or by way of ``cuda-toolkit``.

    torch requires the parts of CUDA 13 as extras of that package, which is one release's list.
    """
    pin = pin_of(installed.find("torch"), name)
    return pin or pin_of(installed.find("cuda-toolkit"), name)


def requirements_of(distribution: Distribution | None) -> Iterator[Requirement]:
    """Give the requirements of a distribution that hold on Linux; of cuda-toolkit every part."""
    extra = "all" if distribution and distribution.name == "cuda-toolkit" else ""
    for text in distribution.requires if distribution else ():
        try:
            requirement = Requirement(text)
            applies = requirement.marker is None or requirement.marker.evaluate(
                {"extra": extra, "platform_system": "Linux", "sys_platform": "linux"}
            )
        except (ValueError, KeyError):  # also a marker that has no answer
            continue
        if applies:
            yield requirement


def variable_of(one: LoadedLibrary | None) -> str | None:
    """Return the variable by which a library was found, None where it was found without one.

    torch opens libraries before they are needed as well, which is no matter of a variable.
    """
    if one is not None and one.how == "ld_library_path":
        return "LD_LIBRARY_PATH"
    return "LD_PRELOAD" if one is not None and one.needed_by == "LD_PRELOAD" else None


def gaps_of(owners: Owners, links: Links, *names: str) -> tuple[str, ...]:
    """Return the tokens of the libraries that packages lack: what else they lack follows."""
    lacking = {
        one.library
        for one in links.libraries
        if not one.optional and owners.subject(one.path).name in names
    }
    return tuple(f"library:{library}" for library in sorted(lacking))


def shortened(names: Iterable[str], *, most: int = 5) -> tuple[str, ...]:
    """Return the first few names, and how many more there are."""
    every = tuple(names)
    if len(every) <= most:
        return every
    return (*every[:most], f"and {len(every) - most} more")


def counted(number: int, noun: str) -> str:
    """Return ``1 symbol`` or ``6 symbols``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
