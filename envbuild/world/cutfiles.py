"""Which files of another size than recorded are whole, and which end too early."""

from __future__ import annotations

import ast
import warnings
from contextlib import closing
from typing import TYPE_CHECKING

from envbuild.core.elf.whole import is_whole
from envbuild.world.objectfiles import ObjectFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.world.rootfs import Root

_LONGEST = 4 << 20


def whole_objects(paths: Iterable[str], *, root: Root) -> Iterator[str]:
    """Give the shared objects that hold all that their own heads name."""
    with closing(ObjectFiles(root)) as files:
        for path in paths:
            data = files.data(path)
            if data is not None and is_whole(data):
                yield path


def cut_modules(paths: Iterable[str], *, root: Root) -> Iterator[str]:
    """Give the Python modules that hold nothing, or that break off in the middle of a statement.

    They are parsed, and not compiled or run.
    """
    for path in paths:
        try:
            content = root.read(path, limit=_LONGEST)
        except (OSError, ValueError):
            continue
        if not content or not _is_python(content):
            yield path


def _is_python(content: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(content)
    except (SyntaxError, ValueError):
        return False
    except (MemoryError, RecursionError):
        return True  # nested too deeply for the parser, which says nothing of its end
    return True
