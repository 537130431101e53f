"""requirements.txt: each kind of line, its number, and any text without a crash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from envbuild.core.project.requirementsfile import (
    BadLine,
    FileRequirement,
    Include,
    Note,
    parse_requirements_file,
)

WHEEL = "https://example.org/torch_scatter-2.1.2%2Bpt27cu128-cp311-cp311-linux_x86_64.whl"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def only(text: str, path: str = "requirements.txt") -> object:
    entries = parse_requirements_file(path, text)
    assert len(entries) == 1
    return entries[0]


def read(text: str) -> list[tuple[int, str]]:
    entries = parse_requirements_file("requirements.txt", text)
    assert all(isinstance(entry, FileRequirement) for entry in entries)
    return [(e.line, str(e.requirement)) for e in entries if isinstance(e, FileRequirement)]


def test_requirements_with_comments_continuations_markers_and_hashes() -> None:
    text = (
        "# a comment\n"
        "torch==2.7.0  # why\n"
        "\n"
        "numpy \\\n"
        "    --hash=sha256:aa \\\n"
        "    --hash=sha256:bb\n"
        'tomli>=2 ; python_version < "3.11"\n'
        "pkg[extra] >= 1, \\\n"
        "  < 2\n"
        "url @ https://example.org/a#b.zip\n"
    )
    assert read(text) == [
        (2, "torch==2.7.0"),
        (4, "numpy"),
        (7, 'tomli>=2; python_version < "3.11"'),
        (8, "pkg[extra]<2,>=1"),
        (10, str(Requirement("url @ https://example.org/a#b.zip"))),
    ]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            WHEEL,
            f"torch-scatter@ {WHEEL}",
        ),
        (
            f"-e git+https://example.org/x.git@{COMMIT}#egg=x",
            f"x@ git+https://example.org/x.git@{COMMIT}",
        ),
        (
            f"git+https://example.org/x.git@{COMMIT}#egg=x&subdirectory=y",
            f"x@ git+https://example.org/x.git@{COMMIT}#subdirectory=y",
        ),
    ],
)
def test_addresses_become_named_requirements(line: str, wanted: str) -> None:
    assert read(line) == [(1, str(Requirement(wanted)))]


@pytest.mark.parametrize("line", ["-r more.txt", "-rmore.txt", "--requirement=more.txt"])
def test_includes_are_relative_to_the_including_file(line: str) -> None:
    assert only(line, "reqs/all.txt") == Include(path="reqs/more.txt", line=1)
    assert only("-r ../top.txt", "reqs/all.txt") == Include(path="top.txt", line=1)


@pytest.mark.parametrize(
    "line",
    [
        "-c constraints.txt",
        "-f https://data.pyg.org/whl/torch-2.7.0+cu128.html",
        "--find-links=wheels",
        "--extra-index-url https://user:secret@example.org/simple",
        "-i https://example.org/simple",
        "--pre",
        "--only-binary=:all:",
        "-e .",
        "-e .[dev]",
        ".",
    ],
)
def test_lines_that_are_left_out_with_a_note(line: str) -> None:
    note = only(line)
    assert isinstance(note, Note)
    assert "secret" not in note.text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--frobnicate yes", "found the option `--frobnicate`"),
        ("torch==2.7 --frobnicate", "found the option `--frobnicate`"),
        ("torch=2.7", "found `torch=2.7`, wanted a requirement (PEP 508)"),
        ("-r", "found `-r` with nothing after it"),
        ("-r https://example.org/r.txt", "wanted a path relative to"),
        ("./dist/x-1.0-py3-none-any.whl", "found the file `./dist/x-1.0-py3-none-any.whl`"),
        ("-", "found the option `-`"),
        ("./libs/pointops", "found the path `./libs/pointops`"),
        ("-e libs/pointops", "found the path `libs/pointops`"),
        (f"git+https://u:secret@example.org/x@{COMMIT}", "found an address without a name"),
    ],
)
def test_lines_that_cannot_be_used(line: str, message: str) -> None:
    bad = only("# first\n" + line)
    assert isinstance(bad, BadLine)
    assert message in bad.message
    assert "secret" not in bad.message
    assert bad.line == 2


def test_an_option_after_a_requirement_belongs_on_its_own_line() -> None:
    bad = only("torch-scatter -f https://data.pyg.org/whl/torch-2.7.0+cu128.html")
    assert isinstance(bad, BadLine)
    assert bad.hint == "put `-f` on a line of its own"


def test_a_path_hint_can_be_pasted() -> None:
    bad = only("-e libs/pointops/")
    assert isinstance(bad, BadLine)
    assert bad.hint == 'write under [tool.envbuild.build]: pointops = { path = "libs/pointops" }'


@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from([*" \\\n#-=;@./ra", "--hash", "git+"])).map("".join)
    )
)
def test_any_text_gives_lines_within_it(text: str) -> None:
    last = len(text.splitlines()) or 1
    assert all(1 <= entry.line <= last for entry in parse_requirements_file("r.txt", text))
