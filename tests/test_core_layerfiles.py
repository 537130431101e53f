"""The files around an environment: uv.lock as uv reads it, other locks, and broken ones."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest
from checkvalues import env
from hypothesis import given
from hypothesis import strategies as st
from lockworld import pyproject
from packaging.requirements import Requirement

from envbuild.core.installedrequires import marker_environments
from envbuild.core.layerfiles import LayerTexts, default_groups, layers_of, unrouted
from envbuild.core.locktexts import read_pylock, read_requirements, read_uv_lock
from envbuild.core.uvgraph import Asked, UvGraph
from envbuild.model.installed import EnvironmentKind
from envbuild.world.layers import read_layers

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

    from lockworld import World

    from envbuild.model.layers import Layers

HERE = marker_environments(env())
OTHER = marker_environments(env(python="3.12.4"))
GROUPS = """
[project.optional-dependencies]
vis = ["torchvision", "scipy"]
[dependency-groups]
dev = ["iniconfig"]
docs = ["six", { include-group = "dev" }]
"""

PYPI = '{ registry = "https://pypi.org/simple" }'
NEITHER = "extra != 'extra-7-my-demo-cpu' and extra != 'extra-7-my-demo-cu128'"

# A project with conflicting extras, as uv writes it.
CONFLICTS = f"""
version = 1
requires-python = ">=3.10"

[[package]]
name = "my-demo"
version = "0.1"
source = {{ virtual = "." }}
dependencies = [{{ name = "peft" }}]

[package.optional-dependencies]
cpu = [{{ name = "torch", version = "2.9.1+cpu", source = {{ registry = "https://d/cpu" }} }}]
cu128 = [{{ name = "torch", version = "2.9.1+cu128", source = {{ registry = "https://d/gpu" }} }}]

[[package]]
name = "peft"
version = "0.19.0"
source = {PYPI}
dependencies = [
    {{ name = "torch", version = "2.9.1", source = {PYPI}, marker = "{NEITHER}" }},
    {{ name = "torch", version = "2.9.1+cpu", marker = "extra == 'extra-7-my-demo-cpu'" }},
    {{ name = "torch", version = "2.9.1+cu128", marker = "extra == 'extra-7-my-demo-cu128'" }},
    {{ name = "tomli", marker = "python_full_version < '3.11'" }},
]

[[package]]
name = "tomli"
version = "2.2.1"
source = {PYPI}

[[package]]
name = "torch"
version = "2.9.1"
source = {PYPI}


[[package]]
name = "torch"
version = "2.9.1+cpu"
source = {{ registry = "https://d/cpu" }}

[[package]]
name = "torch"
version = "2.9.1+cu128"
source = {{ registry = "https://d/gpu" }}
"""

# Two extras that exclude each other, for real uv.
EXCLUSIVE = """
[project]
name = "my-demo"
version = "0.1"
requires-python = "==3.11.*"
dependencies = ["peft"]
[project.optional-dependencies]
cpu = ["torch==2.7.0"]
cu128 = ["torch==2.7.0"]
[tool.uv]
package = false
environments = ["sys_platform == 'linux' and platform_machine == 'x86_64'"]
conflicts = [[{{ extra = "cpu" }}, {{ extra = "cu128" }}]]
[tool.uv.sources]
torch = [{{ index = "cpu", extra = "cpu" }}, {{ index = "cu128", extra = "cu128" }}]
[[tool.uv.index]]
name = "cpu"
url = "{pytorch}/cpu"
explicit = true
[[tool.uv.index]]
name = "cu128"
url = "{pytorch}/cu128"
explicit = true
[[tool.uv.index]]
name = "pypi"
url = "{pypi}"
default = true
"""


def exported(world: World, *options: str) -> dict[str, str]:
    """Return what `uv export` gives for the lock of the world's project."""
    done = world.uv(
        "export",
        "--locked",
        "--no-hashes",
        "--no-header",
        "--no-annotate",
        "--no-emit-project",
        *options,
    )
    found = (Requirement(line) for line in done.stdout.splitlines())
    return {one.name: str(one.specifier).removeprefix("==") for one in found}


def test_the_walk_over_uv_lock_is_uvs_own(world: World) -> None:
    world.write(pyproject("torch", "peft>=0.19", more=GROUPS))
    world.lock()
    text = world.read("uv.lock")
    for groups, options in (
        (("dev",), ()),
        ((), ("--no-default-groups",)),
        (("dev", "docs"), ("--group", "docs")),
    ):
        lock = read_uv_lock("uv.lock", text, HERE, groups=groups)
        assert {one.name: one.version for one in lock.packages} == exported(world, *options)
    lock = read_uv_lock("uv.lock", text, HERE, groups=("dev",))
    with_extra = {one.name: one.version for flag, one in lock.optional if flag == "--extra vis"}
    base = exported(world)
    assert with_extra == {
        name: version
        for name, version in exported(world, "--extra", "vis").items()
        if name not in base
    }
    assert ("--group docs", "six") in {(flag, one.name) for flag, one in lock.optional}
    torch = next(one for one in lock.packages if one.name == "torch")
    assert torch.index.endswith("/whl/cu128")
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in torch.sha256)
    assert lock.fits
    assert not read_uv_lock("uv.lock", text, OTHER).fits


def test_every_file_of_a_lock_holds_one_set(world: World) -> None:
    world.write(pyproject("torch", "peft>=0.19"))
    world.lock()
    layers = read_layers(env(prefix=f"{world.root}/.venv", kind=EnvironmentKind.VENV))
    assert layers.directory == str(world.root)
    assert layers.owned
    assert layers.uses_envbuild
    assert (layers.default_target, layers.unreadable) == ("cu128", ())
    assert layers.uv_lock is not None
    (pylock,), (requirements,) = layers.pylocks, layers.requirements
    assert (pylock.path, pylock.target, pylock.cuda) == (
        "lockfiles/pylock.cu128.toml",
        "cu128",
        "12.8",
    )
    assert (requirements.target, requirements.cuda, requirements.fits) == ("cu128", "12.8", True)
    sets = [
        {(p.name, p.version) for p in lock.packages}
        for lock in (layers.uv_lock, pylock, requirements)
    ]
    assert sets[0] == sets[1] == sets[2]
    assert {p.name: p.sha256 for p in pylock.packages} == {
        p.name: p.sha256 for p in requirements.packages
    }
    other = read_layers(env(prefix=f"{world.root}/.venv", python="3.12.1", machine="aarch64"))
    assert not other.pylocks[0].fits
    assert not other.requirements[0].fits


def test_extras_that_exclude_each_other_are_walked_as_uv_does(world: World) -> None:
    urls = world.environ
    world.write(
        EXCLUSIVE.format(pytorch=urls["ENVBUILD_INDEX_PYTORCH"], pypi=urls["ENVBUILD_INDEX_PYPI"])
    )
    world.uv("lock", "--python", "3.11")
    graph = UvGraph(tomllib.loads(world.read("uv.lock")), HERE)
    for asked in (Asked(), *graph.choices()):
        reached = {one.name: one.version for one in graph.reached(asked)}
        assert reached == exported(world, *asked.flag.split())
    assert [asked.flag for asked in graph.choices()] == ["--extra cpu", "--extra cu128"]


@pytest.mark.parametrize("chosen", ["", "cpu", "cu128"])
def test_conflicting_extras(chosen: str) -> None:
    lock = read_uv_lock("uv.lock", CONFLICTS, HERE)
    if not chosen:
        assert [(one.name, one.version) for one in lock.packages] == [
            ("peft", "0.19.0"),
            ("torch", "2.9.1"),
        ]
        assert lock.packages[1].index == "https://pypi.org/simple"
        return
    flags = {one.version: flag for flag, one in lock.optional}
    assert flags[f"2.9.1+{chosen}"] == f"--extra {chosen}"


def test_no_credentials_of_an_index_come_back() -> None:
    text = CONFLICTS.replace("https://pypi.org", "https://user:secret@pypi.org")
    lock = read_uv_lock("uv.lock", text, HERE)
    assert {one.index for one in lock.packages} == {"https://pypi.org/simple"}


def test_the_marker_of_another_python() -> None:
    old = marker_environments(env(python="3.10.1"))
    assert "tomli" in {one.name for one in read_uv_lock("uv.lock", CONFLICTS, old).packages}
    everything = read_uv_lock("uv.lock", CONFLICTS, ())
    assert len(everything.packages) == 5


def test_a_lock_of_a_workspace_without_a_root_gives_everything() -> None:
    text = CONFLICTS.replace('virtual = "."', 'virtual = "packages/a"')
    assert len(read_uv_lock("uv.lock", text, HERE).packages) == 5


def test_a_pylock_of_others() -> None:
    text = """
lock-version = "1.0"
created-by = "uv"
requires-python = ">=3.11"
environments = ["sys_platform == 'linux'"]
[[packages]]
name = "torch"
version = "2.7.0+cu128"
marker = "sys_platform == 'linux'"
index = "https://u:p@host/simple"
[[packages.wheels]]
url = "https://x/torch-2.7.0%2Bcu128-cp311-cp311-linux_x86_64.whl"
hashes = { sha256 = "aa" }
[[packages]]
name = "pywin32"
version = "1"
marker = "sys_platform == 'win32'"
sdist = { url = "https://x/pywin32-1.tar.gz", hashes = { sha256 = "bb" } }
[[packages]]
name = "flash-attn"
[packages.archive]
url = "https://x/flash_attn-2.8.3%2Bcu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"
hashes = { sha256 = "cc" }
"""
    lock = read_pylock("pylock.toml", text, HERE)
    assert [(one.name, one.version) for one in lock.packages] == [
        ("torch", "2.7.0+cu128"),
        ("flash-attn", "2.8.3+cu12torch2.7cxx11abitrue"),
    ]
    assert lock.packages[0].index == "https://host/simple"
    assert (lock.target, lock.fits) == ("", True)
    assert not read_pylock("pylock.toml", text, marker_environments(env(python="3.10.2"))).fits


@pytest.mark.parametrize(
    ("table", "glibc"), [('glibc = "2.35"', "2.35"), ("", ""), ("glibc = 2.35", "2.35")]
)
def test_the_glibc_of_a_target(table: str, glibc: str) -> None:
    text = f'lock-version = "1.0"\ncreated-by = "x"\npackages = []\n[tool.envbuild]\n{table}\n'
    assert read_pylock("pylock.toml", text, HERE).glibc == glibc


def test_a_requirements_file_is_a_lock_only_where_everything_is_pinned() -> None:
    digest = "a" * 64
    text = f"torch==2.7.0+cu128 \\\n    --hash=sha256:{digest}\n"
    text += "numpy==2.1.0 ; python_version < '3.9'\n"
    lock = read_requirements("requirements.gpu.txt", text, HERE)
    assert lock is not None
    assert [(one.name, one.version, one.sha256) for one in lock.packages] == [
        ("torch", "2.7.0+cu128", (digest,))
    ]
    assert lock.target == "gpu"
    for loose in ("torch>=2", "torch", "torch==2.*", "torch==2,<3", "./local", "", "# nothing"):
        assert read_requirements("requirements.dev.txt", loose, HERE) is None
    partly = read_requirements("r.txt", f"{text}six==1.17.0\n", HERE)
    assert partly is not None
    assert partly.incomplete == ("six==1.17.0",)


def settings(text: str) -> Layers:
    return layers_of(LayerTexts(pyproject=text), directory="/app", environments=HERE)


def test_the_settings_of_uv() -> None:
    layers = settings(
        '[project]\nname = "x"\nrequires-python = ">=3.11"\n'
        '[tool.uv]\nmanaged = false\nindex-strategy = "unsafe-best-match"\ntorch-backend = "auto"\n'
    )
    assert (layers.managed, layers.index_strategy, layers.torch_backend) == (
        False,
        "unsafe-best-match",
        "auto",
    )
    assert layers.requires_python == ">=3.11"
    assert len(layers.hazards) == 2
    assert not layers.uses_envbuild
    assert settings("").managed


def test_companions_that_no_source_leads_to_torchs_index() -> None:
    document = {
        "project": {"dependencies": ["torch", "TorchVision>=0.22"]},
        "dependency-groups": {"audio": ["torchaudio", {"include-group": "x"}]},
        "tool": {
            "uv": {
                "index": [{"name": "pt", "url": "https://download.pytorch.org/whl/cu128"}],
                "sources": {"torch": [{"index": "pt", "marker": "sys_platform == 'linux'"}]},
            }
        },
    }
    assert unrouted(document) == ("torchvision", "torchaudio")
    document["tool"]["uv"]["sources"]["torchvision"] = {"index": "pt"}  # type: ignore[index]
    assert unrouted(document) == ("torchaudio",)
    document["tool"]["uv"]["index"] = []  # type: ignore[index]
    assert unrouted(document) == ()


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ({}, ("dev",)),
        ({"tool": {"uv": {"default-groups": ["a", 3]}}}, ("a",)),
        ({"tool": {"uv": {"default-groups": "all"}}, "dependency-groups": {"b": []}}, ("b",)),
        ({"tool": {"uv": {"default-groups": 7}}}, ()),
    ],
)
def test_default_groups(text: dict[str, object], groups: tuple[str, ...]) -> None:
    assert default_groups(text) == groups


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "version = 0",
        'version = 1\npackage = [{ name = "x" }]',
        "version = 1\npackage = 3",
        "version = 1\n[[package]]\nname = 7\nsource = {}",
        "<<<<<<< HEAD\nversion = 1",
        "a = " + "[" * 5000,
    ],
)
def test_a_broken_uv_lock_is_named_with_the_reason(text: str) -> None:
    layers = layers_of(LayerTexts(uv_lock=text), directory="/app", environments=HERE)
    assert layers.uv_lock is None
    ((path, reason),) = layers.unreadable
    assert path == "uv.lock"
    assert reason
    assert "\n" not in reason


@pytest.mark.parametrize(
    "dependencies",
    [
        "3",
        "[3]",
        "[{ name = 3 }]",
        '[{ name = "b", marker = 3 }]',
        '[{ name = "b", extra = 3 }]',
        '[{ name = "b", marker = "((((" }]',
        '[{ name = "b", marker = "python_version < \'x\'" }]',
        '[{ name = "a" }]',
        '[{ name = "b", extra = ["x"] }]',
    ],
)
def test_strange_edges_of_uv_lock_raise_nothing(dependencies: str) -> None:
    text = (
        'version = 1\n[[package]]\nname = "a"\nsource = { virtual = "." }\n'
        f"dependencies = {dependencies}\n"
        '[[package]]\nname = "b"\nversion = "1"\nsource = { registry = "x" }\n'
    )
    layers = layers_of(LayerTexts(uv_lock=text), directory="/app", environments=HERE)
    assert layers.unreadable == ()
    assert layers.uv_lock is not None


@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    texts = LayerTexts(
        pyproject=text,
        uv_lock=text,
        pylocks=(("pylock.toml", text),),
        requirements=(("requirements.x.txt", text),),
    )
    layers = layers_of(texts, directory="/app", environments=HERE)
    assert "uv.lock" in dict(layers.unreadable)


KEYS = st.sampled_from(
    ["package", "name", "version", "source", "dependencies", "tool", "uv", "index"]
)
VALUES = st.recursive(
    st.sampled_from(['"torch"', '"."', "3", "true", '"pypi"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda many: f"[{', '.join(many)}]")
        | st.dictionaries(KEYS, inner, max_size=3).map(
            lambda table: "{ " + ", ".join(f"{k} = {v}" for k, v in table.items()) + " }"
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_no_table_raises(table: dict[str, str]) -> None:
    text = "\n".join(f"{key} = {value}" for key, value in {**table, "version": "1"}.items())
    layers_of(LayerTexts(pyproject=text, uv_lock=text), directory="/app", environments=HERE)


# the folder


def test_the_project_of_a_venv(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(CONFLICTS)
    inside = env(prefix=f"{tmp_path}/.venv")
    assert read_layers(inside).owned
    below = read_layers(env(prefix=f"{tmp_path}/envs/gpu"))
    assert below.directory == str(tmp_path)
    assert not below.owned
    assert read_layers(env(prefix=f"{tmp_path}/a/b/c")).directory == ""
    assert read_layers(env(prefix=f"{tmp_path}/.venv", kind=EnvironmentKind.CONDA)).directory == ""
    assert read_layers(env(prefix="/elsewhere"), directory=str(tmp_path)).owned


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").mkdir()
    (tmp_path / "lockfiles").mkdir()
    (tmp_path / "lockfiles" / "pylock.a.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "lockfiles" / "notes.txt").write_text("torch")
    (tmp_path / "requirements.dev.txt").write_text("pytest>=8\n")
    layers = read_layers(env(prefix=f"{tmp_path}/.venv"))
    assert dict(layers.unreadable).keys() == {"uv.lock", "lockfiles/pylock.a.toml"}
    assert layers.requirements == ()
    assert not layers.has_pyproject


def test_a_lock_that_leads_out_of_an_image_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(CONFLICTS)
    app = tmp_path / "image" / "app"
    app.mkdir(parents=True)
    (app / "uv.lock").symlink_to(secret)
    layers = read_layers(env(root=f"{tmp_path}/image", prefix="/app/.venv"))
    assert layers.uv_lock is None
    assert dict(layers.unreadable).keys() == {"uv.lock"}
