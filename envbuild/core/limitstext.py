"""Read the kernel's texts on memory, swap and the limits of a cgroup."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MEMINFO = re.compile(r"^(MemTotal|SwapTotal):\s+(\d{1,18}) kB$", re.MULTILINE)
# What a controller of version 1 says where there is no limit: 2^63 rounded down to a page.
_NO_LIMIT = 1 << 62


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryText:
    """Bytes of memory and of swap; None where the text has none."""

    total: int | None = None
    swap: int | None = None


def parse_meminfo(text: str) -> MemoryText:
    """Read ``/proc/meminfo``."""
    found = {key: int(number) * 1024 for key, number in _MEMINFO.findall(text)}
    return MemoryText(total=found.get("MemTotal"), swap=found.get("SwapTotal"))


def parse_cgroups(text: str) -> dict[str, str]:
    """Map each controller to the path of its group; version 2 has the empty name."""
    groups: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and parts[2].startswith("/"):  # noqa: PLR2004
            for controller in parts[1].split(","):
                groups.setdefault(controller, parts[2])
    return groups


def parse_limit(text: str) -> int | None:
    """Read ``memory.max`` or ``memory.limit_in_bytes``; None where there is no limit."""
    plain = text.strip()
    if not plain.isascii() or not plain.isdigit() or len(plain) > 20:  # noqa: PLR2004
        return None
    number = int(plain)
    return number if number < _NO_LIMIT else None


def parse_cpu_max(text: str) -> float | None:
    """Read ``cpu.max`` of version 2 (``150000 100000``) as cores; None where there is no limit."""
    quota, _, period = text.strip().partition(" ")
    return cores_of(quota, period or "100000")


def cores_of(quota: str, period: str) -> float | None:
    """Return the cores that a quota of microseconds in each period means."""
    if not all(text.strip().isascii() and text.strip().isdigit() for text in (quota, period)):
        return None
    return int(quota) / int(period) if int(period) and int(quota) else None
