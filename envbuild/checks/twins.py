"""EB101 and EB107: two builds or two versions of one library, which own the same files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import counted, shortened, torch_cuda, torch_label
from envbuild.checks.rule import rule
from envbuild.checks.sharedfiles import (
    absolute,
    between,
    is_code,
    is_shared_object,
    overlaps,
    was_asked_for,
)
from envbuild.core.installedrequires import needs_of, visible
from envbuild.core.twins import twin_pairs
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Reinstall, Remove
from envbuild.model.installed import Installed, Ownership
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.checks.sharedfiles import Overlap
    from envbuild.core.installedrequires import Need
    from envbuild.model.installed import Distribution

_MAJOR = re.compile(r"-cu(1\d)$")
_MOST = 3


@rule("EB101", "Two builds of one CUDA library are installed", severity=Severity.ERROR)
def cuda_twins(installed: Installed, ownership: Ownership, facts: Facts) -> Iterator[Finding]:
    """Find the cu11, cu12 and cu13 builds of one library of NVIDIA side by side.

    **What it finds.** Two distributions of one library (`nvidia-nccl-cu12` and
    `nvidia-nccl-cu13`) that own the same paths. NCCL, cuDNN, cuSPARSELt and NVSHMEM do; cuBLAS,
    nvJitLink and the rest lie in folders of their own and are only noted as left over.

    **Why it matters.** The one installed last overwrites the other, and removing either takes
    the file away from both. torch then loads another CUDA's library, or none:
    `undefined symbol: ncclCommWindowDeregister`, `CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH`.
    `pip check` and `uv pip check` see nothing. Where torch's own bytes lie on disk today it is
    a warning: the next install or removal of the other one breaks it.

    **Example.** `uv add torch==2.11.0 xgboost` installs both NCCLs; `uv remove xgboost` then
    deletes the file that torch needs.

    **Fix.** Remove the build that torch does not belong to, and bring back the files of the other:
    `uv pip uninstall nvidia-nccl-cu12`, then
    `uv pip install --reinstall-package nvidia-nccl-cu13 --no-deps nvidia-nccl-cu13==2.28.9`.
    Removing alone leaves the file gone, and neither `uv sync` nor reinstalling torch sees that.
    """
    needs = needs_of(installed)
    found = overlaps(installed, ownership)
    harmless: list[Distribution] = []
    for a, b in twin_pairs(visible(installed)):
        if a.site != b.site:
            continue
        keep, drop = _belonging(a, b, installed, needs)
        overlap = between(found, a.name, b.name)
        shared = facts.shared_paths(a.name, b.name)
        if overlap is not None and overlap.code:
            shared = tuple(one.path for one in overlap.paths)
        else:
            shared = _both_record(a, b, shared)
        if shared:
            yield _twins(keep, drop, shared, overlap, needs)
        elif not any(need.name == drop.name for need in needs) and not was_asked_for(drop):
            harmless.append(drop)
    if harmless and torch_cuda(installed) is not None:
        yield _left_over(harmless, installed)


def _both_record(a: Distribution, b: Distribution, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of the facts that may be shared here: a missing RECORD proves nothing."""
    for one in (a, b):
        if one.record is not None:
            own = {entry.path for entry in one.record}
            paths = tuple(path for path in paths if path in own)
    return paths


def _belonging(
    a: Distribution, b: Distribution, installed: Installed, needs: tuple[Need, ...]
) -> tuple[Distribution, Distribution]:
    """Return the one that torch needs, and the other."""
    of_torch = {need.name for need in needs if need.by.name == "torch"}
    if (a.name in of_torch) != (b.name in of_torch):
        return (a, b) if a.name in of_torch else (b, a)
    cuda = torch_cuda(installed)
    match = _MAJOR.search(b.name)
    major = int(match[1]) if match else 13
    return (b, a) if cuda is not None and cuda.major == major else (a, b)


def _twins(
    keep: Distribution,
    drop: Distribution,
    shared: tuple[str, ...],
    overlap: Overlap | None,
    needs: tuple[Need, ...],
) -> Finding:
    winner = overlap.winner() if overlap else None
    libraries = [path for path in shared if is_shared_object(path)]
    askers = sorted({need.by.label for need in needs if need.name == drop.name})
    what = f"`{keep.label}` and `{drop.label}` both own {counted(len(shared), 'path')}"
    safe = winner is not None and winner.name == keep.name
    on_disk = f"on disk is {winner.label}'s" if winner else "the one installed last is on disk"
    later = f"; removing or installing `{drop.name}` breaks it" if safe else ""
    return Finding(
        code="EB101",
        severity=Severity.WARNING if safe else Severity.ERROR,
        subject=drop.label,
        message=f"{what}, {on_disk}{later}",
        evidence=(
            *shortened(libraries or shared, most=_MOST),
            *(f"{a} requires {drop.name}" for a in askers),
        ),
        hint=(
            f"{askers[0]} requires `{drop.name}`: take its build for the other CUDA"
            if askers
            else None
        ),
        fixes=(Remove(names=(drop.name,)), Reinstall(names=(keep.name,))),
        brings=(
            f"dist:{keep.name}",
            f"dist:{drop.name}",
            *(f"file:{absolute(keep, path)}" for path in libraries),
        ),
    )


def _left_over(harmless: list[Distribution], installed: Installed) -> Finding:
    return Finding(
        code="EB101",
        severity=Severity.NOTE,
        subject=counted(len(harmless), "package"),
        message=(
            f"left over from another CUDA than that of {torch_label(installed)}, harmless:"
            f" {', '.join(one.name for one in harmless)}"
        ),
        evidence=tuple(one.label for one in harmless),
        hint="nothing installed requires them; removing them frees their space",
    )


@rule("EB107", "Two versions of one distribution are installed", severity=Severity.WARNING)
def two_versions(installed: Installed, ownership: Ownership) -> Iterator[Finding]:
    """Find two metadata folders of one distribution in one site folder.

    **What it finds.** `torch-2.7.0+cu128.dist-info` beside `torch-2.11.0.dist-info`, as an
    interrupted install, a copied layer of an image or `pip install --target` leaves them.

    **Why it matters.** One of the two lies about the files. Installers look at either, so an
    upgrade "is already satisfied" and an uninstall removes files of the other version.

    **Example.** `torch 2.11.0` and `torch 2.7.0+cu128` in one folder, with the libraries of one
    and Python files of the other.

    **Fix.** `uv pip uninstall NAME` until it finds nothing, then install the version that is meant.
    """
    sites: dict[tuple[str, str], list[Distribution]] = {}
    for one in installed.distributions:
        if one.info.endswith(".dist-info"):
            sites.setdefault((one.site, one.name), []).append(one)
    for (_, name), same in sorted(sites.items()):
        if len({one.version for one in same}) > 1:
            yield _versions(name, same, ownership)


def _versions(name: str, same: list[Distribution], ownership: Ownership) -> Finding:
    labels = {one.label for one in same}
    mine = [one for one in ownership.shared if {label for label, _ in one.owners} <= labels]
    differing = [one for one in mine if not one.identical and is_code(one.path)]
    winners = sorted({one.winner or "neither" for one in differing})
    libraries = [one for one in differing if is_shared_object(one.path)]
    evidence = [f"{one.site}/{one.info}" for one in same]
    if winners:
        evidence.append(f"{counted(len(differing), 'file')} on disk: {' and '.join(winners)}'s")
    mixed = len(winners) > 1 or "neither" in winners
    version = winners[0].partition(" ")[2] if len(winners) == 1 and not mixed else same[0].version
    return Finding(
        code="EB107",
        severity=Severity.ERROR if mixed else Severity.WARNING,
        subject=name,
        message=f"`{name}` is installed twice, as {' and as '.join(one.version for one in same)}",
        evidence=tuple(evidence),
        hint=f"install the version meant; {version} is the likely one",
        fixes=(Remove(names=(name,)), Install(requirements=(f"{name}=={version}",))),
        brings=(
            f"dist:{name}",
            *(f"file:{absolute(same[0], one.path)}" for one in libraries),
            *((f"import:{name}",) if mixed else ()),
        ),
    )


RULES = (cuda_twins, two_versions)
