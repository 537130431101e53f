"""Read /etc/os-release: which distribution of Linux a root is."""

from __future__ import annotations

import re

_LINE = re.compile(r"""(?m)^(ID|ID_LIKE|VERSION_ID)=["']?([\w. -]*)["']?[ \t]*$""")


def parse_os_release(text: str) -> tuple[tuple[str, ...], str]:
    """Return the names of the distribution, its own first, and its version; empty where unsaid."""
    found = dict(_LINE.findall(text))
    names = (*found.get("ID", "").split(), *found.get("ID_LIKE", "").split())
    return tuple(dict.fromkeys(name.lower() for name in names)), found.get("VERSION_ID", "").strip()
