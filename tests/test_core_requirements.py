"""Requirements of a project: tables, groups, own extras and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import tomlkit

from envbuild.core.project.fields import Problems
from envbuild.core.project.positions import toml_positions
from envbuild.core.project.requirements import file_requirements, files_of, table_requirements
from envbuild.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


def read(text: str) -> list[tuple[str, str, str, int | None]]:
    problems = Problems("pyproject.toml", toml_positions(text))
    found = table_requirements(tomlkit.loads(text).unwrap(), problems)
    problems.raise_any()
    return [(d.group, str(d.requirement), d.where, d.line) for d in found]


def complaint(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    return caught.value.message


def test_tables_give_place_group_and_line() -> None:
    text = (
        '[project]\ndependencies = [\n  "torch",\n  "numpy<3",\n]\n'
        "[project.optional-dependencies]\n"
        'Dev_Tools = ["ruff"]\n[dependency-groups]\ntest = ["pytest"]\n'
    )
    assert read(text) == [
        ("", "torch", "[project] dependencies", 3),
        ("", "numpy<3", "[project] dependencies", 4),
        ("extra:dev-tools", "ruff", "[project] optional-dependencies.Dev_Tools", 7),
        ("group:test", "pytest", "[dependency-groups] test", 9),
    ]


def test_groups_include_groups() -> None:
    text = (
        "[dependency-groups]\n"
        'all = [{ include-group = "Te_st" }, "x"]\n'
        'te-st = ["pytest", { include-group = "lint" }]\n'
        'lint = ["ruff"]\n'
    )
    in_all = [(name, line) for group, name, _, line in read(text) if group == "group:all"]
    assert in_all == [("pytest", 3), ("ruff", 4), ("x", 2)]


def test_a_cycle_of_groups_is_reported_where_it_closes() -> None:
    text = (
        "[dependency-groups]\n"
        'a = [{ include-group = "b" }]\nb = [{ include-group = "a" }]\n'
        'outside = [{ include-group = "a" }]\n'
    )
    message = complaint(text)
    assert "dependency-groups.b[0]: found a cycle of groups: a -> b -> a" in message
    assert message.startswith("2 problems")


def test_a_group_may_not_include_itself() -> None:
    assert "a -> a" in complaint('[dependency-groups]\na = [{ include-group = "a" }]\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[dependency-groups]\ntest = []\nall = [{ include-group = "tests" }]\n',
            ":3: dependency-groups.all[0]: found the unknown group `tests`; did you mean `test`?",
        ),
        ("[dependency-groups]\na = [1]\n", "dependency-groups.a[0]: found the number `1`"),
        ('[dependency-groups]\na = "x"\n', "dependency-groups.a: found `x`, wanted a list"),
        ("[dependency-groups]\na-b = []\na_b = []\n", "found the same group twice"),
        (
            '[project]\ndependencies = [\n"a",\n"b=1"]\n',
            "toml:4: project.dependencies[1]: found `b=1`, wanted a requirement (PEP 508)",
        ),
        ("[project]\ndependencies = 3\n", "found the number `3`, wanted a list of texts"),
        ("[project]\noptional-dependencies = []\n", "found a list, wanted a table"),
    ],
)
def test_problems(text: str, message: str) -> None:
    assert message in complaint(text)


def test_an_invalid_requirement_of_an_included_group_is_reported_once() -> None:
    text = '[dependency-groups]\na = ["!"]\nb = [{ include-group = "a" }]\n'
    assert complaint(text).startswith("pyproject.toml:2: dependency-groups.a[0]: found `!`")


def test_own_extras_become_their_requirements() -> None:
    text = (
        '[project]\nname = "My.Proj"\n'
        "dependencies = [\"my-proj[gpu]; sys_platform == 'linux'\"]\n"
        "[project.optional-dependencies]\n"
        "gpu = [\"spconv ; python_version < '3.13' or extra == 'z'\"]\n"
        'all = ["my_proj[gpu,all]", "x"]\n'
    )
    found = [(group, name) for group, name, _, _ in read(text)]
    spconv = 'spconv; python_version < "3.13" or extra == "z"'
    both = 'spconv; sys_platform == "linux" and (python_version < "3.13" or extra == "z")'
    assert found == [
        ("", both),
        ("extra:gpu", spconv),
        ("extra:all", spconv),
        ("extra:all", "x"),
    ]


FILES = {
    "requirements.txt": "torch\n-r reqs/more.txt\n-c c.txt\n",
    "reqs/more.txt": "numpy\n-r ../requirements.txt\n-r last.txt\n",
}


def from_files(texts: Mapping[str, str]) -> tuple[list[tuple[str, str, int | None]], list[str]]:
    problems = Problems("pyproject.toml", toml_positions(""))
    paths = files_of(("requirements.txt",), texts)
    found, notes = file_requirements(paths, texts, problems)
    problems.raise_any()
    return [(str(d.requirement), d.where, d.line) for d in found], list(notes)


def test_files_are_followed_as_far_as_their_texts_are_given() -> None:
    assert files_of(("requirements.txt",), {}) == ("requirements.txt",)
    assert files_of(("requirements.txt",), FILES) == (
        "requirements.txt",
        "reqs/more.txt",
        "reqs/last.txt",
    )


def test_requirements_of_files() -> None:
    found, notes = from_files({**FILES, "reqs/last.txt": "einops"})
    assert found == [
        ("torch", "requirements.txt", 1),
        ("numpy", "reqs/more.txt", 1),
        ("einops", "reqs/last.txt", 1),
    ]
    assert notes == [
        "requirements.txt:3: `--constraint` is not used: the lock itself binds every version"
    ]


def test_a_missing_included_file_and_a_bad_line_are_reported_in_their_file() -> None:
    with pytest.raises(InputError) as caught:
        from_files({**FILES, "requirements.txt": FILES["requirements.txt"] + "--what\n"})
    assert "reqs/more.txt:3: found no file `reqs/last.txt`" in caught.value.message
    assert "requirements.txt:4: found the option `--what`" in caught.value.message
