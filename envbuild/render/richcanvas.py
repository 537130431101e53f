"""A page for a terminal: coloured, with tables folded to its width."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envbuild.render.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Without a terminal nothing may wrap: whoever reads a pipe greps for whole sentences.
_NO_WRAP = 100_000


class RichCanvas:
    """A page drawn by rich; ``width`` None means that nothing is wrapped."""

    def __init__(self, *, width: int | None = None, color: bool = False) -> None:
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer,
            width=width or _NO_WRAP,
            height=100,
            force_terminal=color,
            force_interactive=False,
            color_system="standard" if color else None,
            no_color=not color,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
        )

    def line(self, text: str = "", *, indent: int = 0, style: str = "") -> None:
        """Add text; see `envbuild.render.canvas.Canvas`."""
        for part in text.split("\n"):
            self._console.print(Text(" " * indent + printable(part), style=style), soft_wrap=True)

    def labelled(self, label: str, text: str, *, indent: int = 0, style: str = "") -> None:
        """Add a line; see `Canvas`."""
        words = Text.assemble(" " * indent, (label, style), printable(text))
        self._console.print(words, soft_wrap=True)

    def table(self, rows: Iterable[Sequence[str]], *, indent: int = 0, style: str = "") -> None:
        """Add rows; see `Canvas`."""
        cells = [[printable(cell) for cell in row] for row in rows]
        if not cells:
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=max(indent - 2, 0))
        for number in range(len(cells[0])):
            grid.add_column(overflow="fold", style=style if number == 0 else "")
        for row in cells:
            grid.add_row("", *(Text(cell) for cell in row))
        self._console.print(grid)

    def text(self) -> str:
        """Return the page; see `Canvas`."""
        lines = self._buffer.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines)
