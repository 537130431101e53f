"""EB111: distributions that bring the same import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.checks.packagedata import same_imports
from envbuild.checks.rule import rule
from envbuild.checks.sharedfiles import between, overlaps
from envbuild.core.installedrequires import needs_of, visible
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Reinstall, Remove
from envbuild.model.installed import Installed, Ownership

if TYPE_CHECKING:
    from envbuild.checks.packagedata import SameImport
    from envbuild.checks.sharedfiles import Overlap
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution


@rule("EB111", "Two distributions bring the same import", severity=Severity.ERROR)
def same_import_twice(installed: Installed, ownership: Ownership) -> Iterator[Finding]:
    """Find variants of one package that write the same folder.

    **What it finds.** `onnxruntime` with `onnxruntime-gpu`, two of the four `opencv-*`, two
    `spconv-cuXXX` or `cumm-cuXXX`, `triton` with `pytorch-triton`, `nixl-cu12` with `nixl-cu13`,
    `cuda-bindings` with a `cuda-python` from before it.

    **Why it matters.** The one installed last overwrites the other file by file, and removing
    one leaves holes in the other. Nothing in their metadata says that they exclude each other.

    **Example.** `onnxruntime` came in as a requirement after `onnxruntime-gpu`:
    `CUDAExecutionProvider is not in available provider names`.

    **Fix.** `uv pip uninstall` all of them, then install the one that is meant: what is left of it
    after the others went is not whole.
    """
    found = overlaps(installed, ownership)
    for group in same_imports():
        present = [
            one for one in visible(installed) if one.name in group.names and _brings(one, group.top)
        ]
        sites = {one.site for one in present}
        for site in sorted(sites):
            here = [one for one in present if one.site == site]
            if len(here) > 1:
                yield _same(group, here, found, installed)


def _brings(one: Distribution, top: str) -> bool:
    """Whether a distribution has files of an import; conda writes metadata that has none."""
    if one.record is None:
        return one.installer != "conda"
    return any(entry.path.startswith(f"{top}/") for entry in one.record)


def _same(
    group: SameImport, here: list[Distribution], found: tuple[Overlap, ...], installed: Installed
) -> Finding:
    keep = _meant(group, here, installed)
    overlap = between(found, here[0].name, here[1].name)
    winner = overlap.winner() if overlap else None
    right = winner is not None and winner.name == keep.name and bool(group.keep)
    names = [one.name for one in here]
    on_disk = f", on disk is {winner.label}'s" if winner else ""
    others = [one for one in names if one != keep.name]
    return Finding(
        code="EB111",
        severity=Severity.WARNING if right else group.severity,
        subject=here[0].label,
        message=f"{' and '.join(one.label for one in here)} both own `{group.top}/`{on_disk}",
        evidence=(group.effect, *_askers(others, installed), group.source),
        hint=f"keep one of them, `{keep.name}` say" + (f"; {group.mended}" if group.mended else ""),
        fixes=_fixes(group, keep, others, installed),
        brings=(*(f"dist:{name}" for name in names), *(() if right else (f"import:{group.top}",))),
    )


def _fixes(
    group: SameImport, keep: Distribution, others: list[str], installed: Installed
) -> tuple[Fix, ...]:
    """Remove what is not kept, or install the release of it that brings no files of its own.

    That one asks for a release of what is kept, which others ask for as well.
    """
    if not group.instead:
        return (Remove(names=tuple(others)), Reinstall(names=(keep.name,)))
    asked = dict.fromkeys(need.text for need in needs_of(installed) if need.name == keep.name)
    major = keep.version.partition(".")[0]
    return (Install(requirements=(f"{group.instead},=={major}.*", *(asked or (keep.name,)))),)


def _meant(group: SameImport, here: list[Distribution], installed: Installed) -> Distribution:
    """Return the one to keep: the table's, torch's own, else the newest of the newest CUDA."""
    for one in here:
        if one.name == group.keep:
            return one
    of_torch = {need.name for need in needs_of(installed) if need.by.name == "torch"}
    for one in here:
        if one.name in of_torch:
            return one
    return max(here, key=lambda one: (_version(one.version), one.name))


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion:
        return Version("0")


def _askers(names: list[str], installed: Installed) -> Iterator[str]:
    for need in needs_of(installed):
        if need.name in names:
            yield f"{need.by.label} requires {need.text}"


RULES = (same_import_twice,)
