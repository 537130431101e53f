"""Which build of a coupled package belongs to the torch that is installed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envbuild.checks.owners import torch_cuda, torch_label, torch_public
from envbuild.checks.packagedata import ended, old_companion
from envbuild.core.buildtools import OLD_SETUPTOOLS, needs_old_setuptools
from envbuild.core.buildwords import fixed_words
from envbuild.core.installedrequires import parsed
from envbuild.core.pairing import pairs
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.fix import Install, Manual
from envbuild.model.project import IndexUrls

if TYPE_CHECKING:
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution, Installed
    from envbuild.ports import Facts

_COMPANIONS = ("torchvision", "torchaudio")
# PyG's releases for every torch from 2.1 on (data.pyg.org, read 2026-11-29), and for torch 1.13.
_PYG = {
    "torch-scatter": ("2.1.2", "2.1.1"),
    "torch-sparse": ("0.6.18", None),
    "torch-cluster": ("1.6.3", None),
    "torch-spline-conv": ("1.2.2", None),
}
_PYG_SINCE = (2, 1)
_PYG_OLD = (1, 13)
_LOCAL_TORCH = re.compile(r"(?:pt|torch)\.?(?P<major>[12])\.?(?P<minor>\d{1,2})(?!\d)")


def built_for(version: str) -> str | None:
    """Return the torch minor that a local version names: ``2.7`` for ``2.1.2+pt27cu128``."""
    match = _LOCAL_TORCH.search(local_of(version))
    return f"{match['major']}.{match['minor']}" if match else None


def pinned_torch(one: Distribution) -> str | None:
    """Return the torch that a package requires exactly (``torch==2.3.0``), None without a pin."""
    for text in one.requires:
        requirement = parsed(text)
        if requirement is None or requirement.name != "torch" or "extra" in text:
            continue
        exact = [part.version for part in requirement.specifier if part.operator == "=="]
        if exact and not exact[0].endswith(".*"):
            return public_of(exact[0])
    return None


def cuda_index(installed: Installed) -> str | None:
    """Return PyTorch's index for the installed build, None where torch came from PyPI."""
    torch = installed.find("torch")
    local = local_of(torch.version) if torch else ""
    if not re.fullmatch(r"cu\d{2,3}|cpu", local):
        return None
    return f"{IndexUrls().pytorch}/{local}"


def matching(one: Distribution, installed: Installed, facts: Facts) -> Fix | None:
    """Return what installs the build of a package that fits the installed torch."""
    public = torch_public(installed)
    if public is None:
        return None
    if one.name in _COMPANIONS:
        return _companion(one.name, public, installed, facts)
    if one.name in _PYG:
        return _pyg(one.name, public, installed)
    if one.name == "flash-attn":
        return _flash_attn(public, installed, facts)
    return _listed(one.name, public, installed, facts)


def _listed(name: str, public: str, installed: Installed, facts: Facts) -> Fix | None:
    for pairing in facts.pairings(name):
        if _admits(pairing.torch, public):
            index = cuda_index(installed) if name == "torchcodec" else None
            return Install(requirements=(f"{name}=={pairing.version}",), index=index)
    return _ended(name, installed) if name in ended() else None


def _admits(specifier: str, public: str) -> bool:
    try:
        return pairs(SpecifierSet(specifier), public)
    except InvalidSpecifier:
        return False


def _companion(name: str, public: str, installed: Installed, facts: Facts) -> Fix | None:
    build = facts.torch_build(public, torch_cuda(installed))
    version = dict(build.companions).get(name) if build else old_companion(name, public)
    if version is None:
        return None
    index = cuda_index(installed)
    local = f"+{index.rpartition('/')[2]}" if index else ""
    return Install(requirements=(f"{name}=={version}{local}",), index=index)


def _pyg(name: str, public: str, installed: Installed) -> Fix:
    minor = tuple(int(part) for part in public.split(".")[:2])
    cuda = torch_cuda(installed)
    tag = cuda.tag if cuda else "cpu"
    page = f"{IndexUrls().pyg}/torch-{minor[0]}.{minor[1]}.0+{tag}.html"
    release = _PYG[name][0] if minor >= _PYG_SINCE else None
    if minor == _PYG_OLD:
        release = _PYG[name][1]
    if release is None:
        return Manual(text=f"install {name} from {page}")
    local = f"pt{minor[0]}{minor[1]}{tag}"
    return Install(requirements=(f"{name}=={release}+{local}",), find_links=page)


def _ended(name: str, installed: Installed) -> Fix:
    known = ended()[name]
    return Manual(
        text=(
            f"no {name} is made for {torch_label(installed)}: {known.last}, the last release, is"
            f" for torch {known.torch}\nremove it, and what imports it; {known.instead}"
        )
    )


def _flash_attn(public: str, installed: Installed, facts: Facts) -> Fix:
    minor = ".".join(public.split(".")[:2])
    cuda = torch_cuda(installed)
    build = facts.torch_build(public, cuda)
    abi = "" if build is None or build.cxx11_abi is None else str(build.cxx11_abi).upper()
    major = f"cu{cuda.major}" if cuda else "cu12"
    return Manual(
        text=(
            f"install the flash-attn wheel whose name holds `{major}torch{minor}cxx11abi{abi}`"
            f" from {IndexUrls().flash_attn}, or build it:"
            " uv pip install --no-build-isolation --no-binary flash-attn --reinstall flash-attn"
        )
    )


def rebuild(one: Distribution | None, label: str, installed: Installed) -> Fix:
    """Return what builds a package again that was built in place."""
    torch = torch_label(installed)
    if one is None or one.origin is None:
        return Manual(
            text=(
                f"remove {label} with its `build` folder and its egg, and build it again for"
                f" {torch}: uv pip install --no-build-isolation FOLDER"
            )
        )
    folder = one.origin.removeprefix("file://")
    how = "--editable " if one.editable else ""
    return Manual(
        text=(
            f"build {one.name} again for {torch}: uv pip install --no-build-isolation"
            f" --reinstall {how}{folder}"
        )
    )


def from_source(one: Distribution, installed: Installed) -> Fix:
    """Return what builds a release of an index again, against the installed torch."""
    if one.origin is not None:
        return rebuild(one, one.name, installed)
    words = (*(f"{name}={value}" for name, value in fixed_words(one.name)), "FORCE_CUDA=1")
    old = needs_old_setuptools(one.name, torch_public(installed) or "")
    first = f"uv pip install '{OLD_SETUPTOOLS}' && " if old else ""
    release = f"{one.name}=={public_of(one.version)}"
    return Manual(
        text=(
            f"build {one.label} again for {torch_label(installed)}, where nvcc is: {first}"
            f"{' '.join(words)} uv pip install --no-build-isolation --no-cache --no-binary"
            f" {one.name} --reinstall-package {one.name} {release}"
        )
    )


def minor_of(version: str) -> str:
    """Return ``2.7`` for ``2.7.1+cu128``."""
    return ".".join(public_of(version).split(".")[:2])
