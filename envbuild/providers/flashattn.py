"""flash-attn: wheels on its release pages, or its source distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.core.context import fitting
from envbuild.core.indexpages import flash_attn_page
from envbuild.core.wanted import accepts, accepts_release, asked
from envbuild.core.wheeltags import public_of
from envbuild.model.project import Prefer
from envbuild.model.stack import IndexPin, Refusal
from envbuild.model.wheel import PageKind
from envbuild.providers.interface import (
    Extension,
    Provider,
    pinned_version,
    preference,
    served,
    source_build,
)
from envbuild.providers.templates import locals_for, strings

if TYPE_CHECKING:
    from envbuild.core.context import Context
    from envbuild.model.stack import Candidate

PROJECT = "flash-attn"


def extend(candidate: Candidate, context: Context) -> Extension | Refusal:
    """Pin the release wheel for the candidate's torch minor, CUDA major and C++ ABI."""
    if not served(context, frozenset({PROJECT})):
        return Extension()
    if candidate.cuda is None:
        reason = "flash-attn has no CPU build"
        return Refusal(project=PROJECT, reason=reason, excludes=asked(context.wanted, PROJECT))
    prefer = preference(context, PROJECT)
    if prefer is not Prefer.SOURCE:
        found = _wheel(candidate, context)
        if isinstance(found, IndexPin):
            return Extension(pins=(found,))
        if prefer is Prefer.WHEEL:
            return found
    return _source(candidate, context)


def _wheel(candidate: Candidate, context: Context) -> IndexPin | Refusal:
    names = locals_for("flashattn", candidate, abi=_cxx11_abi(candidate, context))
    for release in _releases(context):
        page = flash_attn_page(context.indexes, release)
        for wheel in fitting(context, page, PROJECT, local=names):
            if _wanted(wheel.version, context):
                return IndexPin(wheel=wheel, reason=f"built for {candidate.label}")
    wanted = asked(context.wanted, PROJECT)
    where = context.target.machines
    reason = f"no release of `{wanted}` has a wheel for {candidate.label}, {where}"
    return Refusal(project=PROJECT, reason=reason, excludes=wanted)


def _releases(context: Context) -> tuple[str, ...]:
    """Return the releases within what is wanted, newest first."""
    found = []
    for key in context.facts.pages(PageKind.FLASH_ATTN):
        try:
            version = Version(key)
        except InvalidVersion:
            continue
        if not version.is_prerelease and accepts_release(context.wanted, PROJECT, key):
            found.append((version, key))
    return tuple(key for _, key in sorted(found, reverse=True))


def _wanted(version: str, context: Context) -> bool:
    return accepts(context.wanted, PROJECT, version) or accepts(
        context.wanted, PROJECT, public_of(version)
    )


def _cxx11_abi(candidate: Candidate, context: Context) -> bool:
    build = context.facts.torch_build(candidate.public, candidate.cuda)
    if build is not None and build.cxx11_abi is not None:
        return build.cxx11_abi
    (since,) = strings("flashattn", "cxx11-abi-since")
    return Version(candidate.public) >= Version(since)


def _source(candidate: Candidate, context: Context) -> Extension | Refusal:
    """Take the pinned version, else the newest release that has a source distribution too."""
    pinned = pinned_version(context, PROJECT)
    refusal = Refusal(
        project=PROJECT,
        reason="no version of flash-attn is known to build from source, pin one with `==`",
        excludes=asked(context.wanted, PROJECT),
    )
    runtime = strings("flashattn", "runtime")
    for version in (pinned,) if pinned else _releases(context):
        built = source_build(context, PROJECT, version, candidate=candidate, runtime=runtime)
        if not isinstance(built, Refusal):
            return Extension(pins=(built,))
        refusal = built
    return refusal


PROVIDER = Provider(name="flash-attn", projects=frozenset({PROJECT}), extend=extend)
