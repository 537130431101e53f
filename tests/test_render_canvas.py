"""The plain page says what rich's says where nothing is coloured or folded."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from envbuild.render.canvas import PlainCanvas, new_canvas
from envbuild.render.richcanvas import RichCanvas

_TEXTS = st.text(st.sampled_from("ab [b] \t\n`'é漢字€:\x1b/-"), max_size=12)
_INDENTS = st.sampled_from([0, 2, 4, 8])
_ROWS = st.integers(1, 3).flatmap(
    lambda count: st.lists(st.lists(_TEXTS, min_size=count, max_size=count), max_size=4)
)


@given(st.sampled_from(["", "error EB101: ", "notes:"]), _TEXTS, _INDENTS)
def test_lines(label: str, text: str, indent: int) -> None:
    pages = [PlainCanvas(), RichCanvas()]
    for page in pages:
        page.line(text, indent=indent, style="dim")
        page.line()
        page.labelled(label, text, indent=indent, style="bold")
    assert pages[0].text() == pages[1].text()


@given(_ROWS, _INDENTS)
def test_tables(rows: list[list[str]], indent: int) -> None:
    pages = [PlainCanvas(), RichCanvas()]
    for page in pages:
        page.table(rows, indent=indent, style="bold")
    assert pages[0].text() == pages[1].text()


def test_colours_and_a_width_take_rich() -> None:
    page = new_canvas(color=True)
    page.labelled("error: ", "x", style="bold red")
    assert "\x1b[1;31merror: " in page.text()
    page = new_canvas(width=10)
    page.table([("a", "b c d e f g h i")])
    assert page.text().count("\n") > 1


def test_a_plain_page_leaves_rich_out() -> None:
    code = (
        "import sys; from envbuild.render.canvas import new_canvas; page = new_canvas();"
        "page.line('x'); page.table([('a', 'b')]); print(page.text(), 'rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
