"""What stands in [tool.uv] with another type than uv takes is the user's to mend, and no crash."""

from __future__ import annotations

import pytest

from envbuild.core.project.manifest import parse_project
from envbuild.errors import InputError

PROJECT = """
[project]
name = "x"
requires-python = "==3.11.*"
dependencies = ["torch"]
[tool.envbuild.targets.t]
python = "3.11"
gpus = ["B200"]
"""
NEWLINE = "\n"
WRONG = (
    ("environments = 3", "tool.uv.environments: found the number `3`, wanted a list of markers"),
    ("constraint-dependencies = 3", "wanted a list of requirements"),
    ("constraint-dependencies = { a = 1 }", "wanted a list of requirements"),
    ("override-dependencies = [3]", "wanted a list of requirements"),
    ("sources = 3", "tool.uv.sources: found the number `3`, wanted a table"),
    ("index = 3", "wanted tables `[[tool.uv.index]]`"),
    ('index = ["https://a.example"]', "wanted tables `[[tool.uv.index]]`"),
    ("default-groups = 3", "wanted `all` or a list of groups"),
    ('workspace = "libs"', "tool.uv.workspace: found `libs`, wanted a table"),
    ('workspace.members = "libs/*"', "tool.uv.workspace.members: found `libs/*`, wanted a list of"),
    ("workspace.exclude = [3]", "tool.uv.workspace.exclude: found a list, wanted a list of paths"),
    ('package = "no"', "tool.uv.package: found `no`, wanted `true` or `false`"),
    ("conflicts = [{ extra = 'a' }]", "wanted a list of lists"),
    ("required-environments = 'linux'", "wanted a list of markers"),
    ("resolution = 3", "tool.uv.resolution: found the number `3`, wanted a text"),
    ("exclude-newer-package = 3", "tool.uv.exclude-newer-package: found the number `3`"),
)


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_a_wrong_type_is_named(line: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_project(f"{PROJECT}[tool.uv]\n{line}\n")
    assert said in caught.value.message
    assert caught.value.message.startswith(f"pyproject.toml:{PROJECT.count(NEWLINE) + 2}: tool.uv")


def test_a_table_that_is_none_is_told_once() -> None:
    with pytest.raises(InputError, match=r"tool\.uv: found the number") as caught:
        parse_project(f"tool.uv = 3\n{PROJECT}")
    assert "problems" not in caught.value.message


def test_what_uv_takes_is_taken() -> None:
    lines = (
        'override-dependencies = ["six", { name = "a" }]\ndefault-groups = "all"\n'
        "environments = []\nworkspace = { members = ['libs/*'] }\npackage = false\nsources = {}\n"
        "index = []\nexclude-newer-package = { six = false }\n"
    )
    assert parse_project(f"{PROJECT}[tool.uv]\n{lines}").name == "x"
