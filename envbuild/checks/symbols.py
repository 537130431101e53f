"""EB301: symbols that a library on disk does not define for those that use it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks import binaries, libraries
from envbuild.checks.owners import (
    counted,
    gaps_of,
    owners_for,
    shortened,
    torch_cuda,
    torch_pin,
    variable_of,
)
from envbuild.checks.rule import rule
from envbuild.checks.symbolspans import described, newest, spans_of
from envbuild.checks.tables import package_for
from envbuild.checks.torchextension import other_torch
from envbuild.core.elf.libnames import is_torch_symbol
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Manual, Reinstall, Remove, Unset
from envbuild.model.installed import Installed, Ownership
from envbuild.model.links import Links
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.checks.owners import (
        Owners,
        Subject,
    )
    from envbuild.model.fix import Fix
    from envbuild.model.links import LoadedLibrary, MissingSymbol

_MKL = "iJIT_"


@rule("EB301", "A library lacks symbols that others need", severity=Severity.ERROR)
def missing_symbols(
    installed: Installed, ownership: Ownership, links: Links, facts: Facts
) -> Iterator[Finding]:
    """A library that will be loaded does not define functions that another one calls.

    **What it finds.** For each package and each library it uses, every function that the library
    on disk does not define. The loader names only the first one; a version chosen by that name
    alone often leads to the next error. For NVIDIA's libraries the finding names the release that
    has them all.

    **Why it matters.** `import torch` ends with `undefined symbol: ncclCommWindowDeregister`.
    Usually a second package wrote an older library over torch's (`nvidia-nccl-cu12` over
    `nvidia-nccl-cu13`: both own `nvidia/nccl/lib/libnccl.so.2`), or a variable puts another one
    in front. Metadata and `uv pip check` show nothing of it.

    **Example.** torch 2.11.0 with NCCL 2.26.2 on disk: 6 symbols are missing, the newest needs
    NCCL 2.28.3, torch pins 2.28.9.

    **Fix.** Remove the package that does not belong to torch, and reinstall the one that torch
    pins, since removing deletes the shared file. Reinstalling torch alone does not help.
    """
    owners = owners_for(installed, ownership)
    found = [one for one in links.symbols if not _is_of_torch(owners, one)]
    groups: dict[tuple[Subject, str], list[MissingSymbol]] = {}
    for one in found:
        key = (owners.subject(one.path), one.provider or "")
        groups.setdefault(key, []).append(one)
    for (subject, provider), symbols in groups.items():
        if provider:
            yield _lacking(owners, subject, provider, symbols, links=links, facts=facts)
        else:
            yield _undefined(subject, symbols)


def _is_of_torch(owners: Owners, one: MissingSymbol) -> bool:
    """Whether it is torch's own symbol that an extension lacks, which EB302 judges."""
    return is_torch_symbol(one.name.encode()) and owners.subject(one.path).name != "torch"


def _lacking(
    owners: Owners,
    subject: Subject,
    provider: str,
    symbols: list[MissingSymbol],
    *,
    links: Links,
    facts: Facts,
) -> Finding:
    names = sorted({one.name for one in symbols})
    library = posixpath.basename(provider)
    package = _belonging(owners, subject, provider)
    owner = owners.subject(provider).distribution
    pin = torch_pin(owners.installed, package) if package else None
    pinned = f"; torch pins `{package}=={pin}`" if pin else ""
    spans = spans_of(names, provider, facts)
    loaded = next((one for one in links.loaded if one.path == provider), None)
    return Finding(
        code="EB301",
        severity=Severity.ERROR,
        subject=subject.label,
        message=(
            f"{subject.label} needs {counted(len(names), 'symbol')} that `{library}` does not"
            f" define{newest(spans, names=names)}{pinned}"
        ),
        evidence=(
            *shortened(
                (described(name, spans.get(name)) for name in dict.fromkeys((*spans, *names))),
                most=8,
            ),
            f"{provider} is {owners.named(provider)}{_found_by(loaded)}",
            *sorted({f"needed by {one.path}" for one in symbols}),
        ),
        fixes=_fixes(owners, provider, package=package, pin=pin, loaded=loaded),
        because=(
            f"file:{provider}",
            f"library:{library}",
            subject.token,
            *gaps_of(owners, links, subject.name or "torch"),
        ),
        brings=(
            *(f"symbol:{name}" for name in names),
            *(() if owner is None else (f"wrong:{owner.name}",)),
            *subject.brings,
        ),
    )


def _undefined(subject: Subject, symbols: list[MissingSymbol]) -> Finding:
    names = sorted({one.name for one in symbols})
    fixes: tuple[Fix, ...] = (Reinstall(names=(subject.name,)),) if subject.name else ()
    hint = None
    mkl = [name for name in names if name.startswith(_MKL)]
    if mkl:
        hint = "MKL 2024.1 and newer no longer define `iJIT_…`, which conda's torch up to 2.2 uses"
        fixes = (Manual(text="conda install 'mkl<2024.1'"),)
    elif subject.name == "torch":
        hint = "torch's own libraries are not all of one build"
    elif not fixes:
        fixes = (Manual(text=f"build {subject.label} again"),)
    return Finding(
        code="EB301",
        severity=Severity.ERROR,
        subject=subject.label,
        message=(
            f"{subject.label} needs {counted(len(names), 'symbol')} that nothing it loads defines"
        ),
        evidence=(*shortened(names), *sorted({f"needed by {one.path}" for one in symbols})),
        hint=hint,
        fixes=fixes,
        because=(
            subject.token,
            *(f"symbol:{name}" for name in mkl),
            *sorted({f"file:{one.path}" for one in symbols}),
        ),
        brings=(*(f"symbol:{name}" for name in names if name not in mkl), *subject.brings),
    )


def _found_by(loaded: LoadedLibrary | None) -> str:
    variable = variable_of(loaded)
    return f", found by way of {variable}" if variable else ""


def _belonging(owners: Owners, subject: Subject, provider: str) -> str | None:
    """Return the package that should own a library: by torch's CUDA, else by who owns it."""
    if subject.name == "torch" and "/torch/lib/" in provider:
        return "torch"
    cuda = torch_cuda(owners.installed)
    found = package_for(posixpath.basename(provider), cuda.major) if cuda else None
    return found or owners.subject(provider).name or None


def _fixes(
    owners: Owners,
    provider: str,
    *,
    package: str | None,
    pin: str | None,
    loaded: LoadedLibrary | None,
) -> tuple[Fix, ...]:
    owner = owners.subject(provider).name
    variable = variable_of(loaded)
    if variable and not owner:
        return (Unset(variable=variable),)
    if package is None:
        return (Manual(text=f"install a newer `{posixpath.basename(provider)}`"),)
    held = owners.installed.find(package)
    foreign: tuple[Fix, ...] = ()
    if owner and owner != package:
        foreign = (Remove(names=(owner,)),)
    if pin is not None and (held is None or held.version != pin):
        return (*foreign, Install(requirements=(f"{package}=={pin}",)))
    if held is not None:
        return (*foreign, Reinstall(names=(package,)))
    return (*foreign, Install(requirements=(package,)))


RULES = (missing_symbols, other_torch, *libraries.RULES, *binaries.RULES)
