"""The lines of wheels in what uv writes."""

from __future__ import annotations

import pytest
from fakes import target

from envbuild.core.wheellines import without_foreign

HERE = "a-1-cp311-cp311-manylinux_2_28_x86_64.whl"
FOREIGN = ("a-1-cp312-cp312-manylinux_2_28_x86_64.whl", "a-1-cp311-cp311-win_amd64.whl")


def lines(*names: str, key: str = "url") -> str:
    files = "".join(f'    {{ {key} = "https://h/{n}", hash = "sha256:0" }},\n' for n in names)
    return f'[[package]]\nname = "a"\nwheels = [\n{files}]\n\n[[package]]\nname = "b"\n'


@pytest.mark.parametrize("key", ["url", "path"])
def test_what_does_not_fit_goes(key: str) -> None:
    text = lines(FOREIGN[0], HERE, FOREIGN[1], key=key)
    assert without_foreign(text, target()) == lines(HERE, key=key)


def test_the_name_in_an_address_is_escaped() -> None:
    local = "torch-2.7.0%2Bcu128-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert without_foreign(lines(local, *FOREIGN), target()) == lines(local)


def test_where_none_fits_all_stay() -> None:
    assert without_foreign(lines(*FOREIGN), target()) == lines(*FOREIGN)


def test_a_line_that_is_written_otherwise_stays() -> None:
    text = lines(HERE, FOREIGN[0]).replace('{ url = "https://h/a-1-cp312', '{ name = "a-1-cp312')
    assert without_foreign(text, target()) == text


def test_the_sdist_and_all_else_stay() -> None:
    text = 'sdist = { url = "https://h/a-1.tar.gz" }\nwheels = [{ url = "https://h/a.whl" }]\n'
    assert without_foreign(text, target()) == text
