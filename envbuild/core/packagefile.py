"""Read the data files that come with envbuild, wherever it is installed.

``importlib.resources`` would do it too, and takes longer to import than the files to read.
"""

from __future__ import annotations

from pkgutil import get_data


def package_bytes(package: str, name: str) -> bytes:
    """Return the bytes of ``data/NAME`` of a package; raise FileNotFoundError without it."""
    found = get_data(package, f"data/{name}")
    if found is None:
        raise FileNotFoundError(f"data/{name} of {package}")
    return found


def package_text(package: str, name: str) -> str:
    """Return the text of ``data/NAME`` of a package; raise FileNotFoundError without it."""
    return package_bytes(package, name).decode("utf-8")
