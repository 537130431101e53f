"""EB113: packages that PyTorch's index alone publishes, from somewhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from envbuild.checks.rule import rule
from envbuild.core.verify.origin import INDEX_ONLY
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual, Remove
from envbuild.model.installed import Installed
from envbuild.model.layers import Layers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution
    from envbuild.model.layers import LockFile

_HOST = "download.pytorch.org"
_PYPI = ("pypi.org", "pythonhosted.org")
# PyTorch's own are 2.0.0 with the commit as the local version.
_FIRST_FOREIGN_TORCHTRITON = Version("2.1")


@rule("EB113", "A package of PyTorch's index comes from elsewhere", severity=Severity.ERROR)
def foreign_origin(installed: Installed, layers: Layers | None) -> Iterator[Finding]:
    """Find names that PyTorch's index alone publishes and another index supplied.

    **What it finds.** `torchtriton`, `pytorch-triton`, `pytorch-triton-rocm` and
    `pytorch-triton-xpu` that a lock takes from another index than PyTorch's and torch's, that
    were installed from an address of PyPI, or in a version that PyTorch never published.

    **Why it matters.** Whoever registers such a name elsewhere is somebody else, and pip takes
    the highest version of all indexes. In December 2022 a `torchtriton` on PyPI sent away the
    keys and files of the machines that installed a nightly torch.

    **Example.** torchtriton 3.0.0 beside a nightly torch that requires torchtriton 2.0.0.

    **Fix.** Remove it, put PyTorch's index in with `explicit = true` and a line in
    `[tool.uv.sources]`, and lock again. Where it was imported, take every key and password of the
    machine for known to others.
    """
    locks = _locks(layers) if layers is not None else ()
    for name in sorted(INDEX_ONLY):
        one = installed.find(name)
        locked = tuple(_by_locks(name, locks))
        reasons = (*locked, *(_by_itself(one) if one is not None else ()))
        if reasons:
            yield _finding(name, one, reasons, is_locked=bool(locked))


def _locks(layers: Layers) -> tuple[LockFile, ...]:
    uvs = (layers.uv_lock,) if layers.uv_lock is not None else ()
    return (*uvs, *layers.pylocks, *layers.requirements)


def _by_locks(name: str, locks: Iterable[LockFile]) -> Iterator[str]:
    for lock in locks:
        torchs = {one.index for one in lock.packages if one.name == "torch"}
        for one in lock.packages:
            mirrored = one.index in torchs and not any(host in one.index for host in _PYPI)
            if one.name == name and one.index and not mirrored and _HOST not in one.index:
                yield f"{lock.path} takes {name} {one.version} from {one.index}"


def _by_itself(one: Distribution) -> Iterator[str]:
    if any(host in (one.origin or "") for host in _PYPI):
        yield f"it was installed from {one.origin}"
    try:
        foreign = Version(one.version) >= _FIRST_FOREIGN_TORCHTRITON
    except InvalidVersion:
        return
    if one.name == "torchtriton" and foreign:
        yield "PyTorch published no torchtriton after 2.0.0"


def _finding(
    name: str, one: Distribution | None, reasons: tuple[str, ...], *, is_locked: bool
) -> Finding:
    label = one.label if one is not None else name
    return Finding(
        code="EB113",
        severity=Severity.ERROR,
        subject=label,
        message=f"{label} does not come from PyTorch's index, which alone publishes it",
        evidence=reasons,
        fixes=tuple(_fixes(name, one, is_locked=is_locked)),
        brings=(f"dist:{name}",),
    )


def _fixes(name: str, one: Distribution | None, *, is_locked: bool) -> Iterator[Fix]:
    """Lead the name to its index first: another lock or install would take the impostor again."""
    yield Manual(
        text=(
            f"lead {name} to PyTorch's index: `explicit = true` in [[tool.uv.index]] and a line in"
            " [tool.uv.sources]" + (", then `uv lock` and `uv sync`" if is_locked else "")
        )
    )
    if one is None:
        return
    if not is_locked:
        yield Remove(names=(name,))
    yield Manual(text="where it was imported: change every key and password that this machine held")


RULES = (foreign_origin,)
