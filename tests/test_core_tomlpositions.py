"""Lines of keys in TOML text: exact where it can be known, harmless on any text."""

from __future__ import annotations

from typing import Any

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.project.positions import toml_positions

KEYS = st.sampled_from(["a", "b-c", "d_1", "ä", "x.y", "with space", "7"])
VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-9, 9), st.text("ab#]}\"'\n,= ", max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
# Each with the number of lines it takes.
SNIPPETS = {
    '"x"': 1,
    "'it''s'": 1,
    "12.8": 1,
    "2026-11-01 07:32:00": 1,
    '"""\n[not.a.table]\nkey = 1\n"""': 4,
    "'''a\n]]'''": 2,
    '"""quotes ""\\""" "" """"': 1,
    '[\n  1, # one ]\n\n  "]",\n]': 5,
    "[{ a = 1 }, [2, 3]]": 1,
    "{ a = 1, b = { c = [1,\n2] } }": 2,
}


def paths_of(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        below = [paths_of(inner, (*path, key)) for key, inner in value.items()]
    elif isinstance(value, list):
        below = [paths_of(inner, (*path, index)) for index, inner in enumerate(value)]
    else:
        below = []
    return [path, *(inner for part in below for inner in part)]


def test_tables_keys_and_items() -> None:
    text = (
        '# a comment\n\n[tool.envbuild]\nlayer = "pip"\n\n[tool.envbuild.targets.cu128]\n'
        'gpus = [\n  "A100",  # one\n  "B200",\n]\ninline = { a = 1, "b.c" = [2] }\n'
        "dotted.key = 1\n"
    )
    line = toml_positions(text).line
    target = ("tool", "envbuild", "targets", "cu128")
    assert line(("tool", "envbuild")) == 3
    assert line(("tool", "envbuild", "layer")) == 4
    assert line(target) == 6
    assert [line((*target, "gpus", 0)), line((*target, "gpus", 1))] == [8, 9]
    assert line((*target, "inline", "b.c", 0)) == 11
    assert line((*target, "dotted", "key")) == 12


def test_a_missing_key_takes_the_line_of_its_parent() -> None:
    positions = toml_positions("\n[a.b]\nc = 1\n")
    assert positions.line(("a", "b", "nothing", 3)) == 2
    assert positions.line(("nothing",)) == 1


def test_arrays_of_tables_count() -> None:
    line = toml_positions("[[a]]\nx = 1\n[[a]]\nx = 2\n[a.b]\ny = 1\n").line
    assert [line(("a", 0, "x")), line(("a", 1, "x")), line(("a", 1, "b", "y"))] == [2, 4, 6]


def test_windows_line_ends() -> None:
    assert toml_positions("[a]\r\nb = 1\r\nc = [\r\n1,\r\n2]\r\n").line(("a", "c", 1)) == 5


@given(st.lists(st.sampled_from(sorted(SNIPPETS)), max_size=8))
def test_lines_are_exact(snippets: list[str]) -> None:
    line, text, wanted = 1, "", {}
    for index, snippet in enumerate(snippets):
        text += f"key{index} = {snippet}  # after = 1\n"
        wanted[f"key{index}",] = line
        line += SNIPPETS[snippet]
    found = toml_positions(text)
    assert {path: found.lines.get(path) for path in wanted} == wanted


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_every_key_of_a_document_is_found(document: dict[str, Any]) -> None:
    text = tomlkit.dumps(document)
    found = toml_positions(text).lines
    assert set(paths_of(tomlkit.loads(text).unwrap())) - {()} <= set(found)


@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from([*"[]{}=,.\"'#\n\r\\ab ", '"""', "'''"])).map("".join)
    )
)
def test_any_text_gives_lines_within_it(text: str) -> None:
    positions = toml_positions(text)
    last = text.count("\n") + 1
    assert all(1 <= line <= last for line in positions.lines.values())
    assert 1 <= positions.line(("a", 0, "b")) <= last


def test_deep_nesting_is_no_crash() -> None:
    assert toml_positions("a = " + "[" * 50_000).line(("a",)) == 1
    assert toml_positions("a = " + "{a=" * 50_000).line(("a",)) == 1
