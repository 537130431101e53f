"""EB106: requirements of installed distributions that nothing installed satisfies."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envbuild.checks.owners import counted, shortened
from envbuild.checks.rule import rule
from envbuild.checks.tables import table
from envbuild.core.installedrequires import (
    Need,
    holds,
    is_met,
    marker_environments,
    needs_of,
    parsed,
    visible,
)
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install
from envbuild.model.installed import Installed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution

_MOST = 8
_QUOTED = re.compile(r"""['"]([^'"]+)['"]""")
_PINNED = ("nvidia-", "triton", "pytorch-triton")
_OLD_CUDNN = (
    "`cuDNN version incompatibility` on the first use, where torch was compiled with a newer minor"
    " release"
)
_HINT = "install the version asked for, or the release of the one who asks that fits"


@rule("EB106", "A requirement is missing or not satisfied", severity=Severity.WARNING)
def unmet_requirements(installed: Installed) -> Iterator[Finding]:
    """Find requirements that no installed distribution satisfies.

    **What it finds.** What `uv pip check` says, one finding for each distribution that asks,
    and the requirements of extras that another distribution asks for, or that are about a part
    of the package itself (`jax-cuda12-plugin` under `jax`, which else computes on the CPU).
    Versions count with the local part that `torch/version.py` names. What conda installed is left
    to conda.

    **Why it matters.** A library of NVIDIA that torch requires and nobody installed is
    `libnvshmem_host.so.3: cannot open shared object file`; that is an error. Any other missing
    package fails when it is first imported, and another version than the one asked for may work:
    a warning.

    **Example.** `uv sync` from a lock without CUDA removed 13 `nvidia-*` packages that torch
    2.6.0 requires.

    **Fix.** `uv pip install` what is required, as the finding writes it, or the release of the one
    who asks that fits. In a managed project put it into pyproject.toml: the next sync undoes the
    rest.
    """
    present = {one.name: one for one in visible(installed)}
    own = set(installed.own_sites or installed.sites)
    unmet: dict[str, list[Need]] = defaultdict(list)
    for need in (*needs_of(installed), *_parts(installed, present)):
        if need.by.installer == "conda" or need.by.site not in own or need.by.record is None:
            continue
        found = present.get(need.name)
        if found is None or not is_met(need, _versions(found, installed)):
            unmet[need.by.name].append(need)
    for needs in unmet.values():
        yield _unmet(needs, present)


def _parts(installed: Installed, present: dict[str, Distribution]) -> Iterator[Need]:
    """Give what the extras of a package ask in vain of its own parts, which are named after it.

    A part is of use to that package alone, whether somebody asked for the extra or not.
    """
    environments = marker_environments(installed)
    parts: dict[tuple[str, str], list[Need]] = defaultdict(list)
    for one in present.values():
        for text in one.requires:
            if not canonicalize_name(text[: len(one.name) + 1]).startswith(f"{one.name}-"):
                continue
            requirement = parsed(text)
            if requirement is None or "extra" not in str(requirement.marker):
                continue
            need = Need(by=one, requirement=requirement)
            extras = _QUOTED.findall(str(requirement.marker))
            if need.name in present and holds(requirement.marker, environments, extras):
                parts[one.name, need.name].append(need)
    for (_, name), needs in parts.items():
        if not any(is_met(need, (present[name].version,)) for need in needs):
            yield needs[0]


def _versions(one: Distribution, installed: Installed) -> tuple[str, ...]:
    if one.name == "torch" and installed.torch is not None:
        return (one.version, installed.torch.version)
    return (one.version,)


def _unmet(needs: list[Need], present: dict[str, Distribution]) -> Finding:
    by = needs[0].by
    missing = [need for need in needs if need.name not in present]
    libraries = _libraries_of({need.name for need in missing})
    fatal = by.name == "torch" and bool(libraries)
    names = list(dict.fromkeys(need.name for need in needs))
    return Finding(
        code="EB106",
        severity=Severity.ERROR if fatal else Severity.WARNING,
        subject=by.label,
        message=_message(needs, missing, present),
        evidence=shortened((_line(need, present) for need in needs), most=_MOST),
        hint=None if len(missing) == len(needs) else _hint(needs, present),
        fixes=_fixes(needs, missing),
        because=(
            f"dist:{by.name}",
            f"drift:{by.name}",
            *(f"dist:{name}" for name in names),
            *(f"drift:{name}" for name in names if len(names) == 1),
            *(f"wrong:{name}" for name in names if len(names) == 1 and name.startswith("nvidia-")),
        ),
        brings=(
            *(f"pin:{n.name}" for n in needs if n.by.name == "torch" and n.name in present),
            *(f"library:{library}" for library in libraries),
            *((f"import:{by.name}", *(f"dist:{one.name}" for one in missing)) if fatal else ()),
        ),
    )


def _hint(needs: list[Need], present: dict[str, Distribution]) -> str:
    """Say what becomes of an older cuDNN under torch (pytorch:torch/backends/cudnn/__init__.py)."""
    cudnn = [n for n in needs if n.by.name == "torch" and n.name.startswith("nvidia-cudnn-")]
    for need in cudnn:
        pins = (one.version for one in need.requirement.specifier if one.operator == "==")
        if need.name in present and any(_is_older(present[need.name].version, pin) for pin in pins):
            return _OLD_CUDNN
    return _HINT


def _is_older(version: str, pin: str) -> bool:
    try:
        return Version(version) < Version(pin)
    except InvalidVersion:
        return False


def _fixes(needs: list[Need], missing: list[Need]) -> tuple[Fix, ...]:
    """Install what is missing, the libraries and the triton that torch pins, and parts.

    A part is named after the package that asks (`jaxlib` after `jax`). Of two other packages of
    which one wants another version of the other either may be the wrong one.
    """
    pinned = [n for n in needs if n.name.startswith(_PINNED if n.by.name == "torch" else n.by.name)]
    wanted = dict.fromkeys(_wanted(need) for need in (*missing, *pinned))
    return (Install(requirements=tuple(wanted)),) if wanted else ()


def _message(needs: list[Need], missing: list[Need], present: dict[str, Distribution]) -> str:
    by = needs[0].by.label
    if len(needs) == 1:
        return f"{by} requires {_line(needs[0], present)}"
    if len(missing) == len(needs):
        names = ", ".join(dict.fromkeys(need.name for need in missing))
        return f"{by} requires {counted(len(missing), 'package')} that are not installed: {names}"
    return f"{by} has {counted(len(needs), 'requirement')} that are not satisfied"


def _line(need: Need, present: dict[str, Distribution]) -> str:
    found = present.get(need.name)
    return f"`{need.text}`, found {found.version if found else 'none'}"


def _wanted(need: Need) -> str:
    if need.requirement.url is not None:
        return f"{need.requirement.name} @ {need.requirement.url}"
    return need.text


def _libraries_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the libraries that packages bring, by their file names."""
    wanted = set(names)
    return tuple(
        library
        for major in ("cuda11", "cuda12", "cuda13")
        for library, package in table("libraries")[major].items()
        if package in wanted
    )


RULES = (unmet_requirements,)
