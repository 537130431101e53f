"""EB102: packages that were built for another CUDA than torch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion

from envbuild.checks.owners import torch_cuda, torch_label, torch_public
from envbuild.checks.rule import rule
from envbuild.checks.torchpairs import matching
from envbuild.core.installedrequires import visible
from envbuild.core.lockview import parse_local
from envbuild.core.pypitorch import accelerator_of, pypi_build
from envbuild.core.wheeltags import local_of
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual
from envbuild.model.installed import Installed
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.core.lockview import BuiltFor
    from envbuild.model.installed import Distribution

_SUFFIXED = re.compile(r"(?:spconv|cumm|nixl)-cu(?P<major>1\d)\d?")
_PIP = frozenset({"pip", "uv"})


def built_for(one: Distribution) -> BuiltFor | None:
    """Return what a distribution says it was built for, in its version or in its wheel's name."""
    local = local_of(one.version)
    if not local and one.origin and one.origin.endswith(".whl"):
        try:
            name = one.origin.rpartition("/")[2].replace("%2B", "+").replace("%2b", "+")
            local = parse_wheel_filename(name)[1].local or ""
        except (InvalidWheelFilename, InvalidVersion):
            return None
    return parse_local(local)


def torch_accelerator(installed: Installed) -> str:
    """Return ``cu128`` or ``cpu`` for the installed torch, empty where it is not known."""
    text = installed.torch
    if text is not None:
        if text.hip is not None or "xpu" in text.version:
            return ""
        cuda = torch_cuda(installed)
        return cuda.tag if cuda else "cpu" if local_of(text.version) == "cpu" else ""
    torch = installed.find("torch")
    built = parse_local(local_of(torch.version)) if torch else None
    return built.accelerator if built else ""


@rule("EB102", "A package belongs to another CUDA than torch", severity=Severity.ERROR)
def cuda_mix(installed: Installed, facts: Facts) -> Iterator[Finding]:
    """Find extension packages that were built for another CUDA major than torch.

    **What it finds.** A local version (`torchvision 0.26.0+cu130`, `torch-scatter
    2.1.2+pt27cu118`) or a name (`spconv-cu118`) of another CUDA major than torch's, and a CUDA
    build beside a CPU torch. Packages that bring their own CUDA, as JAX and CuPy do, are left
    alone.

    **Why it matters.** The extension needs `libcudart` of its own major, which torch does not
    bring: `libcudart.so.12: cannot open shared object file`; torchvision refuses to be imported.

    **Example.** `torchvision` is missing in `[tool.uv.sources]`, so PyPI's build for CUDA 13
    comes beside `torch 2.11.0+cu128`.

    **Fix.** Install the package's build for torch's CUDA, which for torchvision and torchaudio
    lies on `https://download.pytorch.org/whl/cu128`, and lead it there in `[tool.uv.sources]`.
    Where it has no such build, take torch for the package's CUDA.
    """
    ours = torch_accelerator(installed)
    if not ours:
        return
    for one in visible(installed):
        theirs = _accelerator(one, installed, facts)
        if one.name == "torch" or theirs is None or theirs[:4] == ours[:4]:
            continue
        if theirs != "cpu":
            yield _mixed(one, theirs, ours, installed, facts)


def _accelerator(one: Distribution, installed: Installed, facts: Facts) -> str | None:
    suffix = _SUFFIXED.fullmatch(one.name)
    if suffix is not None:
        return f"cu{suffix['major']}"
    built = built_for(one)
    return built.accelerator if built else pypi_accelerator(one, installed, facts)


def pypi_accelerator(one: Distribution, installed: Installed, facts: Facts) -> str | None:
    """Return what PyPI's torchvision or torchaudio was built for; None where it is another's.

    PyPI's files have no local version, and neither have conda's and those one builds.
    """
    is_wheel = any("manylinux" in tag and "x86_64" in tag for tag in one.tags)
    if one.name not in ("torchvision", "torchaudio") or local_of(one.version):
        return None
    if one.installer not in _PIP or one.origin is not None or not is_wheel:
        return None
    build = pypi_build(facts, torch_public(installed) or "", machine="x86_64")
    mine = build is not None and dict(build.companions).get(one.name) == one.version
    return accelerator_of(build) if build is not None and mine else None


def _mixed(
    one: Distribution, theirs: str, ours: str, installed: Installed, facts: Facts
) -> Finding:
    fix = matching(one, installed, facts)
    torch = torch_label(installed)
    ends = f"is the {ours} build" if ours == "cpu" else f"for {ours}"
    return Finding(
        code="EB102",
        severity=Severity.ERROR,
        subject=one.label,
        message=f"{one.label} is built for {theirs}, {torch} {ends}",
        evidence=(one.origin or f"{one.site}/{one.info}",),
        hint=None if fix else f"install the build of {one.name} that is made for {ours}",
        fixes=(fix,) if fix else (Manual(text=f"install {one.name} built for {ours}"),),
        because=(f"dist:{one.name}",),
        brings=(f"dist:{one.name}", f"import:{one.name}"),
    )


RULES = (cuda_mix,)
