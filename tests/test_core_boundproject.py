"""A pyproject.toml of any shape is bound as a whole, or it is said that it cannot be."""

from __future__ import annotations

import sys

import pytest
from test_core_pyprojectedit import COUPLED, SETTINGS

from envbuild.core.binding.project import bound_project
from envbuild.core.scratch import scratch_index, scratch_pyproject
from envbuild.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = '[project]\nname = "x"\n'
SHAPES = {
    "nothing": PROJECT,
    "sub-tables alone": f'{PROJECT}[tool.uv.sources]\nsix = {{ index = "a" }}\n',
    "a table in pieces": (
        f'[tool.uv]\npackage = false\n{PROJECT}[tool.uv.sources]\nsix = {{ index = "a" }}\n'
        '[tool.black]\nx = 1\n[[tool.uv.index]]\nname = "a"\nurl = "https://a.example"\n'
    ),
    "quoted": f'{PROJECT}["tool"."uv"]\npackage = false\n',
    "odd case": f'{PROJECT}[tool.uv.sources]\nTorch = {{ index = "a" }}\n',
    "dotted sources": f'{PROJECT}[tool.uv.sources]\ntorch.index = "a"\nsix.index = "a"\n',
    "sources as tables": f'{PROJECT}[tool.uv.sources.torch]\nindex = "a"\n',
    "inline indexes": f'{PROJECT}[tool.uv]\nindex = [{{ name = "a", url = "https://a.ex" }}]\n',
    "empty lists": f"{PROJECT}[tool.uv]\nindex = []\nconstraint-dependencies = []\n",
    "inline groups": f'dependency-groups = {{ dev = ["six"] }}\n{PROJECT}',
    "no end of line": f"{PROJECT}[tool.uv]\npackage = false",
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_a_shape_that_can_be_edited(text: str) -> None:
    bound = bound_project(text, SETTINGS, coupled=COUPLED)
    uv = tomllib.loads(bound)["tool"]["uv"]
    assert uv["environments"] == list(SETTINGS.environments)
    assert bound_project(bound, SETTINGS, coupled=COUPLED) == bound


NOT_EDITABLE = {
    "dotted below tool": f'{PROJECT}[tool]\nuv.package = false\nuv.sources.six.index = "a"\n',
    "inline below tool": f"{PROJECT}[tool]\nuv = {{ package = false }}\n",
    "tool inline": "tool = { uv = { package = false } }\n",
}


@pytest.mark.parametrize("text", NOT_EDITABLE.values(), ids=NOT_EDITABLE)
def test_a_shape_that_cannot_be_edited_is_told(text: str) -> None:
    with pytest.raises(InputError, match="as dotted keys or inside an inline table") as caught:
        bound_project(text, SETTINGS, coupled=COUPLED)
    assert "[tool.uv]" in (caught.value.hint or "")


def test_the_scratch_project_may_have_any_shape() -> None:
    text = (
        '[project]\nname = "x"\n[tool]\nuv = { package = false, index = [{ name = "a", '
        'url = "https://a.example" }], dependency-metadata = [{ name = "six" }] }\n'
    )
    scratch = tomllib.loads(scratch_pyproject(text, scratch_index(()), {}))
    assert scratch["tool"]["uv"]["dependency-metadata"] == [{"name": "six"}]
    assert scratch["project"]["requires-python"] == ">=3.8"
