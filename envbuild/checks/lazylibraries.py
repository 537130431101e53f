"""What a package is linked to and is imported without: the system's CUDA, a torch beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.checks.owners import requirements_of, shortened
from envbuild.core.elf.libnames import is_torch_library
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Manual

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.checks.owners import Owners, Subject
    from envbuild.model.fix import Fix
    from envbuild.model.links import Links, MissingLibrary

_CUPY = re.compile(r"cupy(?:-cuda(\d+)x?)?")
_MODULE = re.compile(r"\.(?:cpython-\w+(?:-[\w-]+)?|abi3t?)\.so$")
_CTK = re.compile(r"^cuda-toolkit\b.*\bextra\s*==\s*['\"]ctk['\"]")


def is_lazy(subject: Subject) -> bool:
    """Whether a package is imported without the CUDA libraries that its modules are linked to."""
    return _CUPY.fullmatch(subject.name) is not None


def for_torch_alone(owners: Owners, links: Links) -> frozenset[str]:
    """Return the plug-ins for torch (``open3d_torch_ops.so``) where there is no torch.

    Only torch opens them. A package that requires torch, or is named after it, cannot do without.
    """
    if owners.installed.torch is not None or owners.installed.find("torch") is not None:
        return frozenset()
    return frozenset(
        one.path
        for one in links.libraries
        if is_torch_library(one.library) and is_plugin(owners.subject(one.path), one.path)
    )


def is_plugin(subject: Subject, path: str) -> bool:
    """Whether a file is a package's part for torch, without which all else of it works.

    What else there is are extension modules of its own: pyg-lib, which names no torch among its
    requirements, has none.
    """
    record = (subject.distribution.record if subject.distribution else None) or ()
    if _MODULE.search(path) is not None or _is_for_torch(subject):
        return False
    return any(_MODULE.search(entry.path) for entry in record)


def _is_for_torch(subject: Subject) -> bool:
    needed = {requirement.name for requirement in requirements_of(subject.distribution)}
    return subject.distribution is None or subject.name.startswith("torch") or "torch" in needed


def without_toolkit(owners: Owners, lacking: Iterable[MissingLibrary]) -> Iterator[Finding]:
    """Give one note for all the libraries that such a package does not find."""
    every = [one for one in lacking if is_lazy(owners.subject(one.path))]
    for subject, missing in owners.group(every, (one.path for one in every)).items():
        names = sorted({one.library for one in missing})
        match = _CUPY.fullmatch(subject.name)
        cuda = f"CUDA {match[1][:2]}" if match and match[1] else "CUDA"
        yield Finding(
            code="EB304",
            severity=Severity.NOTE,
            subject=subject.label,
            message=f"{subject.label}: no {cuda} libraries were found, which it needs on a GPU",
            evidence=shortened(names, most=4),
            fixes=(_fix(subject, cuda),),
        )


def _fix(subject: Subject, cuda: str) -> Fix:
    one = subject.distribution
    if one is not None and any(map(_CTK.match, one.requires)):
        return Install(requirements=(f"{one.name}[ctk]=={one.version}",))
    return Manual(text=f"install the {cuda} toolkit")
