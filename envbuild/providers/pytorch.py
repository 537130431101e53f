"""torch itself and what is released with it: torchvision, torchaudio, torchcodec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from envbuild.core.candidates import belongs
from envbuild.core.context import fitting
from envbuild.core.indexpages import pypi_page, pytorch_page
from envbuild.core.pairing import pairs, torch_for
from envbuild.core.verify.origin import INDEX_ONLY
from envbuild.core.wanted import accepts, asked
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.stack import IndexPin, PypiPin, Refusal
from envbuild.model.wheel import PageKind
from envbuild.providers.interface import Extension, Provider, built_elsewhere, served

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.stack import Candidate, Pin
    from envbuild.model.wheel import IndexPage, WheelFile

COMPANIONS = ("torchvision", "torchaudio")


def extend(candidate: Candidate, context: Context) -> Extension | Refusal:
    """Pin torch, both companions whether wanted or not, and torchcodec when it is wanted.

    A companion that nobody wants is pinned too, for a dependency may bring it later; if it does
    not exist for the candidate, that is no reason against the candidate.
    """
    pins: list[Pin] = [_pin(candidate.torch, "the build of torch that was chosen")]
    for project in (*COMPANIONS, "torchcodec"):
        wanted = project in context.wanted
        kept = project in context.frozen or built_elsewhere(context, project)
        if kept or (project == "torchcodec" and not wanted):
            continue
        found = companion(project, candidate, context)
        if not isinstance(found, Refusal):
            pins.append(found)
        elif wanted:
            return found
    for project in served(context, INDEX_ONLY):
        own = _own(project, candidate, context)
        if isinstance(own, Refusal):
            return own
        pins.append(own)
    return Extension(pins=tuple(pins))


def _own(project: str, candidate: Candidate, context: Context) -> Pin | Refusal:
    """Return the release of a package that PyTorch's index alone serves, from there only."""
    wanted = asked(context.wanted, project)
    page = pytorch_page(context.indexes, candidate.accelerator)
    for wheel in fitting(context, page, project) if page is not None else ():
        if accepts(context.wanted, project, wheel.version):
            return IndexPin(wheel=wheel, reason="PyTorch publishes it on its own index alone")
    where = page.name if page is not None else "PyTorch's index, which is disabled,"
    reason = f"{where} has no `{wanted}`, and another index's {project} is not PyTorch's"
    return Refusal(project=project, reason=reason, excludes=wanted)


def companion(project: str, candidate: Candidate, context: Context) -> Pin | Refusal:
    """Return the release of a companion that belongs to a candidate, from the same index."""
    suitable = [
        wheel for wheel in offered(project, candidate, context) if _suits(wheel, candidate, context)
    ]
    chosen = next((w for w in suitable if accepts(context.wanted, project, w.version)), None)
    if chosen is not None:
        return _pin(chosen, f"the {project} for torch {candidate.public}")
    if suitable:
        wanted = asked(context.wanted, project)
        reason = f"{candidate.label} goes with {project} {suitable[0].version}, not `{wanted}`"
        return Refusal(project=project, reason=reason, excludes=wanted)
    reason = f"there is no {project} for {candidate.label} and Python {context.target.python}"
    return Refusal(project=project, reason=reason, excludes=project)


def offered(project: str, candidate: Candidate, context: Context) -> tuple[WheelFile, ...]:
    """Return a project's wheels for a candidate's accelerator, the released pair first.

    torchcodec alone may also come from PyPI when the index of the candidate has none.
    """
    page = _page(candidate, context)
    if page is None:
        return ()
    found = [
        wheel
        for wheel in fitting(context, page, project)
        if page.kind is PageKind.PYPI or belongs(wheel, candidate.accelerator)
    ]
    if project == "torchcodec" and page.kind is not PageKind.PYPI:
        found += fitting(context, pypi_page(context.indexes), project)
    released = _released(project, candidate, context)
    return tuple(sorted(found, key=lambda wheel: public_of(wheel.version) != released))


def _page(candidate: Candidate, context: Context) -> IndexPage | None:
    """Return the index of a torch; of a base's, the one its build was published on."""
    page = candidate.torch.page
    if page.kind is not PageKind.BASE:
        return page
    return pytorch_page(context.indexes, page.key) if page.key else None


def _released(project: str, candidate: Candidate, context: Context) -> str | None:
    build = context.facts.torch_build(candidate.public, candidate.cuda)
    return dict(build.companions).get(project) if build else None


def _suits(wheel: WheelFile, candidate: Candidate, context: Context) -> bool:
    version = public_of(wheel.version)
    if version == _released(wheel.project, candidate, context):
        return True
    if Version(version).is_prerelease:
        return False
    requires = context.source.requires_dist(wheel)
    known = torch_for(context.facts, wheel.project, version, requires)
    return pairs(known, candidate.public)


def _pin(wheel: WheelFile, reason: str) -> Pin:
    if wheel.page.kind is PageKind.PYPI and not local_of(wheel.version):
        return PypiPin(project=wheel.project, specifier=f"=={wheel.version}", reason=reason)
    return IndexPin(wheel=wheel, reason=reason)


PROVIDER = Provider(
    name="pytorch",
    projects=frozenset({"torch", "torchcodec", *COMPANIONS, *INDEX_ONLY}),
    extend=extend,
)
