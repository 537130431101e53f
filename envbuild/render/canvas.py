"""A page of plain or coloured text, built line by line and table by table."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

from envbuild.render.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GAP = 2


class Canvas(Protocol):
    """Collects the page."""

    def line(self, text: str = "", *, indent: int = 0, style: str = "") -> None:
        """Add text; every line of it is indented and none is wrapped."""
        ...

    def labelled(self, label: str, text: str, *, indent: int = 0, style: str = "") -> None:
        """Add a line whose first words alone carry the style."""
        ...

    def table(self, rows: Iterable[Sequence[str]], *, indent: int = 0, style: str = "") -> None:
        """Add rows in aligned columns; the first column carries the style."""
        ...

    def text(self) -> str:
        """Return the page, without blanks at the ends of its lines."""
        ...


def new_canvas(*, width: int | None = None, color: bool = False) -> Canvas:
    """Return an empty page; ``width`` None means that nothing is wrapped.

    rich, which takes long to import, is left out where there is nothing to colour or to fold.
    """
    if width is None and not color:
        return PlainCanvas()
    from envbuild.render.richcanvas import RichCanvas  # noqa: PLC0415

    return RichCanvas(width=width, color=color)


class PlainCanvas:
    """A page for a pipe or a file: no styles, and no line is ever wrapped."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def line(self, text: str = "", *, indent: int = 0, style: str = "") -> None:  # noqa: ARG002
        """Add text; see `Canvas`."""
        self._lines += [" " * indent + printable(part) for part in text.split("\n")]

    def labelled(
        self,
        label: str,
        text: str,
        *,
        indent: int = 0,
        style: str = "",  # noqa: ARG002
    ) -> None:
        """Add a line; see `Canvas`."""
        self._lines.append(" " * indent + label + printable(text))

    def table(self, rows: Iterable[Sequence[str]], *, indent: int = 0, style: str = "") -> None:
        """Add rows; see `Canvas`."""
        for cells in _aligned([[printable(cell) for cell in row] for row in rows]):
            self.line(cells, indent=max(indent, _GAP), style=style)

    def text(self) -> str:
        """Return the page; see `Canvas`."""
        return "".join(part.rstrip() + "\n" for line in self._lines for part in line.split("\n"))


def _aligned(rows: list[list[str]]) -> Iterable[str]:
    """Pad the cells of each column to one width; a cell may have several lines."""
    columns = range(len(rows[0]) if rows else 0)
    lines = [[cell.split("\n") for cell in row] for row in rows]
    widths = [max(_cells(part) for row in lines for part in row[column]) for column in columns]
    for row in lines:
        for parts in zip_longest(*row, fillvalue=""):
            yield "".join(
                part + " " * (width - _cells(part) + _GAP)
                for part, width in zip(parts, widths, strict=True)
            )


def _cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - names in other scripts are rare

    return cell_len(text)
