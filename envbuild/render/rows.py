"""What the renderings share: the words for one target, without any layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.core.gpus import parse_gpu
from envbuild.model.finding import Severity
from envbuild.model.stack import IndexPin, PypiPin, SourceBuild
from envbuild.model.wheel import PageKind
from envbuild.render.words import plural

if TYPE_CHECKING:
    from collections.abc import Collection

    from envbuild.model.finding import Finding
    from envbuild.model.lock import TargetLock
    from envbuild.model.report import TargetReport
    from envbuild.model.stack import Candidate, Pin

_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN, Severity.NOTE)
_NAMED = 5


def headline(report: TargetReport) -> str:
    """Return the whole target in one line, without its name."""
    lock, candidate = report.lock, report.stack.candidate
    gpus = gpu_words(lock) or ("any GPU that it has code for" if candidate.cuda else "the CPU")
    words = (torch_words(candidate), f"Python {lock.python}", lock.platform, f"for {gpus}")
    return ", ".join(words)


def torch_words(candidate: Candidate) -> str:
    """Return ``torch 2.7.0+cu128, CUDA 12.8``; a build of PyPI has no local version."""
    version = candidate.torch.version
    from_base = candidate.torch.page.kind is PageKind.BASE
    origin = " of the base" if from_base else "" if "+" in version else " from PyPI"
    return f"torch {version}{origin}" + (f", CUDA {candidate.cuda}" if candidate.cuda else "")


def gpu_words(lock: TargetLock) -> str:
    """Return the GPUs with their compute capabilities, or nothing where none was named."""
    return ", ".join(_gpu(name) for name in lock.gpus)


def _gpu(name: str) -> str:
    try:
        capability = str(parse_gpu(name).capability)
    except ValueError:  # a lock of another version of envbuild may name another GPU
        return name
    return f"compute capability {capability}" if name == capability else f"{name} ({capability})"


def locked_version(pin: Pin, lock: TargetLock) -> str:
    """Return the version of a pin, taken from the lock where the pin leaves a choice."""
    if isinstance(pin, IndexPin):
        return pin.wheel.version
    locked = {package.name: package.version for package in lock.packages}.get(pin.project)
    if isinstance(pin, SourceBuild):
        return pin.version or locked or "source"
    return locked or pin.specifier.removeprefix("==") or "any"


def pin_reason(pin: Pin) -> str:
    """Return why a pin was taken."""
    if isinstance(pin, SourceBuild):
        return pin.reason or "compiled on install"
    replaces = f"stands for `{pin.replaces}`" if isinstance(pin, PypiPin) and pin.replaces else ""
    return "; ".join(part for part in (replaces, pin.reason) if part)


def pin_rows(report: TargetReport) -> tuple[tuple[str, str, str], ...]:
    """Return name, version and reason of torch and of every coupled package that is not kept."""
    torch = report.stack.candidate.torch
    held = {package.name for package in report.lock.packages}
    others = [
        pin for pin in report.stack.pins if pin.project != torch.project and not _is_base(pin)
    ]
    reason = next(
        (pin_reason(p) for p in report.stack.pins if p.project == torch.project and p.reason), ""
    )
    return (
        (torch.project, torch.version, reason),
        *((pin.project, locked_version(pin, report.lock), _why(pin, held)) for pin in others),
    )


def _is_base(pin: Pin) -> bool:
    return isinstance(pin, IndexPin) and pin.wheel.page.kind is PageKind.BASE


def _why(pin: Pin, held: Collection[str]) -> str:
    """Return why a pin was taken, and whether it only stands by."""
    absent = not isinstance(pin, SourceBuild) and pin.project not in held
    return "; ".join(part for part in (pin_reason(pin), absent and "not in the set") if part)


def count_words(lock: TargetLock) -> str:
    """Return how many packages there are, and which of them lack a hash."""
    total = plural(len(lock.packages), "package")
    if lock.frozen is not None:
        total += f" on top of {len(lock.frozen.packages)} of the base"
    missing = lock.incomplete
    if not missing:
        return f"{total}, all hashed"
    names = ", ".join(f"`{name}`" for name, _ in missing[:_NAMED])
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return f"{total}, {len(missing)} without a hash: {names}{more}"


def build_words(build: SourceBuild) -> str:
    """Return a source build with the place its source comes from."""
    version = f" {build.version}" if build.version else ""
    origin = build.path or build.git
    return f"{build.project}{version}" + (f" (from {origin})" if origin else "")


def worst_first(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings, errors first, otherwise in the order they were made."""
    return tuple(sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.severity)))


def notes_of(report: TargetReport) -> tuple[str, ...]:
    """Return the notes of the stack and of the target, each once."""
    return tuple(dict.fromkeys((*report.stack.notes, *report.notes)))
