"""EB103: packages that were made for another torch than the one installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from envbuild.checks.cudamix import built_for, pypi_accelerator, torch_accelerator
from envbuild.checks.owners import torch_label, torch_public
from envbuild.checks.packagedata import known_pair
from envbuild.checks.rule import rule
from envbuild.checks.torchpairs import matching, minor_of, pinned_torch
from envbuild.core.installedrequires import visible
from envbuild.core.pairing import pairs
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.cuda import CudaVersion
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual
from envbuild.model.installed import Installed
from envbuild.model.project import IndexUrls
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution

_PINNED = frozenset(
    {"torchvision", "torchaudio", "torchtext", "torchcodec", "vllm", "vllm-flash-attn", "xformers"}
)
_TORCHS_OWN = frozenset({"torchvision", "torchaudio", "torchtext", "torchcodec"})
# torchaudio compares torch's CUDA version with its own, minor and all, when it is imported; it
# has had no CUDA part since 2.9 (pytorch/audio:src/torchaudio/_extension/utils.py).
_LAST_STRICT_AUDIO = (2, 8)


@rule("EB103", "A package is made for another torch", severity=Severity.ERROR)
def wrong_companions(installed: Installed, facts: Facts) -> Iterator[Finding]:
    """Find torchvision, torchaudio, torchcodec, xformers and extensions of another torch.

    **What it finds.** A release whose symbols need another torch than the one installed, though
    its metadata may admit it (torchaudio 2.11.1 declares `torch>=2.11` and needs 2.13; torchcodec
    declares nothing); a wheel whose local version names another torch (`+pt27cu128`); and equal
    versions of different builds, as `+cu124` and `+cu126` of torch 2.6.0, which have different
    C++ ABIs.

    **Why it matters.** `operator torchvision::nms does not exist`, `undefined symbol: _ZN3c10...`,
    `Could not load libtorchcodec`.

    **Example.** An install of xformers took torch back to 2.4.0 and left torchvision 0.20.1.

    **Fix.** Install the release that belongs to the installed torch, from the index of its build:
    `uv pip install torchvision==0.26.0+cu128 --index https://download.pytorch.org/whl/cu128`. The
    finding names the release where it is known.
    """
    public = torch_public(installed)
    if public is None or not public[:1].isdigit():
        return
    for one in visible(installed):
        if one.name == "torch" or one.installer == "conda":
            continue
        found = _wrong_release(one, public, facts)
        if found is not None:
            yield _release(one, found, installed, facts)
            continue
        yield from _wrong_build(one, public, installed, facts)


def _wrong_release(one: Distribution, public: str, facts: Facts) -> tuple[str, str] | None:
    """Return which torch a release is made for and who says so, where it is not this one."""
    built = built_for(one)
    if built is not None and built.torch_minor is not None:
        wrong = built.torch_minor != minor_of(public)
        return (f"torch {built.torch_minor}", _version_text(one)) if wrong else None
    pairing = facts.pairing(one.name, public_of(one.version))
    if pairing is not None:
        specifier = _specifier(pairing.torch)
        fits = specifier is None or pairs(specifier, _examined(public, facts))
        return None if fits else (f"torch {pairing.torch}", pairing.source)
    known = known_pair(one.name, minor_of(one.version))
    if known is not None:
        return None if known[0] == minor_of(public) else (f"torch {known[0]}", known[1])
    return _by_metadata(one, public)


def _examined(public: str, facts: Facts) -> str:
    """Return a torch that the facts can speak of: the newest known one for one that is newer.

    Where a fact ends at the newest torch that was examined, it does not say that the next fails.
    """
    builds = facts.torch_builds()
    try:
        return builds[0].torch if builds and Version(public) > Version(builds[0].torch) else public
    except InvalidVersion:
        return public


def _version_text(one: Distribution) -> str:
    return one.origin or f"its version, {one.version}"


def _by_metadata(one: Distribution, public: str) -> tuple[str, str] | None:
    """Judge by an exact pin on torch, which companions alone have for the sake of their ABI."""
    if one.name not in _PINNED:
        return None
    pinned = pinned_torch(one)
    if pinned is None or pairs(SpecifierSet(f"=={pinned}"), public):
        return None
    return f"torch =={pinned}", "its METADATA"


def _specifier(text: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        return None


def _release(
    one: Distribution, found: tuple[str, str], installed: Installed, facts: Facts
) -> Finding:
    wanted, source = found
    fix = matching(one, installed, facts) or _move_torch(one)
    ours, theirs = torch_accelerator(installed), built_for(one)
    other = theirs is not None and ours not in ("", theirs.accelerator)
    also = f" (also {theirs.accelerator} against {ours})" if other and theirs else ""
    return Finding(
        code="EB103",
        severity=Severity.ERROR,
        subject=one.label,
        message=f"{one.label} is made for {wanted}, found {torch_label(installed)}{also}",
        evidence=(source,) if source else (),
        hint=None if fix else f"install the {one.name} that belongs to {torch_label(installed)}",
        fixes=(fix,) if fix else (),
        brings=(f"dist:{one.name}", f"import:{one.name}"),
    )


def _move_torch(one: Distribution) -> Fix | None:
    """Say which torch a package asks for that is known in no other release."""
    pinned = None if one.name in _TORCHS_OWN else pinned_torch(one)
    if pinned is None:
        return None
    return Manual(
        text=f"install torch {pinned}, which {one.label} is made for, with what belongs to it,"
        f" or the release of {one.name} for this torch"
    )


def _wrong_build(
    one: Distribution, public: str, installed: Installed, facts: Facts
) -> Iterator[Finding]:
    """Compare builds of one CUDA major; another major is EB102's."""
    ours, built = torch_accelerator(installed), built_for(one)
    theirs = built.accelerator if built else pypi_accelerator(one, installed, facts)
    if not ours or theirs is None or ours.startswith(theirs) or theirs[:4] != ours[:4]:
        if theirs == "cpu" and ours not in ("", "cpu"):
            yield _build(one, "cpu", ours, installed, facts, severity=Severity.WARNING)
        return
    is_strict = one.name == "torchaudio" and _numbers(one.version) <= _LAST_STRICT_AUDIO
    abis = _abi(facts, public, theirs), _abi(facts, public, ours)
    if is_strict or (None not in abis and abis[0] != abis[1]):
        yield _build(one, theirs, ours, installed, facts, severity=Severity.ERROR)
    elif one.name in ("torchvision", "torchaudio"):
        yield _build(one, theirs, ours, installed, facts, severity=Severity.NOTE)


def _abi(facts: Facts, public: str, accelerator: str) -> bool | None:
    try:
        cuda = None if accelerator == "cpu" else CudaVersion.parse(accelerator)
    except ValueError:
        return None
    build = facts.torch_build(public, cuda)
    return build.cxx11_abi if build else None


def _numbers(version: str) -> tuple[int, ...]:
    parts = minor_of(version).split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def _build(
    one: Distribution,
    theirs: str,
    ours: str,
    installed: Installed,
    facts: Facts,
    *,
    severity: Severity,
) -> Finding:
    torch, public = torch_label(installed), torch_public(installed) or ""
    abis = _abi(facts, public, theirs), _abi(facts, public, ours)
    differ = None not in abis and abis[0] != abis[1]
    names = {True: "new", False: "old", None: "unknown"}
    text = f"{one.label} is the {theirs} build, {torch} the {ours} build"
    if differ:
        text += f", with another C++ ABI ({names[abis[0]]} against {names[abis[1]]})"
    fix = matching(one, installed, facts)
    bad = severity is Severity.ERROR
    return Finding(
        code="EB103",
        severity=severity,
        subject=one.label,
        message=text,
        evidence=(one.origin or f"{one.site}/{one.info}",),
        hint=_other_way(theirs, installed),
        fixes=(fix,) if fix and severity is not Severity.NOTE else (),
        because=("dist:torch",),
        brings=(f"dist:{one.name}", *((f"import:{one.name}",) if bad else ())),
    )


def _other_way(theirs: str, installed: Installed) -> str:
    """Name the build of torch that may be the one meant, where nobody asked for torch's build."""
    torch = installed.find("torch")
    if torch is None or local_of(torch.version) or theirs == "cpu":
        return "equal public versions are not enough: take both from one index"
    index = f"{IndexUrls().pytorch}/{theirs}"
    return (
        f"a plain `torch=={torch.version}` is satisfied by any build: where the {theirs} build is"
        f" meant, install `torch=={torch.version}+{theirs}` with `--index {index}`"
    )


RULES = (wrong_companions,)
