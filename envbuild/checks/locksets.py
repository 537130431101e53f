"""EB502: the files that one target is locked in, against each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import counted, shortened
from envbuild.checks.rule import rule
from envbuild.core.compare import compare_sets
from envbuild.core.lockdrift import is_coupled
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Relock
from envbuild.model.layers import Layers

if TYPE_CHECKING:
    from envbuild.model.layers import LockFile

_MOST = 6


@rule("EB502", "The lock files do not hold the same set", severity=Severity.WARNING)
def different_sets(layers: Layers) -> Iterator[Finding]:
    """Compare the files that one target is locked in.

    **What it finds.** A pylock and a requirements file of one target with other versions, or with
    other files of one version by their hashes, and a uv.lock that differs so from the pylock of
    the default target. uv.lock may hold more, for extras and groups, and more files of a release.
    A difference in torch or what belongs to it is an error.

    **Why it matters.** pip, uv and the install script then make different environments of one
    commit.

    **Example.** uv.lock was updated by `uv lock --upgrade-package torch`, the pylock was not.

    **Fix.** `envbuild lock`, which writes all files of a target together.
    """
    for pylock in layers.pylocks:
        for requirements in layers.requirements:
            if pylock.target and pylock.target == requirements.target and pylock.fits:
                sets = {one.path: _versions(one) for one in (pylock, requirements)}
                yield from _differences(sets, _other_files(pylock, requirements))
        default = layers.uses_envbuild and pylock.target == layers.default_target
        if default and pylock.fits and layers.managed and layers.uv_lock is not None:
            sets = _against_uv(layers.uv_lock, pylock)
            yield from _differences(sets, _other_files(layers.uv_lock, pylock))


def _versions(lock: LockFile) -> dict[str, str]:
    unhashed = dict(text.partition("==")[::2] for text in lock.incomplete)
    return {**unhashed, **{one.name: one.version for one in lock.packages}}


def _against_uv(uv_lock: LockFile, pylock: LockFile) -> dict[str, dict[str, str]]:
    """Return the two sets without what uv.lock alone may hold."""
    theirs = _versions(pylock)
    ours = {one.name: one.version for _, one in uv_lock.optional} | _versions(uv_lock)
    several = {one.name for _, one in uv_lock.optional} & {one.name for one in uv_lock.packages}
    mine = {name: version for name, version in ours.items() if name in theirs}
    comparable = {name: version for name, version in theirs.items() if name not in several}
    return {
        uv_lock.path: {name: mine[name] for name in mine if name not in several},
        pylock.path: comparable,
    }


def _other_files(first: LockFile, second: LockFile) -> dict[str, str]:
    """Return the packages of one version whose files have no hash in common, in words."""
    theirs = {(one.name, one.version): set(one.sha256) for one in second.packages if one.sha256}
    return {
        one.name: f"{one.name} {one.version}: the files have other hashes"
        for one in first.packages
        if one.sha256
        and theirs.get((one.name, one.version), set(one.sha256)).isdisjoint(one.sha256)
    }


def _differences(sets: dict[str, dict[str, str]], files: dict[str, str]) -> Iterator[Finding]:
    lines = (*compare_sets(sets), *files.values())
    if not lines:
        return
    first, second = sets
    names = {
        n for n in sets[first].keys() | sets[second] if sets[first].get(n) != sets[second].get(n)
    }
    names |= files.keys()
    grave = any(map(is_coupled, names))
    yield Finding(
        code="EB502",
        severity=Severity.ERROR if grave else Severity.WARNING,
        subject=second,
        message=f"{first} and {second} differ in {counted(len(lines), 'package')}",
        evidence=shortened(lines, most=_MOST),
        hint="run `envbuild lock`, which writes all of them together",
        fixes=(Relock(reason=f"{first} and {second} do not hold the same set"),),
        brings=(f"lock:{first}", f"lock:{second}"),
    )


RULES = (different_sets,)
