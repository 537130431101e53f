"""Read the data files that come with envbuild, wherever it is installed.

``importlib.resources`` and ``pkgutil`` would do it too, and take longer to import than the files
to read.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import Any


def package_bytes(package: str, name: str) -> bytes:
    """Return the bytes of ``data/NAME`` of a package; raise FileNotFoundError without it."""
    module = import_module(package)
    loader: Any = module.__loader__
    found: bytes = loader.get_data(str(PurePath(module.__path__[0], "data", name)))
    return found


def package_text(package: str, name: str) -> str:
    """Return the text of ``data/NAME`` of a package; raise FileNotFoundError without it."""
    return package_bytes(package, name).decode("utf-8")
