"""EB9: what envbuild's own commands left behind."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import counted, shortened
from envbuild.checks.rule import rule
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual, Relock
from envbuild.model.installed import UNFINISHED, Installed
from envbuild.model.layers import UV_LOCK_SCHEMA, Layers

if TYPE_CHECKING:
    from envbuild.model.ownfiles import Generated

_MOST = 5


@rule("EB901", "A sync was broken off", severity=Severity.WARNING)
def unfinished_sync(installed: Installed) -> Iterator[Finding]:
    """Find an environment in which `envbuild sync` began and did not come to its end.

    **What it finds.** The file `.envbuild-sync` in the environment, which `envbuild sync` writes
    before it changes anything and removes when everything is installed.

    **Why it matters.** Packages may be half installed. uv takes a package for whole as soon as its
    metadata lies there, so `uv sync` alone can call such an environment clean.

    **Example.** A node is taken away in the middle of `envbuild sync`.

    **Fix.** Run `envbuild sync` again; it looks at every file first and puts right what is broken.
    """
    if installed.unfinished:
        yield Finding(
            code="EB901",
            severity=Severity.WARNING,
            subject=installed.prefix,
            message="`envbuild sync` is at work here, or was broken off",
            evidence=(f"{installed.prefix}/{UNFINISHED}",),
            hint="run `envbuild sync` again: it finds what is half installed",
            fixes=(Manual(text="envbuild sync"),),
        )


@rule("EB902", "A generated script belongs to another lock", severity=Severity.WARNING)
def stale_scripts(layers: Layers) -> Iterator[Finding]:
    """Compare the scripts and Dockerfiles that envbuild wrote with the lock they install.

    **What it finds.** `scripts/install-TARGET.sh` and `scripts/Dockerfile.TARGET` whose header
    names the hash of another lock than the one that lies there, or a lock that is gone. One that
    was edited by hand is a note. Files without envbuild's header are somebody else's.

    **Why it matters.** The script compares the hash itself and stops, in the image build or on
    the node, where nobody can lock.

    **Example.** `envbuild lock -U` was committed, `envbuild script` was not run.

    **Fix.** `envbuild script` or `envbuild dockerfile`; `--check` with either says so in CI.
    """
    for one in layers.own.generated:
        docker = "Dockerfile" in one.path
        again = f"envbuild {'dockerfile' if docker else 'script'}"
        if one.made_from == one.now and one.untouched:
            continue
        stale = one.made_from != one.now
        gone = one.now is None
        why = f"was made from {'' if gone else 'another '}{one.lock}{', which is gone' * gone}"
        yield Finding(
            code="EB902",
            severity=Severity.WARNING if stale else Severity.NOTE,
            subject=one.path,
            message=f"{one.path} {why if stale else 'was edited by hand'}",
            evidence=_hashes(one) if stale else (),
            hint=None if stale else f"`{again}` would write it anew",
            fixes=(Manual(text=f"{again}, in {layers.directory}"),) if stale else (),
            because=(f"lock:{one.lock}",),
        )


def _hashes(one: Generated) -> tuple[str, ...]:
    now = "is not there" if one.now is None else f"sha256 {one.now[:12]}"
    return (f"made from: sha256 {one.made_from[:12]}", f"{one.lock}: {now}")


@rule("EB903", "A lock does not belong to its pyproject.toml", severity=Severity.WARNING)
def stale_locks(layers: Layers) -> Iterator[Finding]:
    """Compare envbuild's locks with the project, as far as it can be told without solving.

    **What it finds.** A requirement that the lock does not hold or does not satisfy, another
    Python, platform, base, torch, CUDA or GPUs than the target's, other source builds, a target
    that is gone; and pins in `[tool.uv]` that contradict the lock, or that no longer hold torch. A
    pylock whose versions and files contradict each other cannot be read, which is EB507.

    **Why it matters.** What is installed from the lock lacks what the project asks for, and the
    next `uv lock` may move torch to another build.

    **Example.** `uv add timm` without `envbuild lock`: `timm` is required, the lock has no timm.

    **Fix.** `envbuild lock`. `envbuild lock --check` solves, and sees more than this.
    """
    for path, reasons in layers.own.stale:
        rest = len(reasons) - 1
        yield Finding(
            code="EB903",
            severity=Severity.WARNING,
            subject=path,
            message=f"{path} is stale: {reasons[0]}"
            + (f", and {counted(rest, 'more difference')}" if rest else ""),
            evidence=shortened(reasons[1:], most=_MOST),
            fixes=(Relock(reason=f"{path} does not belong to pyproject.toml"),),
            brings=(f"lock:{path}",),
        )


@rule("EB904", "A lock is newer than this envbuild", severity=Severity.NOTE)
def newer_locks(layers: Layers) -> Iterator[Finding]:
    """Find locks of a format that this envbuild does not read.

    **What it finds.** A uv.lock whose `version`, or a pylock whose `lock-version`, is higher than
    the one that is known here. It is no fault of the environment: what follows from the lock is
    not known.

    **Why it matters.** The rules about locks (EB5) pass such a file over.

    **Example.** `version = 2` in uv.lock, written by a uv that came after this envbuild.

    **Fix.** Install a newer envbuild.
    """
    for path, found in layers.newer:
        yield Finding(
            code="EB904",
            severity=Severity.UNKNOWN,
            subject=path,
            message=f"{path} was not judged: it says `{found}`, known is {UV_LOCK_SCHEMA}",
            hint="a newer envbuild reads it",
        )


@rule("EB905", "A lock was broken off while it was written", severity=Severity.WARNING)
def unfinished_lock(layers: Layers) -> Iterator[Finding]:
    """Find what a killed `envbuild lock` left beside the project's files.

    **What it finds.** The folder `.envbuild-stage`. Where it is complete, the files were being
    put in place, so that some of them are the new ones and some the old; else nothing was
    touched yet, which is a note.

    **Why it matters.** pyproject.toml, uv.lock and the pylock may be of two locks.

    **Example.** The machine went down during `envbuild lock`.

    **Fix.** Run `envbuild lock`, which finishes what was begun before it does anything else.
    """
    own = layers.own
    if own.stage:
        done = "while its files were put in place" if own.half_written else "before it wrote"
        yield Finding(
            code="EB905",
            severity=Severity.WARNING if own.half_written else Severity.NOTE,
            subject=own.stage,
            message=f"`envbuild lock` is at work here, or was broken off {done}",
            evidence=(posixpath.join(layers.directory, own.stage),),
            hint="run `envbuild lock`: it finishes or drops what was begun",
            fixes=(Manual(text=f"envbuild lock {layers.directory}"),) if own.half_written else (),
        )


RULES = (unfinished_sync, stale_scripts, stale_locks, newer_locks, unfinished_lock)
