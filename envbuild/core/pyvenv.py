"""Read ``pyvenv.cfg``: which interpreter a virtual environment is made from."""

from __future__ import annotations

import re
from dataclasses import dataclass

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?(?:(?:a|b|rc)\d+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class PyvenvConfig:
    """The keys that tell what an environment sees.

    ``home`` is the folder of the base interpreter, ``version`` its version as far as it is said,
    ``implementation`` in lower case (``cpython``, ``pypy``; empty where nothing is said).
    """

    home: str = ""
    version: str = ""
    implementation: str = ""
    system_site: bool = False
    creator: str = ""


def parse_pyvenv(text: str) -> PyvenvConfig:
    """Read the file as the interpreter does: what is no ``key = value`` says nothing."""
    keys: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            keys[key.strip().lower()] = value.strip()
    said = _VERSION.match(keys.get("version_info") or keys.get("version") or "")
    creators = [name for name in ("uv", "virtualenv") if name in keys]
    return PyvenvConfig(
        home=keys.get("home", ""),
        version=said[0] if said else "",
        implementation=keys.get("implementation", "").lower(),
        system_site=keys.get("include-system-site-packages", "").lower() == "true",
        creator=creators[0] if creators else "venv",
    )
