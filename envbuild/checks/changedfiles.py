"""EB203 and EB204: files that were changed after they were installed, or that nobody installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import counted, shortened
from envbuild.checks.rule import rule
from envbuild.checks.sharedfiles import (
    absolute,
    first_of,
    is_code,
    is_packaged,
    is_shared_object,
    labelled,
)
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Reinstall
from envbuild.model.installed import Installed, Ownership
from envbuild.model.links import Links

if TYPE_CHECKING:
    from envbuild.model.installed import Distribution

_MOST = 4
_STRIPPED_SHARE = 0.5
_STRIPPED_LEAST = 4
_HINTS = {
    Severity.ERROR: "it was cut short or overwritten",
    Severity.WARNING: "it was edited, or cut short",
    Severity.NOTE: "it is whole: whoever made the wheel changed it last, or somebody here",
}


@rule("EB203", "A file is not what was installed", severity=Severity.ERROR)
def changed_files(installed: Installed, ownership: Ownership) -> Iterator[Finding]:
    """Find shared objects and modules whose size is not the one in RECORD.

    **What it finds.** A shared object of another size than RECORD says, with no second owner to
    explain it: cut short by a full disk, or overwritten by what is none (an error). Where all
    that its own head names is there it is a note: makers of wheels strip, sign or patch libraries
    after they wrote RECORD. A Python module of another size was edited (a warning), or cut short
    where it is empty or breaks off in a statement (an error).
    Other files, as certifi's `cacert.pem` with a site's own certificates, are nobody's mistake.
    Where most shared objects differ, an image was stripped of its debug symbols, which is a note.
    What the operating system's packages brought is stripped after RECORD was written, and left
    alone.

    **Why it matters.** `file too short`, `invalid ELF header`, a `Bus error` without a traceback,
    or code that nobody reviewed.

    **Example.** `libtorch_cuda.so` of 1.1 GB where RECORD says 2.3 GB.

    **Fix.** `uv pip install --reinstall-package NAME NAME==VERSION`.
    """
    by_label = labelled(installed)
    shared = {path for one in ownership.shared for path in (one.path,)}
    changed: list[tuple[Distribution, tuple[str, ...]]] = []
    for label, paths in ownership.resized:
        one = by_label.get(label)
        if one is None or one.installer == "conda" or one.editable or is_packaged(one):
            continue
        changed.append((one, tuple(path for path in paths if path not in shared)))
    stripped = _is_stripped(changed, ownership)
    if stripped:
        yield _stripped(changed)
    for one, paths in changed:
        libraries = tuple(path for path in paths if is_shared_object(path))
        modules = tuple(path for path in paths if is_code(path) and path not in libraries)
        whole = tuple(path for path in libraries if absolute(one, path) in ownership.whole)
        libraries = tuple(path for path in libraries if path not in whole)
        if whole and not stripped:
            yield _changed(one, whole, Severity.NOTE)
        if libraries and not stripped:
            yield _changed(one, libraries, Severity.ERROR)
        cut = tuple(path for path in modules if absolute(one, path) in ownership.cut)
        if cut:
            yield _changed(one, cut, Severity.ERROR)
        if modules and not cut:
            yield _changed(one, modules, Severity.WARNING)


def _is_stripped(changed: list[tuple[Distribution, tuple[str, ...]]], ownership: Ownership) -> bool:
    number = sum(is_shared_object(path) for _, paths in changed for path in paths)
    return number >= _STRIPPED_LEAST and number >= _STRIPPED_SHARE * len(ownership.owners)


def _stripped(changed: list[tuple[Distribution, tuple[str, ...]]]) -> Finding:
    labels = [one.label for one, paths in changed if any(map(is_shared_object, paths))]
    return Finding(
        code="EB203",
        severity=Severity.NOTE,
        subject=counted(len(labels), "package"),
        message="most shared objects are of another size than installed: they were stripped",
        evidence=shortened(labels, most=_MOST),
    )


def _changed(one: Distribution, paths: tuple[str, ...], severity: Severity) -> Finding:
    sizes = {entry.path: entry.size for entry in one.record or ()}
    what = "is of another size than RECORD says"
    fatal = severity is Severity.ERROR
    tops = {path.partition("/")[0].removesuffix(".py") for path in paths if path.endswith(".py")}
    return Finding(
        code="EB203",
        severity=severity,
        subject=one.label,
        message=f"{one.label}: {first_of(paths)} {what}",
        evidence=shortened(
            (f"{absolute(one, path)}: {sizes.get(path)} bytes in RECORD" for path in paths),
            most=_MOST,
        ),
        hint=_HINTS[severity],
        fixes=() if severity is Severity.NOTE else (Reinstall(names=(one.name,)),),
        brings=(
            *(f"file:{absolute(one, path)}" for path in paths if fatal),
            *(f"import:{top}" for top in sorted(tops) if fatal and top.isidentifier()),
        ),
    )


@rule("EB204", "Shared objects that no distribution owns", severity=Severity.NOTE)
def unowned_files(installed: Installed, ownership: Ownership, links: Links) -> Iterator[Finding]:
    """Find compiled files that use torch and that no RECORD names.

    **What it finds.** Extension modules of eggs and in-place builds (`setup.py develop`) that
    import torch's symbols. Editable installs are known by their folder and left alone.

    **Why it matters.** No installer replaces them when torch changes, so they break with the
    next torch and nobody knows where they came from.

    **Example.** `pointops_cuda.cpython-311-x86_64-linux-gnu.so` in an egg of last year.

    **Fix.** Install the extension's folder with `uv pip install --no-build-isolation`.
    """
    users = {one.path for one in links.torch_users}
    folders = tuple(
        f"{one.origin.removeprefix('file://').rstrip('/')}/"
        for one in installed.distributions
        if one.editable and one.origin and one.origin.startswith("file://")
    )
    found = [p for p in ownership.unowned if p in users and not p.startswith(folders or ("\0",))]
    if found:
        yield Finding(
            code="EB204",
            severity=Severity.NOTE,
            subject=counted(len(found), "shared object"),
            message=f"{counted(len(found), 'shared object')} that use torch have no owner",
            evidence=shortened(found, most=_MOST),
            hint="no install replaces them when torch changes",
        )


RULES = (changed_files, unowned_files)
