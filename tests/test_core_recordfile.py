"""What is read of a RECORD, whoever wrote it."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from io import BytesIO
from itertools import repeat

import pytest
from envmaker import record_line, record_text
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.recordfile import Record, parse_record
from envbuild.errors import WorldError
from envbuild.model.installed import RecordEntry

PREFIX = "/opt/venv"
SITE = f"{PREFIX}/lib/python3.11/site-packages"
SHA = hashlib.sha256(b"x").hexdigest()


def parsed(text: str | bytes) -> Record:
    data = text.encode() if isinstance(text, str) else text
    return parse_record(BytesIO(data), site=SITE, prefix=PREFIX)


def paths(text: str | bytes) -> list[str]:
    return [entry.path for entry in parsed(text).entries]


def test_an_entry_and_the_record_itself() -> None:
    found = parsed(record_text({"a/b.py": b"x"}, info="a-1.dist-info"))
    assert found == Record(
        entries=(
            RecordEntry(path="a/b.py", sha256=SHA, size=1),
            RecordEntry(path="a-1.dist-info/RECORD"),
        )
    )


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("a b/c.py,,", "a b/c.py"),
        ('"a,b.py",,', "a,b.py"),
        ('"a""b.py",,3', 'a"b.py'),
        ("./a/b.py,,", "a/b.py"),
        ("a/../b.py,,", "b.py"),
        ("a//b.py,,", "a/b.py"),
        ("a..b/c.py,,", "a..b/c.py"),
        (".hidden,,", ".hidden"),
        ("ä/ö.py,,", "ä/ö.py"),
        ("a,b.py,,", "a,b.py"),
        ("../../../bin/torchrun,,", f"{PREFIX}/bin/torchrun"),
        ("../other.pth,,", f"{PREFIX}/lib/python3.11/other.pth"),
        (f"{SITE}/a.py,,", "a.py"),
        (f"{PREFIX}/share/x,,", f"{PREFIX}/share/x"),
        ("a.py\r,,", "a.py\r"),
        ("a.py", "a.py"),
    ],
)
def test_paths(line: str, path: str) -> None:
    assert paths(f"{line}\n") == [path]


@pytest.mark.parametrize("line", ["", ",,", "a/,,", "/,,"[1:], f"{SITE},,", "./,,"])
def test_lines_that_name_no_file(line: str) -> None:
    assert parsed(f"{line}\n") == Record()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("../../../../../etc/passwd,,", f"leaves `{PREFIX}`"),
        ("/etc/passwd,,", f"leaves `{PREFIX}`"),
        ("//etc/passwd,,", f"leaves `{PREFIX}`"),
        ("../../../../venv2/a,,", f"leaves `{PREFIX}`"),
        ("a\0b,,", "no file can have this name"),
        (f"{'a' * 5000},,", "no file can have this name"),
    ],
)
def test_refused_lines_cost_no_other(line: str, reason: str) -> None:
    found = parsed(f"{line}\na.py,,1\n")
    assert [entry.path for entry in found.entries] == ["a.py"]
    assert len(found.refused) == 1
    assert found.refused[0].endswith(reason)
    assert found.refused[0].isprintable()


def test_a_name_that_is_no_text() -> None:
    found = parsed(b"caf\xe9.py,,\nb.py,,\n")
    assert [entry.path for entry in found.entries] == ["b.py"]
    assert found.refused == ("`caf\\xe9.py`: is no UTF-8 text",)


@pytest.mark.parametrize(
    ("columns", "sha256", "size"),
    [
        (",", None, None),
        ("sha256=,", None, None),
        ("md5=abc,7", None, 7),
        (f"sha256={'!' * 43},7", None, 7),
        ("sha256=x,12x", None, None),
        (",99999999999999999999", None, None),
        (",-1", None, None),
        (",²", None, None),
    ],
)
def test_hashes_and_sizes_that_say_nothing(
    columns: str, sha256: str | None, size: int | None
) -> None:
    assert parsed(f"a,{columns}\n").entries == (RecordEntry(path="a", sha256=sha256, size=size),)


def test_windows_line_ends_and_none_at_the_end() -> None:
    line = record_line("a", b"x")
    assert parsed(f"{line}\r\n{line}").entries == (
        RecordEntry(path="a", sha256=SHA, size=1),
        RecordEntry(path="a", sha256=SHA, size=1),
    )


def test_a_line_break_within_quotes() -> None:
    assert paths('"a\nb.py",,\nc.py,,\n') == ["a\nb.py", "c.py"]


def test_quotes_that_never_end() -> None:
    assert len(parsed('"a,,\n' + "b,,\n" * 5000).entries) <= 5000


def test_too_many_lines_are_an_error_and_not_held() -> None:
    with pytest.raises(WorldError, match="RECORD has more than 1,000 lines, wanted fewer"):
        parse_record(repeat(b"a,,\n"), site=SITE, prefix=PREFIX, most=1000)


def test_many_refused_lines_are_said_in_part() -> None:
    assert len(parsed("/etc/x,,\n" * 1000).refused) == 20


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    with suppress(WorldError):
        check_inside(parsed(data))


@given(st.text(alphabet='./a,"b\n\r\0é', max_size=60))
def test_no_path_leaves_the_prefix(text: str) -> None:
    check_inside(parsed(text))


def check_inside(found: Record) -> None:
    for entry in found.entries:
        parts = entry.path.split("/")
        assert ".." not in parts
        assert entry.path
        assert entry.path[0] != "/" or entry.path.startswith(f"{PREFIX}/")


NAMES = st.text(
    alphabet=st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12
).filter(lambda name: name not in {".", ".."})


@given(st.lists(st.tuples(NAMES, NAMES), max_size=5), st.binary(max_size=9))
def test_what_installers_write_is_read(names: list[tuple[str, str]], content: bytes) -> None:
    wanted = [f"{folder}/{name}" for folder, name in names]
    text = "".join(f"{quoted_line(path, content)}\n" for path in wanted)
    found = parse_record(BytesIO(text.encode()), site=SITE, prefix=PREFIX)
    assert [entry.path for entry in found.entries] == wanted
    assert {entry.size for entry in found.entries} <= {len(content)}
    assert {entry.sha256 for entry in found.entries} <= {hashlib.sha256(content).hexdigest()}


def quoted_line(path: str, content: bytes) -> str:
    plain = record_line("p", content).removeprefix("p")
    return '"' + path.replace('"', '""') + '"' + plain
