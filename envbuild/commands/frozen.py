"""What the base of each target holds: read where the user names it, else as it was locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.commands.request import lock_on_disk
from envbuild.core.frozen import base_changes, frozen_of
from envbuild.errors import InputError, WorldError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.commands.lockrun import LockOptions
    from envbuild.model.frozen import Frozen
    from envbuild.model.target import Target
    from envbuild.ports import BaseReader, Files, Reporter


def frozen_bases(
    targets: Iterable[Target],
    options: LockOptions,
    *,
    files: Files,
    bases: BaseReader,
    reporter: Reporter,
) -> dict[str, Frozen]:
    """Return what is kept, by the names of the targets that have a base.

    An interpreter of this machine is read each time, and an image when it is named: nothing else
    would tell that it was changed.

    Raises InputError where it is neither named nor locked, and where it is not for the target.
    """
    frozen = {
        target.name: _frozen(target, options, files=files, bases=bases, reporter=reporter)
        for target in targets
        if target.is_frozen
    }
    if not frozen and options.names_base:
        raise InputError(
            "a base was named on the command line, and no target that is locked has one",
            hint='set `base = "nvcr.io/nvidia/pytorch:25.05-py3"`, or `base-python`, in the target',
        )
    return frozen


def _frozen(
    target: Target, options: LockOptions, *, files: Files, bases: BaseReader, reporter: Reporter
) -> Frozen:
    before = lock_on_disk(files, target)
    locked = None
    if before is not None and before.base == target.base:
        locked = before.frozen
    if not options.names_base and target.base is not None:
        if locked is None:
            raise _not_read(target, None if before is None else before.base)
        return locked
    path = options.base_python or target.base_python
    try:
        installed = bases.installed(path, root=options.base_root)
    except (InputError, WorldError):
        if locked is None or options.names_base:
            raise
        reporter.note(f"{target.name}: `{path}` is not on this machine, the lock says what it has")
        return locked
    found = frozen_of(installed, target)
    if locked is None or base_changes(locked, installed):
        _say(found, target, reporter)
    return found


def _say(found: Frozen, target: Target, reporter: Reporter) -> None:
    torch = found.find("torch")
    reporter.note(
        f"{target.name}: the base holds {len(found.packages)} packages"
        f"{f' and torch {torch.version}' if torch else ', none of them torch'}; all are kept"
    )
    if found.unversioned:
        names = ", ".join(found.unversioned)
        reporter.note(
            f"{target.name}: no requirement on {names} can be checked, the version in "
            "the base is none"
        )


def _not_read(target: Target, before: str | None) -> InputError:
    locked = f", the lock is for `{before}`" if before else ""
    return InputError(
        f"it is not known what `{target.base}`, the base of target `{target.name}`, holds{locked}",
        hint="in a container of it: `envbuild lock --base-python /usr/bin/python3`; or unpack it "
        "(`docker export`) and name the folder: `envbuild lock --base-root FOLDER`",
    )
