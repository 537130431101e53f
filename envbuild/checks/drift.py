"""EB501 and EB504: what is installed, and what the lock says about it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import counted, shortened, torch_label
from envbuild.checks.rule import rule
from envbuild.core.installedrequires import needs_of
from envbuild.core.lockdrift import drift_from, is_coupled, lock_for, needed_by
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Manual, Reinstall, Relock
from envbuild.model.installed import Installed
from envbuild.model.layers import Layers

if TYPE_CHECKING:
    from envbuild.core.lockdrift import Change
    from envbuild.model.fix import Fix
    from envbuild.model.layers import LockFile

_MOST = 6


def is_synced(layers: Layers) -> bool:
    """Whether `uv run` and `uv sync` of the project change the environment examined."""
    return layers.managed and layers.owned and layers.uv_lock is not None


@rule("EB501", "What is installed is not what the lock says", severity=Severity.ERROR)
def drift(installed: Installed, layers: Layers) -> Iterator[Finding]:
    """Compare the installed versions with the lock that applies.

    **What it finds.** Packages of another version than uv.lock's where uv manages the project,
    else than those of the target's pylock or requirements file that fits this Python. torch and
    what must match its build come first and are an error; others are a warning. Local versions
    count as they are written; a version that the lock holds for an extra is a warning with its
    flag, as is torch in another version than an extra, a group or a member of the workspace
    holds. Pins without hashes are a warning. Packages that are not installed are a note.

    **Why it matters.** The next `uv run` silently puts the lock's torch back. Under the other
    layer nothing does, and the environment is not the one that was tested.

    **Example.** `uv pip install torch==2.7.0+cu128` into a project whose uv.lock holds 2.11.0:
    `uv run --with open3d` restores 2.11.0.

    **Fix.** Put the version that is meant into pyproject.toml, then `uv lock && uv sync` (with
    envbuild `envbuild lock && uv sync`). `UV_NO_SYNC=1` keeps what is installed until then. Under
    the other layer, `uv pip sync` the lock.
    """
    lock = lock_for(layers, installed)
    if lock is None:
        return
    found = drift_from(lock, installed)
    optional = [one for one in found.changed if one.flag]
    certain = [one for one in found.changed if not one.flag]
    coupled = [one for one in certain if is_coupled(one.one.name)]
    others = [one for one in certain if not is_coupled(one.one.name)]
    if coupled:
        yield _changed(lock, _torch_first(coupled), others, installed, layers)
    elif others:
        yield _changed(lock, others, [], installed, layers)
    if optional and is_synced(layers):
        yield _optional(lock, _torch_first(optional))
    if found.asked and is_synced(layers):
        yield _asked(lock, _torch_first(list(found.asked)))
    if found.absent and found.extra and not certain and lock.hashed:
        yield _absent(lock, tuple(one.name for one in found.absent))


def _torch_first(changes: list[Change]) -> list[Change]:
    return sorted(changes, key=lambda one: (one.one.name != "torch", one.one.name))


def _changed(
    lock: LockFile,
    first: list[Change],
    others: list[Change],
    installed: Installed,
    layers: Layers,
) -> Finding:
    leading = first[0]
    grave = is_coupled(leading.one.name) and lock.hashed
    rest = len(first) + len(others) - 1
    also = f", and {counted(rest, 'more package')}" if rest else ""
    if is_synced(layers):
        text = (
            f"the next `uv run` will replace {leading.one.label} by {leading.locked.version}{also}"
        )
    else:
        text = f"{leading.one.label} is installed, {lock.path} says {leading.locked.version}{also}"
    return Finding(
        code="EB501",
        severity=Severity.ERROR if grave else Severity.WARNING,
        subject=leading.one.label,
        message=text,
        evidence=(
            *shortened((_line(one, installed) for one in (*first, *others)), most=_MOST),
            posixpath.join(layers.directory, lock.path),
        ),
        hint=_hint(lock, layers),
        fixes=_fixes(lock, [*first, *others], layers),
        brings=(
            f"lock:{lock.path}",
            *(f"drift:{one.one.name}" for one in (*first, *others)),
            *(() if is_synced(layers) else (f"dist:{one.one.name}" for one in first)),
        ),
    )


def _line(change: Change, installed: Installed) -> str:
    one, locked = change.one, change.locked
    where = f" from {locked.index}" if locked.index and is_coupled(one.name) else ""
    itself = ""
    if one.name == "torch" and installed.torch and installed.torch.version != one.version:
        itself = f" ({torch_label(installed)} by its own version.py)"
    return f"{one.label}{itself} -> {locked.version}{where}"


def _hint(lock: LockFile, layers: Layers) -> str:
    if is_synced(layers):
        return "lock what is meant and run `uv sync`; until then `UV_NO_SYNC=1` keeps what is there"
    command = "uv pip sync" if lock.hashed else "uv pip install -r"
    return f"install the set of {lock.path} again: `{command} {lock.path}`"


def _fixes(lock: LockFile, changes: list[Change], layers: Layers) -> tuple[Fix, ...]:
    """In a managed project the lock or the environment may be the one that is wrong.

    A torch without a local version was nobody's wish where the lock names the build.
    """
    torch = next((one for one in changes if one.one.name == "torch"), None)
    if is_synced(layers) and torch is not None and _is_plain_build(torch):
        return (Reinstall(names=tuple(one.one.name for one in changes)),)
    if is_synced(layers):
        how = "envbuild lock && uv sync" if layers.uses_envbuild else "uv lock && uv sync"
        return (Manual(text=f"{how}, with the versions that are meant in pyproject.toml"),)
    if lock.target and lock.hashed:
        return (Manual(text=f"uv pip sync {lock.path}"),)
    pins = tuple(f"{one.one.name}=={one.locked.version}" for one in changes)
    return (Install(requirements=pins),)


def _is_plain_build(torch: Change) -> bool:
    ours, theirs = torch.one.version, torch.locked.version
    same = public_of(ours) == public_of(theirs)
    return same and not local_of(ours) and bool(local_of(theirs))


def _optional(lock: LockFile, changes: list[Change]) -> Finding:
    first = changes[0]
    return Finding(
        code="EB501",
        severity=Severity.WARNING,
        subject=first.one.label,
        message=(
            f"a plain `uv run` will replace {first.one.label} by {first.locked.version},"
            f" `uv run {first.flag}` keeps it"
        ),
        evidence=tuple(f"{one.one.label} -> {one.locked.version}" for one in changes[:_MOST]),
        hint=f"always say {first.flag}, or set UV_NO_SYNC=1",
        brings=(f"lock:{lock.path}", *(f"drift:{one.one.name}" for one in changes)),
    )


def _asked(lock: LockFile, changes: list[Change]) -> Finding:
    first = changes[0]
    also = f", and {counted(len(changes) - 1, 'more package')}" if len(changes) > 1 else ""
    return Finding(
        code="EB501",
        severity=Severity.WARNING if is_coupled(first.one.name) else Severity.NOTE,
        subject=first.one.label,
        message=(
            f"`uv run {first.flag}` will replace {first.one.label} by {first.locked.version}{also}"
        ),
        evidence=(
            *shortened((f"{o.one.label} -> {o.locked.version}" for o in changes), most=_MOST),
            lock.path,
        ),
        hint="lock what is meant; until then `UV_NO_SYNC=1` keeps what is there",
        brings=(f"lock:{lock.path}",),
    )


def _absent(lock: LockFile, names: tuple[str, ...]) -> Finding:
    return Finding(
        code="EB501",
        severity=Severity.NOTE,
        subject=lock.path,
        message=f"{counted(len(names), 'package')} of {lock.path} are not installed",
        evidence=shortened(names, most=_MOST),
    )


@rule("EB504", "`uv sync` would remove what torch needs", severity=Severity.ERROR)
def sync_removes(installed: Installed, layers: Layers) -> Iterator[Finding]:
    """Find packages that torch needs and that uv.lock does not hold.

    **What it finds.** torch is locked in the version that is installed, but the lock was
    resolved to a torch without its NVIDIA packages or triton, which a sync has taken away already
    or would take away; and a torch that is installed and not in the lock at all, which is a
    warning.

    **Why it matters.** `uv sync` is exact: it removes what the lock does not hold, and the next
    import ends with `libcudnn.so.9: cannot open shared object file`.

    **Example.** A lock that was made on a Mac or against the CPU index, synced on Linux.

    **Fix.** Lock again for Linux with the CUDA index; `uv sync --inexact` until then.
    """
    lock, torch = layers.uv_lock, installed.find("torch")
    if not is_synced(layers) or lock is None or torch is None:
        return
    found = drift_from(lock, installed)
    optional = {one.name for _, one in lock.optional}
    extra = {one.name for one in found.extra} - optional
    if "torch" in extra:
        yield _removed(lock, torch.label, ("torch",), Severity.WARNING)
        return
    if "torch" in optional or any(change.one.name == "torch" for change in found.changed):
        return
    needed = sorted(needed_by("torch", installed) & extra)
    if needed:
        yield _removed(lock, torch.label, tuple(needed), Severity.ERROR)
        return
    held = {one.name for one in lock.packages} | optional
    asked = {need.name for need in needs_of(installed) if need.by.name == "torch"}
    gone = [name for name in sorted(asked - held) if name.startswith("nvidia-")]
    if gone and not any(installed.find(name) for name in gone):
        yield _was_removed(lock, torch.label, tuple(gone))


def _removed(lock: LockFile, label: str, names: tuple[str, ...], severity: Severity) -> Finding:
    itself = names == ("torch",)
    what = label if itself else f"{counted(len(names), 'package')} that {label} needs"
    held = "it" if itself else "them"
    return Finding(
        code="EB504",
        severity=severity,
        subject=label,
        message=f"`uv sync` would remove {what}: {lock.path} does not hold {held}",
        evidence=shortened(names, most=_MOST),
        hint="lock them, or use `uv sync --inexact`",
        fixes=(Relock(reason=f"{lock.path} lacks {', '.join(names[:_MOST])}"),),
        because=(f"lock:{lock.path}",),
    )


def _was_removed(lock: LockFile, label: str, names: tuple[str, ...]) -> Finding:
    """Say that another sync will not help: the lock is that of a torch without CUDA."""
    return Finding(
        code="EB504",
        severity=Severity.ERROR,
        subject=label,
        message=(
            f"{lock.path} does not hold {counted(len(names), 'package')} that {label} needs and"
            " that are not installed: another `uv sync` will not bring them"
        ),
        evidence=shortened(names, most=_MOST),
        hint="it was resolved against the CPU index, or for another platform",
        fixes=(
            Manual(
                text="lead torch to the index of its CUDA in [tool.uv.sources], for Linux"
                " (`envbuild lock` does), then uv lock --upgrade-package torch && uv sync"
            ),
        ),
        because=(f"lock:{lock.path}",),
        brings=("drift:torch",),
    )


RULES = (drift, sync_removes)
