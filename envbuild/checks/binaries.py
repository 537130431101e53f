"""EB306, EB307, EB308: files for another Python, broken files, wheels for another machine."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envbuild.checks.owners import counted, owners_for, shortened
from envbuild.checks.rule import rule
from envbuild.core.elf.header import CUT_SHORT
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual, Reinstall
from envbuild.model.installed import Installed, Ownership
from envbuild.model.links import Links

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.checks.owners import Owners, Subject
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution
    from envbuild.model.links import BrokenBinary

_MODULE = re.compile(r"(?P<stem>.+?)\.(?:cpython-(?P<python>\d+t?)[a-su-z]*-[\w-]+|abi3t?)?\.?so")
_INTERPRETER = re.compile(r"(?:cp(?P<cp>\d+)|py(?P<py>\d+))")
_MACHINE = re.compile(
    r"(?:linux|manylinux\w*?|musllinux\w*?)_(?P<machine>x86_64|aarch64|armv7l|i686|ppc64le|s390x"
    r"|riscv64)"
)


@rule("EB306", "An extension module is for another Python", severity=Severity.ERROR)
def other_python(installed: Installed, ownership: Ownership) -> Iterator[Finding]:
    """An extension module was compiled for another Python than the environment's.

    **What it finds.** Files such as `_C.cpython-310-x86_64-linux-gnu.so` in an environment of
    Python 3.11, where no file of the same module fits. Packages whose wheel fits this Python are
    left alone: they carry optional parts for others.

    **Why it matters.** Python does not even look at such a file, so the error is
    `No module named 'pointops_cuda'` although the file is there. It happens when a folder was
    copied from another environment, or the interpreter of a venv was replaced.

    **Example.** pointops_cuda.cpython-310-x86_64-linux-gnu.so under Python 3.11.

    **Fix.** `uv pip install --reinstall-package NAME NAME==VERSION`; what has no wheel is built
    again with this Python, and the old file removed.
    """
    python = _python(installed)
    if not python:
        return
    owners = owners_for(installed, ownership)
    paths = [*(path for path, _ in ownership.owners), *ownership.unowned]
    lost = [path for path in _unusable(paths, python) if not _fits(owners, path, python)]
    for subject, files in owners.group(lost, lost).items():
        yield Finding(
            code="EB306",
            severity=Severity.ERROR if subject.distribution else Severity.WARNING,
            subject=subject.label,
            message=(
                f"{subject.label} has {counted(len(files), 'module')} for Python"
                f" {_spelled(_python_of(files[0]))}, the environment is Python {installed.python}"
            ),
            evidence=shortened(files),
            fixes=(_again(subject),),
            because=(subject.token,),
            brings=subject.brings,
        )


def _python(installed: Installed) -> str:
    """Return ``311``, or ``313t`` for a free-threaded interpreter."""
    parts = installed.python.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):  # noqa: PLR2004
        return ""
    return f"{parts[0]}{parts[1]}{'t' if installed.free_threaded else ''}"


def _unusable(paths: Iterable[str], python: str) -> Iterator[str]:
    """Give one file of each module that has none for this Python."""
    usable: set[str] = set()
    other: dict[str, str] = {}
    for path in paths:
        match = _MODULE.fullmatch(path)
        if match is None:
            continue
        if match["python"] in (None, python):
            usable.add(match["stem"])
        else:
            other[match["stem"]] = path
    return (path for stem, path in other.items() if stem not in usable)


def _python_of(path: str) -> str:
    match = _MODULE.fullmatch(path)
    return (match["python"] or "") if match else ""


def _spelled(python: str) -> str:
    return f"{python[:1]}.{python[1:]}"


def _fits(owners: Owners, path: str, python: str) -> bool:
    """Whether the wheel that a file came with is for this Python."""
    one = owners.subject(path).distribution
    return one is not None and any(_tag_fits(tag, python) for tag in one.tags)


def _tag_fits(tag: str, python: str) -> bool:
    interpreter, _, rest = tag.partition("-")
    match = _INTERPRETER.fullmatch(interpreter)
    if match is None or match["py"]:
        return True
    stable = rest.partition("-")[0] in ("abi3", "none")
    digits = python.rstrip("t")
    return match["cp"] == digits or (stable and int(match["cp"][1:] or 0) <= int(digits[1:]))


def _again(subject: Subject) -> Fix:
    if subject.distribution is None or subject.distribution.record is None:
        return Manual(text=f"build {subject.label} again with this Python, and remove the file")
    return Reinstall(names=(subject.name,))


@rule("EB307", "A shared object cannot be read", severity=Severity.ERROR)
def broken_binary(installed: Installed, ownership: Ownership, links: Links) -> Iterator[Finding]:
    """A file that would be loaded is cut short, empty or damaged.

    **What it finds.** Shared objects that are needed or imported and whose tables cannot be
    read: the file ends before them, or it is no shared object at all; and every file that
    begins with zeros, as a crash leaves it. One whose tables are larger than envbuild reads is
    named as not known: it may well be in order.

    **Why it matters.** `file too short` or `invalid ELF header` on import. The usual causes are a
    full disk during the installation, an interrupted copy, and a Git LFS pointer in the place of
    the file.

    **Example.** torch/lib/libtorch_cuda.so: the file ends at 4096 bytes, RECORD says 2328442689.

    **Fix.** Make room on the disk (`df`), then
    `uv pip install --reinstall-package NAME NAME==VERSION`. Where it comes back cut short, uv's
    cache is: `uv cache clean NAME`.
    """
    owners = owners_for(installed, ownership)
    wrong = {one.name for one in installed.distributions if _other_machine(one, installed)}
    yield from _not_judged(owners, links)
    groups = owners.group(links.broken, (one.path for one in links.broken))
    for subject, files in groups.items():
        if subject.name in wrong and subject.name:
            continue
        reasons = [_reason(one, subject) for one in files]
        yield Finding(
            code="EB307",
            severity=Severity.ERROR,
            subject=subject.label,
            message=(
                f"{counted(len(files), 'shared object')} of {subject.label} cannot be read:"
                f" {reasons[0]}"
            ),
            evidence=shortened(
                f"{one.path}: {reason}" for one, reason in zip(files, reasons, strict=True)
            ),
            fixes=(_again(subject),),
            because=(subject.token, *(f"file:{one.path}" for one in files)),
            brings=(
                *(f"file:{one.path}" for one in files),
                *(f"library:{posixpath.basename(one.path)}" for one in files),
                *subject.brings,
            ),
        )


def _reason(one: BrokenBinary, subject: Subject) -> str:
    """Add what RECORD says of the size: a head that is cut short, or overwritten, may not know."""
    size = _recorded(one.path, subject)
    if size is None or not one.reason.startswith(CUT_SHORT):
        return one.reason
    return f"{one.reason.partition(' of ')[0]} bytes, RECORD says {size}"


def _recorded(path: str, subject: Subject) -> int | None:
    distribution = subject.distribution
    for entry in (distribution.record if distribution else None) or ():
        if distribution and posixpath.join(distribution.site, entry.path) == path:
            return entry.size
    return None


def _not_judged(owners: Owners, links: Links) -> Iterator[Finding]:
    """Say which objects are larger than is read: that is no fault of theirs."""
    for one in links.unread:
        label = owners.subject(one.path).label
        yield Finding(
            code="EB307",
            severity=Severity.UNKNOWN,
            subject=label,
            message=f"{label}: `{posixpath.basename(one.path)}` was not judged, {one.reason}",
            evidence=(one.path,),
            hint="what its symbols are, and what they mean for others, is not known",
        )


@rule("EB308", "A wheel for another machine is installed", severity=Severity.ERROR)
def other_machine(installed: Installed) -> Iterator[Finding]:
    """A distribution was made for another processor or another operating system.

    **What it finds.** Distributions all of whose wheel tags name another processor than the
    interpreter's (`manylinux_2_28_aarch64` on x86_64), or another system (`win_amd64`).

    **Why it matters.** Its compiled files cannot be loaded: `cannot open shared object file` or
    `wrong ELF class`. It happens when an image or a cache of one machine is used on another.

    **Example.** torch 2.11.0 of manylinux_2_28_aarch64 in an environment on x86_64.

    **Fix.** Reinstall it on this machine; in an image, build the image for the right platform.
    """
    for one in installed.distributions:
        machine = _other_machine(one, installed)
        if machine is not None:
            yield Finding(
                code="EB308",
                severity=Severity.ERROR,
                subject=one.label,
                message=f"{one.label} is made for {machine}, the environment is"
                f" {installed.machine}",
                evidence=one.tags[:3],
                fixes=(Reinstall(names=(one.name,)),),
                because=(f"dist:{one.name}",),
                brings=(f"import:{one.name}",),
            )


def _other_machine(one: Distribution, installed: Installed) -> str | None:
    """Return the machine or system a distribution is made for where it is another one."""
    if one.site not in installed.sites:
        return None
    found: list[str] = []
    for tag in one.tags:
        platform = tag.rpartition("-")[2]
        match = _MACHINE.fullmatch(platform)
        if platform == "any" or (match and match["machine"] == installed.machine):
            return None
        known = match["machine"] if match else _system(platform)
        if known is None:
            return None  # a tag that is not understood proves nothing
        found.append(known)
    return found[0] if found else None


def _system(platform: str) -> str | None:
    return platform if platform.startswith(("win", "macosx")) else None


RULES = (other_python, broken_binary, other_machine)
