"""What a project says to doctor in its pyproject.toml."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.project.doctor import DoctorTable, code_prefix, parse_doctor_table
from envbuild.errors import InputError


def test_reasons_and_gpus() -> None:
    table = parse_doctor_table(
        """
        [tool.envbuild.doctor]
        ignore = { EB203 = "known", EB5 = "no project" }
        [tool.envbuild.targets.a]
        gpus = ["RTX 5090", "no such GPU", 3]
        [tool.envbuild.targets.b]
        """
    )
    assert table.ignore == (("EB203", "known"), ("EB5", "no project"))
    ((name, gpus),) = table.gpus
    assert (name, [gpu.name for gpu in gpus]) == ("a", ["RTX 5090"])
    assert table.unknown == (("a", ("no such GPU", "3")),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[project]",
        "tool = 3",
        "[tool]\nenvbuild = 3",
        "no toml [",
        "[tool.envbuild]\ntargets = 1",
    ],
)
def test_a_file_may_say_nothing(text: str) -> None:
    assert parse_doctor_table(text) == DoctorTable()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('ignore = { E203 = "x" }', "found `E203`, wanted a code like `EB203` or `EB2`"),
        ('ignore = { EB203 = "" }', "found an empty text, wanted a text"),
        ("ignore = { EB203 = true }", "found `true`, wanted a text"),
        ('ignore = ["EB203"]', "found a list, wanted a table"),
        ("ignored = {}", "found the unknown key `ignored`; did you mean `ignore`?"),
    ],
)
def test_every_problem_has_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_doctor_table(f"[tool.envbuild.doctor]\n{text}\n")
    assert caught.value.message.startswith("pyproject.toml:2: tool.envbuild.doctor")
    assert message in caught.value.message


def test_beginnings_of_codes() -> None:
    assert [code_prefix(word) for word in ("eb3", " EB301 ", "EB")] == ["EB3", "EB301", "EB"]
    with pytest.raises(InputError, match="found `301`"):
        code_prefix("301")


@given(text=st.text(max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    assert parse_doctor_table(text).ignore == ()


def test_what_is_built_is_told_by_its_normalised_name() -> None:
    text = '[tool.envbuild.build]\nFlash_Attn = "source"\npointops = { path = "libs/pointops" }\n'
    assert parse_doctor_table(text).builds == ("flash-attn", "pointops")
    assert parse_doctor_table("[tool.envbuild]\nbuild = 3\n").builds == ()
