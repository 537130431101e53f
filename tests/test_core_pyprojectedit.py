"""The edit of pyproject.toml touches what envbuild owns and nothing else."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.binding.edit import edit_pyproject
from envbuild.core.uvsettings import NEVER, UvSettings
from envbuild.model.wheel import IndexPage, PageKind

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COUPLED = frozenset({"torch", "torchvision", "torchaudio", "torch-scatter", "spconv"})
PYTORCH = IndexPage(
    kind=PageKind.PYTORCH,
    key="cu128",
    name="pytorch-cu128",
    url="https://download.pytorch.org/whl/cu128",
)
PYG = IndexPage(
    kind=PageKind.PYG,
    key="2.7.0+cu128",
    name="pyg-torch27-cu128",
    url="https://data.pyg.org/whl/torch-2.7.0%2Bcu128.html",
    flat=True,
)
SETTINGS = UvSettings(
    environments=("python_version == '3.11' and sys_platform == 'linux'",),
    constraints=("torch==2.7.0+cu128", "torch-scatter==2.1.2+pt27cu128"),
    overrides=(f"spconv ; {NEVER}",),
    sources=(("torch", "pytorch-cu128"), ("torch-scatter", "pyg-torch27-cu128")),
    indexes=(PYTORCH, PYG),
    group=("spconv-cu126==2.3.8",),
)
PLAIN = """\
# my project
[project]
name = "p"  # a name
version = "0.1"
dependencies = ["spconv", "peft"]
"""


def edited(text: str, settings: UvSettings = SETTINGS) -> str:
    return edit_pyproject(text, settings, coupled=COUPLED)


def uv_of(text: str) -> dict[str, object]:
    return tomllib.loads(text)["tool"]["uv"]


def test_everything_is_written_to_a_plain_project() -> None:
    result = edited(PLAIN)
    assert result.startswith(PLAIN.rstrip("\n"))
    assert uv_of(result) == {
        "environments": list(SETTINGS.environments),
        "constraint-dependencies": list(SETTINGS.constraints),
        "override-dependencies": list(SETTINGS.overrides),
        "default-groups": ["envbuild"],
        "sources": {
            "torch": {"index": "pytorch-cu128"},
            "torch-scatter": {"index": "pyg-torch27-cu128"},
        },
        "index": [
            {"name": "pytorch-cu128", "url": PYTORCH.url, "explicit": True},
            {"name": "pyg-torch27-cu128", "url": PYG.url, "explicit": True, "format": "flat"},
        ],
    }
    assert tomllib.loads(result)["dependency-groups"] == {"envbuild": ["spconv-cu126==2.3.8"]}


USERS = """\
[project]
name = "p"
version = "0.1"

[dependency-groups]
dev = ["pytest"]

[tool.envbuild]
layer = "project"

[tool.uv]
# why numpy is held back
constraint-dependencies = [
    "numpy<2",  # old C API
    "torch<2.6",
]
override-dependencies = ["protobuf==4.25"]
package = false
managed = false

[tool.uv.sources]
mine = { path = "libs/mine" }  # local
torch = { index = "pytorch-cu121" }

[[tool.uv.index]]
name = "pytorch-cu121"
url = "https://download.pytorch.org/whl/cu121"
explicit = true

[[tool.uv.index]]
name = "company"
url = "https://pypi.example.com/simple"

[tool.ruff]
line-length = 99
"""


def test_the_users_own_entries_and_comments_stay() -> None:
    result = edited(USERS)
    uv = uv_of(result)
    assert uv["constraint-dependencies"] == ["numpy<2", "torch<2.6", *SETTINGS.constraints]
    assert uv["override-dependencies"] == ["protobuf==4.25", *SETTINGS.overrides]
    assert uv["sources"]["mine"] == {"path": "libs/mine"}  # type: ignore[index]
    assert uv["sources"]["torch"] == {"index": "pytorch-cu128"}  # type: ignore[index]
    assert [index["name"] for index in uv["index"]] == [  # type: ignore[attr-defined]
        "company",
        "pytorch-cu128",
        "pyg-torch27-cu128",
    ]
    assert uv["default-groups"] == ["dev", "envbuild"]
    assert "managed" not in uv
    for comment in ("# why numpy is held back", "# old C API", "# local"):
        assert comment in result
    assert result.index("[tool.uv]") < result.index("[tool.ruff]")


@pytest.mark.parametrize("text", [PLAIN, USERS])
def test_a_second_edit_changes_nothing(text: str) -> None:
    once = edited(text)
    assert edited(once) == once


def test_what_is_no_longer_needed_goes() -> None:
    smaller = replace(
        SETTINGS,
        constraints=("torch==2.7.0+cu128",),
        overrides=(),
        sources=(("torch", "pytorch-cu128"),),
        indexes=(PYTORCH,),
        group=(),
    )
    result = edited(edited(USERS), smaller)
    uv = uv_of(result)
    assert uv["constraint-dependencies"] == ["numpy<2", "torch<2.6", "torch==2.7.0+cu128"]
    assert uv["override-dependencies"] == ["protobuf==4.25"]
    assert uv["sources"] == {"mine": {"path": "libs/mine"}, "torch": {"index": "pytorch-cu128"}}
    assert "default-groups" not in uv
    assert tomllib.loads(result)["dependency-groups"] == {"dev": ["pytest"]}
    assert edited(result, smaller) == result


def test_layer_pip_unmanages_the_project_and_takes_its_own_entries_back() -> None:
    result = edited(edited(USERS), UvSettings(managed=False))
    uv = uv_of(result)
    assert uv["managed"] is False
    assert uv["constraint-dependencies"] == ["numpy<2", "torch<2.6"]
    assert [index["name"] for index in uv["index"]] == ["company"]  # type: ignore[attr-defined]
    assert uv["sources"] == {"mine": {"path": "libs/mine"}}
    assert "environments" not in uv


def test_credentials_of_a_mirror_are_not_written() -> None:
    page = replace(PYTORCH, url="https://me:secret@mirror.example.com/whl/cu128")
    settings = replace(
        SETTINGS, indexes=(page, PYG), default_index="https://me:secret@pypi.example.com/simple"
    )
    result = edited(PLAIN, settings)
    assert "secret" not in result
    assert "https://mirror.example.com/whl/cu128" in result
    assert {"name": "pypi", "url": "https://pypi.example.com/simple", "default": True} in uv_of(
        result
    )["index"]  # type: ignore[operator]


def test_packages_without_upload_times_are_left_out_of_the_cutoff() -> None:
    settings = replace(
        SETTINGS, exclude_newer="2026-11-01T00:00:00Z", without_cutoff=("torch", "torch-scatter")
    )
    uv = uv_of(edited(PLAIN, settings))
    assert uv["exclude-newer"] == "2026-11-01T00:00:00Z"
    assert uv["exclude-newer-package"] == {"torch": False, "torch-scatter": False}
    back = uv_of(edited(edited(PLAIN, settings), SETTINGS))
    assert "exclude-newer-package" not in back


def test_default_groups_all_needs_no_entry() -> None:
    text = USERS.replace("package = false", 'default-groups = "all"')
    assert uv_of(edited(text))["default-groups"] == "all"


NAMES = st.sampled_from(["numpy", "scipy", "torch", "torchvision", "Torch_Scatter", "einops"])
LISTS = st.lists(NAMES, max_size=4, unique=True)


@given(constraints=LISTS, sources=LISTS, indexes=LISTS, inline=st.booleans())
def test_any_project_keeps_what_is_not_owned(
    constraints: list[str], sources: list[str], indexes: list[str], *, inline: bool
) -> None:
    lines = ["[project]", 'name = "p"', "", "[tool.uv]", "# kept"]
    lines += [f"constraint-dependencies = {[f'{name}>=0' for name in constraints]}"]
    if inline:
        body = ", ".join(f'{name} = {{ index = "i-{name}" }}' for name in sources)
        lines += [f"sources = {{ {body} }}"]
    else:
        lines += ["[tool.uv.sources]", *(f'{name} = {{ index = "i-{name}" }}' for name in sources)]
    for name in indexes:
        lines += ["[[tool.uv.index]]", f'name = "i-{name}"', 'url = "https://example.com"']
    text = "\n".join(lines) + "\n"
    result = edited(text)
    uv = uv_of(result)
    kept = [f"{name}>=0" for name in constraints]
    assert uv["constraint-dependencies"] == [*kept, *SETTINGS.constraints]
    assert "# kept" in result
    assert [i["name"] for i in uv["index"]][: len(indexes)] == [  # type: ignore[index,attr-defined]
        f"i-{name}" for name in indexes
    ]
    assert edited(result) == result
