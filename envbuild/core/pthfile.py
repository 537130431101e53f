"""Read a ``.pth`` file as text: the folders it adds, and the code it would run."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_LINES = 10_000
_LONGEST_LINE = 4096
_LONGEST_SHOWN = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class PthFile:
    """``paths`` as written, relative to the file's folder; ``imports`` are cut to a length."""

    paths: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


def parse_pth(text: str) -> PthFile:
    """Sort the lines of a file into paths and lines that the interpreter would execute."""
    paths: list[str] = []
    imports: list[str] = []
    for line in text.removeprefix("\ufeff").splitlines()[:_MOST_LINES]:
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith(("import ", "import\t")):
            imports.append(line.rstrip()[:_LONGEST_SHOWN])
        elif len(line) <= _LONGEST_LINE and "\0" not in line:
            paths.append(line.rstrip())
    return PthFile(paths=tuple(paths), imports=tuple(imports))
