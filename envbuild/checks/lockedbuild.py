"""EB508: the version that is locked, in another build."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from envbuild.checks.drift import is_synced
from envbuild.checks.owners import counted, shortened, torch_cuda, torch_label
from envbuild.checks.rule import rule
from envbuild.core.lockdrift import is_coupled, is_locked, lock_for
from envbuild.core.lockedbuild import Foreign, foreign_builds, from_elsewhere
from envbuild.core.pypitorch import pypi_build
from envbuild.core.wheeltags import local_of
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Manual
from envbuild.model.installed import Installed
from envbuild.model.layers import Layers, Taken
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution
    from envbuild.model.layers import LockedVersion, LockFile

_MOST = 6
_PYPI = frozenset({"pypi.org", "files.pythonhosted.org"})


@rule("EB508", "The installed build is not the locked one", severity=Severity.ERROR)
def another_build(installed: Installed, layers: Layers, facts: Facts) -> Iterator[Finding]:
    """Compare what is installed in the locked version with the build that the lock names.

    **What it finds.** Packages whose version is right and whose build is not: installed from a
    file with a hash that the lock does not hold, built from a folder or a checkout where the lock
    takes a wheel, a wheel for any platform where the locked ones are for one, fewer bytes in
    RECORD than the locked wheel has, and a torch of another CUDA than PyPI's or the target's. It
    is an error for torch and what must match its build, else a warning.

    An environment does not keep the hash of a wheel that came from an index, so another file
    under the same name, version and tags is only found by its size. What is editable, conda's, or
    locked as a folder is left alone.

    **Why it matters.** Every version is right, `uv pip check` is content, and the code is not the
    one that was locked and tested.

    **Example.** flash-attn 2.8.3 was built on this machine for another torch; the lock names the
    release's wheel.

    **Fix.** `uv sync --reinstall-package NAME`; in the layer "pip"
    `uv pip sync lockfiles/pylock.TARGET.toml --reinstall-package NAME`.
    """
    lock = lock_for(layers, installed)
    if lock is None:
        return
    found = [*foreign_builds(lock, installed), *_other_torch(lock, installed, facts)]
    for one in found:
        if is_coupled(one.one.name):
            yield _coupled(one, lock, layers)
    others = [one for one in found if not is_coupled(one.one.name)]
    if others:
        yield _others(others, lock, layers)
    elsewhere = from_elsewhere(lock, installed) if is_synced(layers) else ()
    if elsewhere:
        yield _put_back(elsewhere, lock)


def _other_torch(lock: LockFile, installed: Installed, facts: Facts) -> Iterator[Foreign]:
    """Compare torch/version.py with the lock, where the version of the lock names no CUDA."""
    torch, text = installed.find("torch"), installed.torch
    locked = next((one for one in lock.packages if one.name == "torch"), None)
    if torch is None or text is None or locked is None or local_of(locked.version):
        return
    if torch.site not in (installed.own_sites or installed.sites) or torch.editable:
        return
    if torch.installer == "conda" or not is_locked(torch, locked):
        return
    wanted = lock.cuda or _pypis_cuda(locked, installed, facts)
    cuda = torch_cuda(installed)
    found = "ROCm" if text.hip is not None else f"CUDA {cuda}" if cuda else "the CPU"
    if wanted and found != f"CUDA {wanted}":
        yield Foreign(
            one=torch,
            locked=locked,
            why=f"it is built for {found}, the locked one for CUDA {wanted}",
            evidence=(f"torch/version.py: {torch_label(installed)}",),
        )


def _pypis_cuda(locked: LockedVersion, installed: Installed, facts: Facts) -> str:
    if urlsplit(locked.index).hostname not in _PYPI:
        return ""
    build = pypi_build(facts, locked.version, machine=installed.machine)
    return str(build.cuda) if build and build.cuda else ""


def _coupled(found: Foreign, lock: LockFile, layers: Layers) -> Finding:
    one = found.one
    return Finding(
        code="EB508",
        severity=Severity.ERROR,
        subject=one.label,
        message=f"{one.label} is not the build that {lock.path} names: {found.why}",
        evidence=(*found.evidence, posixpath.join(layers.directory, lock.path)),
        hint=_hint([found], layers),
        fixes=_fixes([found], lock, layers),
        because=(f"lock:{lock.path}", *((f"dist:{one.name}",) if one.name == "torch" else ())),
        brings=(f"dist:{one.name}",),
    )


def _others(found: list[Foreign], lock: LockFile, layers: Layers) -> Finding:
    first = found[0]
    rest = len(found) - 1
    also = f" (and so for {counted(rest, 'more package')})" if rest else ""
    return Finding(
        code="EB508",
        severity=Severity.WARNING,
        subject=first.one.label,
        message=f"{first.one.label} is not the build that {lock.path} names: {first.why}{also}",
        evidence=(
            *shortened((f"{one.one.label}: {one.evidence[0]}" for one in found), most=_MOST),
            posixpath.join(layers.directory, lock.path),
        ),
        hint=_hint(found, layers),
        fixes=_fixes(found, lock, layers),
        because=(f"lock:{lock.path}",),
        brings=tuple(f"dist:{one.one.name}" for one in found),
    )


def _put_back(found: tuple[Distribution, ...], lock: LockFile) -> Finding:
    """Say what uv does to a file that was installed by hand, be it the locked one or not."""
    first = found[0]
    also = f", and {counted(len(found) - 1, 'more package')}" if len(found) > 1 else ""
    return Finding(
        code="EB508",
        severity=Severity.NOTE,
        subject=first.label,
        message=f"the next `uv run` installs {first.label} again from its index{also}",
        evidence=(
            *shortened((f"{one.label} came from {one.origin}" for one in found), most=_MOST),
            f"{lock.path} takes {'it' if len(found) == 1 else 'them'} from an index",
        ),
    )


def _fixes(found: list[Foreign], lock: LockFile, layers: Layers) -> tuple[Fix, ...]:
    """Install the locked version anew: a reinstall would take it from where it came."""
    by_address = [one for one in found if one.locked.taken is Taken.ADDRESS]
    again = " ".join(f"--reinstall-package {one.one.name}" for one in by_address)
    command = "uv sync" if is_synced(layers) else f"uv pip sync {lock.path}"
    return (
        *(_install(one.locked) for one in found if one not in by_address),
        *((Manual(text=f"{command} {again}"),) if by_address else ()),
    )


def _install(locked: LockedVersion) -> Install:
    own = locked.index if local_of(locked.version) else ""
    return Install(requirements=(f"{locked.name}=={locked.version}",), index=own or None)


def _hint(found: list[Foreign], layers: Layers) -> str | None:
    """Say what uv does by itself: it replaces what did not come from where the lock says."""
    if is_synced(layers) and any(one.one.origin is not None for one in found):
        return "the next `uv run` puts the locked build back"
    return None


RULES = (another_build,)
