"""EB302: an extension that was compiled for another torch, or for the other C++ ABI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.checks.lazylibraries import is_plugin
from envbuild.checks.owners import (
    counted,
    gaps_of,
    owners_for,
    shortened,
    torch_cuda,
    torch_label,
    torch_public,
)
from envbuild.checks.rule import rule
from envbuild.checks.torchpairs import built_for, matching, minor_of, pinned_torch, rebuild
from envbuild.core.elf.libnames import is_torch_symbol
from envbuild.core.elf.mangled import readable
from envbuild.core.link.torchusers import abi_of
from envbuild.core.torchabi import torch_minors, torch_range
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual
from envbuild.model.installed import Installed, Ownership
from envbuild.model.links import Links
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.checks.owners import Subject
    from envbuild.model.fix import Fix
    from envbuild.model.links import ImportsOf, MissingSymbol

_ABI = {"old": "the old C++ ABI (before cxx11)", "new": "the new C++ ABI (cxx11)"}
_LONG = 80
# PyPI's wheels of torch use the new ABI from this release on.
_NEW_ABI_SINCE = (2, 7)


@rule("EB302", "An extension was built for another torch", severity=Severity.ERROR)
def other_torch(
    installed: Installed, ownership: Ownership, links: Links, facts: Facts
) -> Iterator[Finding]:
    """A compiled package uses functions of torch that the installed torch does not have.

    **What it finds.** For each package, and for each file that belongs to none (eggs, builds in
    place), the symbols of torch that it needs and that the installed torch does not define; which
    torch it was built for, and whether it was built for the other C++ ABI.

    **Why it matters.** `undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationE…` on import. torch
    has no stable C++ interface, so an extension works with the minor release it was compiled
    for. Some packages swallow the error and fail much later (torch_geometric, torchvision's
    `operator torchvision::nms does not exist`). It is a warning where only the part for torch of
    a package that does without torch is concerned (`open3d.ml.torch`).

    **Example.** torch-scatter 2.1.2+pt21cu118 under torch 2.7.0: built for torch 2.1.

    **Fix.** Install the build for the installed torch, or build it again with
    `--no-build-isolation`. Do not change torch to suit an extension: the GPU decides which torch
    is needed.
    """
    owners = owners_for(installed, ownership)
    missing = [one for one in links.symbols if is_torch_symbol(one.name.encode())]
    users = {one.path: one for one in links.torch_users}
    groups = owners.group(missing, (one.path for one in missing))
    for subject, symbols in groups.items():
        if subject.name == "torch":
            continue
        imports = [users[path] for path in {one.path for one in symbols} if path in users]
        finding = _judge(subject, symbols, imports, installed=installed, facts=facts)
        because = (*finding.because, *gaps_of(owners, links, "torch", subject.name))
        yield replace(finding, because=because)


def _judge(
    subject: Subject,
    symbols: list[MissingSymbol],
    imports: list[ImportsOf],
    *,
    installed: Installed,
    facts: Facts,
) -> Finding:
    names = sorted({one.name for one in symbols})
    is_part = all(is_plugin(subject, one.path) for one in symbols)
    return Finding(
        code="EB302",
        severity=Severity.WARNING if is_part else Severity.ERROR,
        subject=subject.label,
        message=(
            f"{subject.label} {_why(subject, names, imports, installed, facts)}:"
            f" {counted(len(names), 'symbol')} of torch missing in {torch_label(installed)}"
        ),
        evidence=(
            *shortened(map(_shown, names), most=3),
            *shortened(sorted({f"needed by {one.path}" for one in symbols}), most=3),
        ),
        hint=f"only what {subject.label} has for torch fails" if is_part else None,
        fixes=(_fix(subject, installed, facts),),
        because=(subject.token, "dist:torch", *sorted({f"file:{o.path}" for o in symbols})),
        brings=(*(f"symbol:{name}" for name in names), *(() if is_part else subject.brings)),
    )


def _why(
    subject: Subject,
    names: list[str],
    imports: list[ImportsOf],
    installed: Installed,
    facts: Facts,
) -> str:
    """Say what the package was built for, by the strongest evidence there is."""
    abi = abi_of(names) or next((one.abi for one in imports if one.abi), None)
    has = torch_abi(installed, facts)
    if abi is not None and has is not None and abi != has:
        return f"is built for {_ABI[abi]}, torch has {_ABI[has].partition(' (')[0]}"
    public = torch_public(installed) or ""
    named = _named(subject, minor_of(public))
    if named:
        return f"is built for torch {named}"
    fitting = torch_range(name for one in imports for name in one.symbols)
    if fitting and minor_of(public) not in fitting:
        return f"is built for {_span(fitting, minor_of(public))}"
    if subject.distribution is None:
        return "is built for another torch"
    pairing = facts.pairing(subject.name, subject.distribution.version)
    if pairing is not None:
        return f"is built for torch {pairing.torch}"
    return "is built for another torch"


def _named(subject: Subject, ours: str) -> str | None:
    """Return the torch that a package names, in its version or by a pin, where it is another."""
    one = subject.distribution
    if one is None:
        return None
    texts = (built_for(one.version), pinned_torch(one))
    return next((text for text in texts if text and minor_of(text) != ours), None)


def _shown(name: str) -> str:
    words = readable(name)
    if not words or "::" not in words:
        return name
    return f"{name if len(name) <= _LONG else name[:_LONG] + '…'} ({words})"


def _span(minors: tuple[str, ...], ours: str) -> str:
    """Say which releases of torch have everything, of which ours is none.

    What lies before the oldest release of the table is not known to lack it.
    """
    known = torch_minors()
    from_first, to_last = minors[0] == known[0], minors[-1] == known[-1]
    if from_first and _number(ours) < _number(known[0]):
        return "a newer torch" if to_last else f"a newer torch, {minors[-1]} at most"
    if from_first:
        return f"torch {minors[-1]} or older"
    if len(minors) == 1:
        return f"torch {minors[0]}"
    return f"torch {minors[0]} or newer" if to_last else f"torch {minors[0]} to {minors[-1]}"


def _number(minor: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in minor.split("."))


def torch_abi(installed: Installed, facts: Facts) -> str | None:
    """Return ``old`` or ``new`` for the C++ ABI of the installed torch, None if not known."""
    public = torch_public(installed)
    if public is None:
        return None
    build = facts.torch_build(public, torch_cuda(installed))
    if build is not None and build.cxx11_abi is not None:
        return "new" if build.cxx11_abi else "old"
    parts = public.split(".")[:2]
    if not all(part.isdigit() for part in parts):
        return None
    is_new = tuple(int(part) for part in parts) >= _NEW_ABI_SINCE
    return "new" if is_new else None


def _fix(subject: Subject, installed: Installed, facts: Facts) -> Fix:
    one = subject.distribution
    if one is None or one.editable or one.record is None or one.origin is not None:
        return rebuild(one, subject.label, installed)
    found = matching(one, installed, facts)
    if found is not None:
        return found
    return Manual(
        text=(
            f"install the release of {one.name} that was built for {torch_label(installed)}, or"
            f" build it: uv pip install --no-build-isolation --no-binary {one.name}"
            f" --reinstall {one.name}=={one.version.partition('+')[0]}"
        )
    )


RULES = (other_torch,)
