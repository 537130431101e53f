"""EB702, EB705: Python packages that come from elsewhere, or twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import pin_of, requirements_of
from envbuild.checks.rule import rule
from envbuild.core.ptxas import TRITON_NAMES
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Export, Install, Manual, Reinstall, Remove, Unset
from envbuild.model.host import Host
from envbuild.model.installed import Installed

if TYPE_CHECKING:
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution

_WATCHED = ("torch", "numpy", "triton", "torchvision", "torchaudio")
_TRITONS = (*TRITON_NAMES, "pytorch-triton-rocm", "pytorch-triton-xpu", "triton-nightly")


@rule("EB702", "Another folder stands before the environment", severity=Severity.ERROR)
def in_front(installed: Installed, host: Host) -> Iterator[Finding]:
    """A package is imported from outside although the environment has it.

    **What it finds.** torch, numpy, triton, torchvision and torchaudio that PYTHONPATH, the user
    site (`~/.local`) or a `.pth` file puts before the environment's own. A venv ignores the user
    site, and it is not reported there. The same version from elsewhere is a warning.

    **Why it matters.** What is installed and locked is not what runs; the errors name versions
    that are not in the environment.

    **Example.** conda imports torch 2.6.0 of ~/.local, the environment has 2.7.0+cu128.

    **Fix.** Export `PYTHONNOUSERSITE=1`, or unset PYTHONPATH.
    """
    groups: dict[str, list[str]] = {}
    for top in _WATCHED:
        site = installed.site_of(top)
        own = (names for folder, names in installed.tops if folder in installed.own_sites)
        if site is not None and site not in installed.own_sites and any(top in n for n in own):
            groups.setdefault(site, []).append(top)
    for site, tops in groups.items():
        yield _in_front(installed, site, tops, host)


def _in_front(installed: Installed, site: str, tops: list[str], host: Host) -> Finding:
    theirs = {top: _version(installed, top, (site,)) for top in tops}
    ours = {top: _version(installed, top, installed.own_sites) for top in tops}
    other = [top for top in tops if theirs[top] is None or theirs[top] != ours[top]]
    top = (other or tops)[0]
    rest = ", ".join(one for one in tops if one != top)
    variable, fix = _way(site, installed, host)
    return Finding(
        code="EB702",
        severity=Severity.ERROR if other else Severity.WARNING,
        subject=f"{top} {theirs[top] or ''}".rstrip(),
        message=(
            f"{top} {theirs[top] or '(unknown version)'} is imported from `{site}`, the environment"
            f" has {ours[top] or 'its own'}{f'; so is {rest}' if rest else ''}"
        ),
        evidence=(f"put in front by {variable}",),
        fixes=(fix,),
        because=(f"env:{variable}",),
        brings=tuple(f"dist:{one}" for one in tops),
    )


def _version(installed: Installed, name: str, sites: tuple[str, ...]) -> str | None:
    found = (o for o in installed.distributions if o.name == name and o.site in sites)
    return next((one.version for one in found), None)


def _way(site: str, installed: Installed, host: Host) -> tuple[str, Fix]:
    """Return what puts a folder in front, and what ends it."""
    entries = (host.variable("PYTHONPATH") or "").split(":")
    if site.rstrip("/") in [entry.rstrip("/") for entry in entries]:
        return "PYTHONPATH", Unset(variable="PYTHONPATH")
    if installed.user_site is not None and site == installed.user_site:
        return "the user site", Export(variable="PYTHONNOUSERSITE", value="1")
    return "a `.pth` file", Manual(text=f"find what adds `{site}` to sys.path, and take it away")


@rule("EB705", "triton is not the one of this torch", severity=Severity.WARNING)
def foreign_triton(installed: Installed) -> Iterator[Finding]:
    """Two packages bring the module `triton`, or it was built from another source.

    **What it finds.** Several of triton, pytorch-triton, pytorch-triton-rocm and triton-nightly
    at once; or a triton that was built from a folder or a repository and is not of the version
    that torch pins.

    **Why it matters.** torch calls triton's internals. With another triton torch.compile fails
    with an ImportError or an AttributeError; two of them overwrite each other's files.

    **Example.** triton 3.6.0 and pytorch-triton 3.2.0 in one environment.

    **Fix.** `uv pip uninstall` all of them, then install the one that torch requires, which
    `uv pip show torch` names.
    """
    found = [one for one in (installed.find(name) for name in _TRITONS) if one is not None]
    torch = installed.find("torch")
    required = {requirement.name for requirement in requirements_of(torch)} & set(_TRITONS)
    keep = next((one for one in found if one.name in required), None)
    extra = [one for one in found if one is not keep]
    if len(found) > 1:
        names = " and ".join(one.label for one in found)
        message = f"{names} bring the same module `triton`"
        yield _finding(extra[0], message, _keep(keep, extra))
    pin = pin_of(torch, keep.name) if keep else None
    if keep is not None and pin is not None and keep.origin and keep.version != pin:
        yield _finding(
            keep,
            f"{keep.label} was built from {keep.origin}, torch pins {pin}",
            (Install(requirements=(f"{keep.name}=={pin}",)),),
        )


def _keep(keep: Distribution | None, extra: list[Distribution]) -> tuple[Fix, ...]:
    if keep is None:
        return (Manual(text="keep the triton that torch was released with"),)
    return (Remove(names=tuple(one.name for one in extra)), Reinstall(names=(keep.name,)))


def _finding(one: Distribution, message: str, fixes: tuple[Fix, ...]) -> Finding:
    return Finding(
        code="EB705",
        severity=Severity.WARNING,
        subject=one.label,
        message=message,
        fixes=fixes,
        because=(f"dist:{one.name}",),
        brings=("import:triton",),
    )


RULES = (in_front, foreign_triton)
