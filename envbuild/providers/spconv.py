"""spconv and cumm: the CUDA version is part of the name, and torch is nowhere in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from envbuild.core.archs import Coverage, coverage, toolkit_knows
from envbuild.core.context import fitting
from envbuild.core.indexpages import pypi_page
from envbuild.core.torchcode import capabilities
from envbuild.core.wanted import accepts, asked
from envbuild.core.wheeltags import fits, pythons
from envbuild.model.cuda import CudaVersion
from envbuild.model.project import Prefer
from envbuild.model.stack import PypiPin, Refusal
from envbuild.providers.interface import Extension, Provider, preference, served
from envbuild.providers.templates import strings

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.stack import Candidate, Pin
    from envbuild.model.wheel import WheelFile

SUFFIXED = {f"spconv-cu{tag}": CudaVersion.parse(f"cu{tag}") for tag in strings("spconv", "cuda")}
CUMM = {f"cumm-cu{tag}": CudaVersion.parse(f"cu{tag}") for tag in strings("spconv", "cumm")}


def extend(candidate: Candidate, context: Context) -> Extension | Refusal:
    """Pin spconv for the candidate's CUDA: the same major, the nearest minor not above it."""
    pins: list[Pin] = []
    notes: list[str] = []
    for project in served(context, PROJECTS):
        found = _extend_one(project, candidate, context)
        if isinstance(found, Refusal):
            return found
        pins += found.pins
        notes += found.notes
    return Extension(pins=tuple(pins), notes=tuple(notes))


def _extend_one(project: str, candidate: Candidate, context: Context) -> Extension | Refusal:
    if preference(context, project) is Prefer.SOURCE:
        return _no_source(project)
    return _wheels(project, candidate, context)


def _wheels(project: str, candidate: Candidate, context: Context) -> Extension | Refusal:
    names = _names(project, candidate, context)
    if isinstance(names, Refusal):
        return names
    if project in CUMM:
        return Extension()  # which version is between spconv's requirement and the project's
    refusal: Refusal | None = None
    for name in names:
        found = _wheel(name, project, context)
        if not isinstance(found, Refusal):
            return _pinned(found, project, candidate, context)
        refusal = refusal or found
    return refusal or Extension()


def _names(project: str, candidate: Candidate, context: Context) -> tuple[str, ...] | Refusal:
    """Return the distributions that may stand for a wanted one, best first."""
    cuda, own = candidate.cuda, {**SUFFIXED, **CUMM}.get(project)
    if cuda is None:
        if own is None:
            return (project,)
        reason = f"{project} is built for CUDA {own}, the target takes the CPU build of torch"
        return Refusal(project=project, reason=reason, excludes=project)
    if own is not None:
        if own.major == cuda.major:
            return (project,)
        reason = (
            f"{project} is built for CUDA {own.major}, which does not mix with CUDA {cuda.major}"
        )
        return Refusal(project=project, reason=reason, excludes=project)
    nearest = _nearest(project, cuda, context)
    return nearest or _no_cuda(project, cuda)


def _nearest(project: str, cuda: CudaVersion, context: Context) -> tuple[str, ...]:
    """Return the names that hold the CUDA major, the nearest minor not above it first.

    A name with CUDA that the project also asks for is the only one, as two of them own the same
    files; and cumm goes with spconv where both are wanted.
    """
    follows = project == "cumm" and any(n.startswith("spconv") for n in context.wanted)
    table = CUMM if project == "cumm" and not follows else SUFFIXED
    below = sorted((v for v in table.values() if v.major == cuda.major and v <= cuda), reverse=True)
    stem = "spconv" if table is SUFFIXED else "cumm"
    named = [v for v in below if f"{stem}-{v.tag}" in context.wanted]
    return tuple(f"{project}-{v.tag}" for v in named or below)


def _no_cuda(project: str, cuda: CudaVersion) -> Refusal:
    newest = max((CUMM if project == "cumm" else SUFFIXED).items(), key=lambda item: item[1])
    what = f"CUDA {cuda.major if cuda.major > newest[1].major else cuda}"
    reason = f"{project} has no wheel for {what} (newest: {newest[0]})"
    return Refusal(project=project, reason=reason, excludes=project)


def _wheel(name: str, project: str, context: Context) -> WheelFile | Refusal:
    page = pypi_page(context.indexes)
    target = context.target
    for wheel in fitting(context, page, name):
        if accepts(context.wanted, project, wheel.version):
            return _with_cumm(wheel, context)
    every = context.source.wheels(page, name)
    wanted = asked(context.wanted, project)
    allowed = [w for w in every if accepts(context.wanted, project, w.version)]
    here = [w for w in allowed if target.platform.machine in w.filename]
    if not allowed:
        reason = f"no wheel of {name} is within `{wanted}`"
    elif not here:
        reason = f"{name} has no wheel for {target.platform.value}"
    else:
        tags, version = pythons(here), here[0].version
        reason = f"{name} {version} has wheels for Python {tags[0]} to {tags[-1]}"
    return Refusal(project=project, reason=reason, excludes=wanted)


def _with_cumm(wheel: WheelFile, context: Context) -> WheelFile | Refusal:
    """Return the wheel, unless the cumm it requires is known to have none for the target."""
    for text in context.source.requires_dist(wheel) or ():
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if not name.startswith("cumm"):
            continue
        known = [
            w
            for w in context.source.wheels(pypi_page(context.indexes), name)
            if requirement.specifier.contains(w.version, prereleases=True)
        ]
        if known and not any(fits(w.filename, context.target) for w in known):
            where = f"Python {context.target.python}"
            reason = (
                f"{wheel.project} {wheel.version} needs `{text}`, which has no wheel for {where}"
            )
            return Refusal(project=wheel.project, reason=reason, excludes=wheel.project)
    return wheel


def _pinned(wheel: WheelFile, project: str, candidate: Candidate, context: Context) -> Extension:
    asked_for = SpecifierSet(",".join(str(r.specifier) for r in context.wanted[project]))
    pin = PypiPin(
        project=wheel.project,
        specifier=str(asked_for) if project == "cumm" else f"=={wheel.version}",
        replaces=None if wheel.project == project else project,
        reason="the nearest build of the same CUDA major" if candidate.cuda else "the CPU build",
    )
    return Extension(pins=(pin,), notes=_notes(wheel, context))


def _notes(wheel: WheelFile, context: Context) -> tuple[str, ...]:
    """Say which GPUs the NVRTC inside cannot compile for; its GPU code is judged elsewhere."""
    code = context.facts.device_code(wheel.filename)
    own = SUFFIXED.get(wheel.project)
    if code is None or own is None or not code.sass:
        return ()
    beyond = [
        gpu.sm
        for gpu in sorted(capabilities(context))
        if coverage(code, gpu) is not Coverage.NATIVE and not toolkit_knows(own, gpu)
    ]
    if not beyond:
        return ()
    note = (
        f"{wheel.project} {wheel.version} brings NVRTC {own}, which cannot compile for "
        f"{' and '.join(beyond)}: kernels that it compiles while running fail there"
    )
    return (note,)


def _no_source(project: str) -> Refusal:
    reason = (
        f"{project} has no source distribution to build from, "
        "the build table must name a `path` or `git`"
    )
    return Refusal(project=project, reason=reason, excludes=project)


PROJECTS = frozenset({"spconv", "cumm", *SUFFIXED, *CUMM})
PROVIDER = Provider(name="spconv", projects=PROJECTS, extend=extend)
