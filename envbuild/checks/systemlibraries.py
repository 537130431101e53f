"""EB309: libraries of the system that an import needs and the system lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import owners_for, shortened
from envbuild.checks.rule import rule
from envbuild.checks.systempackages import bringing
from envbuild.checks.tables import table
from envbuild.model.finding import Finding, Severity
from envbuild.model.host import Host
from envbuild.model.installed import Installed, Ownership
from envbuild.model.links import Links

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.checks.owners import Subject
    from envbuild.model.links import StoppedModule

_MOST_NAMED = 2


@rule("EB309", "A library of the system is missing", severity=Severity.ERROR)
def lacking_system(
    installed: Installed, ownership: Ownership, links: Links, host: Host
) -> Iterator[Finding]:
    """A package is linked to a library that it leaves to the system, and the system lacks it.

    **What it finds.** Packages that cannot be imported for want of `libGL.so.1`, `libgomp.so.1`
    and the like. Whether the import comes to the compiled file is read from the package's own
    texts: what only a function opens, or what may fail, is no error. It is a warning where the
    import hangs on a condition, and a note where only a part that is imported by its own name
    (`PySide6.QtGui`, `mpi4py.MPI`) is without its library.

    **Why it matters.** `libGL.so.1: cannot open shared object file` on `import cv2`. No wheel
    requires it, so that nothing is said until the import, and slim images have next to nothing.

    **Example.** open3d in an image without libusb-1.0-0.

    **Fix.** Install the library; for OpenCV `opencv-python-headless` does without any.
    """
    owners = owners_for(installed, ownership)
    for subject, modules in owners.group(links.stopped, (m.path for m in links.stopped)).items():
        worst = max(map(_weight, modules))
        yield _lacking(subject, [one for one in modules if _weight(one) == worst], host)


def _weight(module: StoppedModule) -> int:
    return 2 if module.stops else 1 if module.may_stop else 0


def _lacking(subject: Subject, modules: list[StoppedModule], host: Host) -> Finding:
    missing = [one for module in modules for one in module.missing]
    libraries = sorted({one.library for one in missing})
    severity = (Severity.NOTE, Severity.WARNING, Severity.ERROR)[_weight(modules[0])]
    needs = shortened((f"needed by {path}" for path in sorted({m.path for m in missing})), most=2)
    return Finding(
        code="EB309",
        severity=severity,
        subject=subject.label,
        message=f"{_what(subject, modules)}: the system lacks {_named(libraries)}",
        evidence=(
            *((f"missing: {', '.join(libraries)}",) if len(libraries) > _MOST_NAMED else ()),
            *needs,
        ),
        hint=_instead(subject),
        fixes=bringing(libraries, host),
        because=(subject.token,),
        brings=() if severity is Severity.NOTE else subject.brings,
    )


def _instead(subject: Subject) -> str | None:
    other = table("systemlibs")["without"].get(subject.name)
    return f"`{other}` does without any of them" if other else None


def _named(libraries: list[str]) -> str:
    if len(libraries) > _MOST_NAMED:
        return f"`{libraries[0]}` and {len(libraries) - 1} more libraries"
    return " and ".join(f"`{library}`" for library in libraries)


def _what(subject: Subject, modules: list[StoppedModule]) -> str:
    stops = dict.fromkeys(name for one in modules for name in one.stops)
    may_stop = dict.fromkeys(name for one in modules for name in one.may_stop)
    parts = [one.part for one in modules]
    if stops:
        return f"{subject.label} cannot be imported ({_imports(stops)})"
    if may_stop:
        return f"{subject.label} most likely cannot be imported ({_imports(may_stop)})"
    more = len(set(parts)) - 1
    return f"{subject.label} is without `{parts[0]}`{f' and {more} more modules' if more else ''}"


def _imports(names: Iterable[str]) -> str:
    return ", ".join(shortened((f"`import {name}`" for name in names), most=3))


RULES = (lacking_system,)
