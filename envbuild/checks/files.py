"""Family EB2: the files of the distributions, and whether they are what was installed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks import changedfiles
from envbuild.checks.owners import counted, shortened, torch_cuda
from envbuild.checks.packagedata import same_import, same_imports
from envbuild.checks.rule import rule
from envbuild.checks.sharedfiles import (
    absolute,
    first_of,
    is_code,
    is_packaged,
    is_shared_object,
    labelled,
    overlaps,
    was_asked_for,
)
from envbuild.core.installedrequires import needs_of, visible
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual, Reinstall, Remove
from envbuild.model.installed import Installed, Ownership
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.checks.sharedfiles import Overlap
    from envbuild.core.installedrequires import Need
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution, RecordEntry, SharedPath

_TWIN = re.compile(r"^(nvidia-.*)-cu(11|12|13)$")
_BUILD = re.compile(r"(?P<stem>[\w-]+?)-(?:cu|cuda)(?P<major>1[1-9])\d?x?")
_MOST = 4
_QUIET = re.compile(
    r"\.(?:md|rst|txt|html|pyi|h|hpp|cuh|c|cpp|cu|pyx|pxd|a|typed)$|LICEN[CS]E|\.dist-info/"
)


@rule("EB201", "Two distributions own one file with different content", severity=Severity.ERROR)
def two_owners(installed: Installed, ownership: Ownership) -> Iterator[Finding]:
    """Find paths that two distributions record with different content, and whose bytes they have.

    **What it finds.** For each pair of distributions, the paths that both RECORDs name with
    different hashes; the winner by the hash of what lies on disk; and who requires the loser.
    Shared objects and Python modules are errors, or a warning where nobody needs the loser.
    Headers, documents, tests and package markers are a note.

    **Why it matters.** Whoever needs the loser loads the winner's code. Removing either of the
    two takes the file away from both.

    **Example.** `nvidia/nccl/lib/libnccl.so.2` of `nvidia-nccl-cu12 2.26.2` under a torch that
    needs `nvidia-nccl-cu13 2.28.9`: `undefined symbol: ncclCommWindowDeregister`.

    **Fix.** Remove the one that does not belong here, then bring back the files of the other:
    `uv pip uninstall A`, `uv pip install --reinstall-package B --no-deps B==VERSION`. The second
    is needed, since the first takes the shared files away.
    """
    needs = needs_of(installed)
    trivial: list[Overlap] = []
    for overlap in overlaps(installed, ownership):
        code = tuple(one for one in overlap.code if one.disk is not None)
        if code:
            yield _clobbered(overlap, code, needs, kept=_of_right_cuda(overlap, installed))
        elif any(one.disk is not None for one in overlap.paths):
            trivial.append(overlap)
    if trivial:
        yield _trivial(trivial)


def _clobbered(
    overlap: Overlap,
    code: tuple[SharedPath, ...],
    needs: tuple[Need, ...],
    *,
    kept: Distribution | None,
) -> Finding:
    a, b = overlap.a, overlap.b
    winner = overlap.winner()
    losers = (a, b) if winner is None else (overlap.other(winner),)
    dependents = [text for one in losers for text in _askers(one, needs)]
    group = same_import(a.name, b.name)
    matters = winner is None or any(_is_meant(one, needs) for one in losers)
    libraries = [one for one in code if is_shared_object(one.path)]
    on_disk = f"on disk is {winner.label}'s" if winner else _mixed(overlap, code)
    severity = group.severity if group else Severity.ERROR
    right = group is not None and winner is not None and winner.name == group.keep
    return Finding(
        code="EB201",
        severity=severity if matters and not right else Severity.WARNING,
        subject=losers[0].label,
        message=(
            f"{a.label} and {b.label} own {_named(libraries or code)}"
            f" with different content, {on_disk}"
        ),
        evidence=(*_hashes((libraries or code)[0]), *shortened(dependents, most=_MOST)),
        fixes=_fixes(overlap, winner, needs, kept=kept),
        because=(f"dist:{a.name}", f"dist:{b.name}"),
        brings=(
            *(f"file:{absolute(a, one.path)}" for one in libraries),
            *(f"import:{top}" for top in sorted(_tops(code)) if matters),
        ),
    )


def _askers(one: Distribution, needs: tuple[Need, ...]) -> list[str]:
    return sorted({f"{n.by.label} requires {one.name}" for n in needs if n.name == one.name})


def _is_meant(one: Distribution, needs: tuple[Need, ...]) -> bool:
    return was_asked_for(one) or bool(_askers(one, needs))


def _of_right_cuda(overlap: Overlap, installed: Installed) -> Distribution | None:
    """Return which of two builds for different CUDAs belongs here: torch's CUDA, else the newer.

    They are told by their names: `cupy-cuda11x` and `cupy-cuda12x`.
    """
    builds = {one.name: _BUILD.fullmatch(one.name) for one in (overlap.a, overlap.b)}
    a, b = builds[overlap.a.name], builds[overlap.b.name]
    if a is None or b is None or a["stem"] != b["stem"] or a["major"] == b["major"]:
        return None
    cuda = torch_cuda(installed)
    of_torch = str(cuda.major) if cuda else ""
    is_a = (a["major"] == of_torch, int(a["major"])) > (b["major"] == of_torch, int(b["major"]))
    return overlap.a if is_a else overlap.b


def _fixes(
    overlap: Overlap,
    winner: Distribution | None,
    needs: tuple[Need, ...],
    *,
    kept: Distribution | None,
) -> tuple[Fix, ...]:
    """Remove the one that nobody asked for; which of two that somebody did is a person's choice.

    Of builds for different CUDAs it is ``kept``.
    """
    if kept is not None:
        return (Remove(names=(overlap.other(kept).name,)), Reinstall(names=(kept.name,)))
    for one in (overlap.a, overlap.b):
        other = overlap.other(one)
        if not _is_meant(one, needs) and (winner is not None or _is_meant(other, needs)):
            return (Remove(names=(one.name,)), Reinstall(names=(other.name,)))
    names = f"{overlap.a.name} and {overlap.b.name}"
    return (Manual(text=f"uninstall {names}, then install the one that is meant"),)


def _tops(code: tuple[SharedPath, ...]) -> set[str]:
    tops = {one.path.partition("/")[0].removesuffix(".py") for one in code}
    return {top for top in tops if top.isidentifier() and top != "nvidia"}


def _named(paths: list[SharedPath] | tuple[SharedPath, ...]) -> str:
    rest = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0].path}{rest}"


def _mixed(overlap: Overlap, code: tuple[SharedPath, ...]) -> str:
    counts = [
        f"{counted(number, 'file')} of {one.label}"
        for one in (overlap.a, overlap.b)
        if (number := sum(path.winner == one.label for path in code))
    ]
    return f"on disk are {' and '.join(counts)}" if counts else "on disk is neither's"


def _hashes(shared: SharedPath) -> Iterator[str]:
    disk = shared.disk
    for label, entry in shared.owners:
        mark = ", on disk" if label == shared.winner else ""
        digest = f"sha256 {entry.sha256[:12]}" if entry.sha256 else "no hash"
        yield f"{shared.path} of {label}: {digest}, {entry.size} bytes{mark}"
    if shared.winner is None and disk is not None:
        yield f"on disk: {disk.size} bytes"


def _trivial(trivial: list[Overlap]) -> Finding:
    paths = sorted({shared.path for overlap in trivial for shared in overlap.paths})
    labels = sorted({one.label for overlap in trivial for one in (overlap.a, overlap.b)})
    return Finding(
        code="EB201",
        severity=Severity.NOTE,
        subject=counted(len(paths), "file"),
        message=f"{counted(len(paths), 'file')} that nothing loads have more than one owner",
        evidence=(*shortened(paths, most=_MOST), *shortened(labels, most=_MOST)),
    )


@rule("EB202", "Files that were installed are gone", severity=Severity.ERROR)
def missing_files(installed: Installed, ownership: Ownership, facts: Facts) -> Iterator[Finding]:
    """Find files of RECORD that do not exist any more.

    **What it finds.** Shared objects and Python modules that RECORD names and that are gone, one
    finding for each distribution, with the removed package that explains it. Data files are a
    note. Scripts, tests, documents, headers and type stubs do not count: images leave them out;
    nor do empty markers of packages that several have, as `nvidia/__init__.py`.

    **Why it matters.** Metadata says that all is well: `uv pip check`, `uv sync --check` and a
    second install change nothing, and the import fails.

    **Example.** `uv remove xgboost` removed `nvidia-nccl-cu12`, and with it the `libnccl.so.2` of
    `nvidia-nccl-cu13`.

    **Fix.** `uv pip install --reinstall-package NAME NAME==VERSION`; a plain install is a no-op.
    """
    by_label = labelled(installed)
    names = {one.name for one in visible(installed)}
    for label, paths in ownership.missing:
        one = by_label.get(label)
        if one is None or one.editable or is_packaged(one):
            continue
        code = tuple(path for path in paths if is_code(path))
        empty = {entry.path for entry in one.record or () if _is_empty_marker(entry)}
        other = tuple(
            path
            for path in paths
            if not path.startswith("/") and not _is_quiet(path) and path not in empty
        )
        if code:
            yield _missing(one, code, _remover(one, code, names, facts))
        elif other:
            yield _missing_data(one, other)


def _is_quiet(path: str) -> bool:
    parts = path.split("/")
    apart = {"test", "tests", "testing", "doc", "docs", "examples", "include", "man"}
    return bool(apart & set(parts[:-1])) or _QUIET.search(path) is not None


def _is_empty_marker(entry: RecordEntry) -> bool:
    """Whether a file only marks a package, which is one without it (`nvidia/__init__.py`)."""
    return entry.size == 0 and posixpath.basename(entry.path) == "__init__.py"


def _remover(
    one: Distribution, paths: tuple[str, ...], installed: set[str], facts: Facts
) -> str | None:
    """Return a package that owns the same paths and is not installed (any more).

    Its removal takes all of them away: where some are left, something else happened.
    """
    match = _TWIN.match(one.name)
    libraries = {entry.path for entry in one.record or () if is_shared_object(entry.path)}
    for major in ("11", "12", "13") if match else ():
        twin = f"{match[1]}-cu{major}" if match else ""
        shared = libraries.intersection(facts.shared_paths(one.name, twin))
        if twin not in installed and shared and shared <= set(paths):
            return twin
    for group in same_imports():
        if one.name in group.names and all(path.startswith(f"{group.top}/") for path in paths):
            return next((name for name in group.names if name not in installed), None)
    return None


def _missing(one: Distribution, code: tuple[str, ...], remover: str | None) -> Finding:
    libraries = [path for path in code if is_shared_object(path)]
    recorded = [entry for entry in one.record or () if is_code(entry.path)]
    everything = len(code) == len(recorded) and len(code) > 1
    what = (
        "none of its modules is there" if everything else f"{first_of(libraries or code)} is gone"
    )
    tops = {path.partition("/")[0].removesuffix(".py") for path in code if not libraries}
    twin = (f"{remover} owns the same path, removing it took the file along",) if remover else ()
    return Finding(
        code="EB202",
        severity=Severity.ERROR,
        subject=one.label,
        message=f"{one.label}: {what}" + (f", as {remover} was removed" if remover else ""),
        evidence=(*shortened((absolute(one, path) for path in code), most=_MOST), *twin),
        hint="its metadata is still there, so only a reinstall brings the files back",
        fixes=(Reinstall(names=(one.name,)),),
        brings=(
            *(f"file:{absolute(one, path)}" for path in libraries),
            *(f"library:{posixpath.basename(path)}" for path in libraries),
            *(f"import:{top}" for top in sorted(tops) if top.isidentifier()),
        ),
    )


def _missing_data(one: Distribution, paths: tuple[str, ...]) -> Finding:
    return Finding(
        code="EB202",
        severity=Severity.NOTE,
        subject=one.label,
        message=f"{one.label}: {first_of(paths)} is gone, which no module is",
        evidence=shortened((absolute(one, path) for path in paths), most=_MOST),
    )


RULES = (two_owners, missing_files, *changedfiles.RULES)
