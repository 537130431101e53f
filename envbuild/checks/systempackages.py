"""How a distribution of Linux is told to bring a shared library."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from envbuild.checks.tables import table
from envbuild.model.fix import Manual

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.host import Host

_RPM = (
    ({"fedora", "rhel", "centos", "rocky", "almalinux", "ol", "amzn"}, "dnf install -y"),
    ({"suse", "opensuse", "sles"}, "zypper install -y"),
)
_RENAMED = {"debian": 13, "ubuntu": 24}  # from when on packages are named after 64-bit times


def bringing(libraries: Iterable[str], host: Host) -> tuple[Manual, ...]:
    """Return what brings libraries to a system: a command, and a sentence for what is not known."""
    wanted = tuple(sorted(set(libraries)))
    for names, command in _RPM:
        if names & set(host.system):
            needed = (shlex.quote(f"{library}()(64bit)") for library in wanted)
            return (Manual(text=f"{command} {' '.join(needed)}", is_command=True),)
    return tuple(_by_apt(wanted, host))


def _by_apt(libraries: tuple[str, ...], host: Host) -> Iterator[Manual]:
    known = {library: _package(library, host) for library in libraries}
    packages = sorted({package for package in known.values() if package})
    unknown = [library for library, package in known.items() if not package]
    if packages and "debian" in host.system:
        yield Manual(text=f"apt-get install -y {' '.join(packages)}", is_command=True)
    elif packages:
        there = ", ".join(f"`{library}`" for library in libraries if known[library])
        yield Manual(text=f"install what brings {there} (on Debian {', '.join(packages)})")
    if unknown:
        yield Manual(text=f"install what brings {', '.join(f'`{one}`' for one in unknown)}")


def _package(library: str, host: Host) -> str:
    renamed: dict[str, str] = table("systemlibs")["apt-t64"]
    names: dict[str, str] = table("systemlibs")["apt"]
    newer = renamed.get(library) if _is_renamed(host) else None
    return newer or names.get(library, "")


def _is_renamed(host: Host) -> bool:
    first = _RENAMED.get(host.system[0] if host.system else "")
    major = re.match(r"\d+", host.system_version)
    return first is not None and (major is None or int(major[0]) >= first)
