"""What is read of the small files of an environment; whatever bytes are in them."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from envmaker import torch_version_text
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from envbuild.core.distinfo import (
    EntryName,
    Origin,
    parse_conda_name,
    parse_direct_url,
    parse_entry_name,
    parse_installed_files,
    parse_installer,
    parse_requires_txt,
    parse_wheel_tags,
)
from envbuild.core.pthfile import PthFile, parse_pth
from envbuild.core.pyvenv import PyvenvConfig, parse_pyvenv
from envbuild.core.recordfile import parse_record
from envbuild.core.torchversion import parse_torch_version
from envbuild.errors import WorldError
from envbuild.model.installed import TorchText

ANY_TEXT = st.text(max_size=300)


@pytest.mark.parametrize(
    ("entry", "name", "version"),
    [
        ("torch-2.7.0+cu128.dist-info", "torch", "2.7.0+cu128"),
        ("nvidia_nccl_cu12-2.26.2.dist-info", "nvidia-nccl-cu12", "2.26.2"),
        ("Jinja2-3.1.egg-info", "jinja2", "3.1"),
        ("pointops-1.0-py3.11-linux-x86_64.egg", "pointops", "1.0"),
        ("pointops-1.0-py3.11.egg-info", "pointops", "1.0"),
        ("detectron2.egg-info", "detectron2", ""),
        ("zope.interface-6.0.dist-info", "zope-interface", "6.0"),
        ("_x-1.0.dist-info", "x", "1.0"),
    ],
)
def test_entry_names(entry: str, name: str, version: str) -> None:
    assert parse_entry_name(entry) == EntryName(name=name, version=version)


@pytest.mark.parametrize(
    "entry", ["torch", "torch.py", "~orch-2.0.dist-info", "-1.0.dist-info", ".dist-info", "a.json"]
)
def test_what_is_no_entry(entry: str) -> None:
    assert parse_entry_name(entry) is None


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("mkl-2024.1.0-ha957f24_693.json", EntryName(name="mkl", version="2024.1.0")),
        ("libstdcxx-ng-11.2.0-h1.json", EntryName(name="libstdcxx-ng", version="11.2.0")),
        ("tzdata-2024_a-0.json", EntryName(name="tzdata", version="2024_a")),
        ("history", None),
        ("x.json", None),
    ],
)
def test_conda_names(entry: str, found: EntryName | None) -> None:
    assert parse_conda_name(entry) == found


def test_wheel_tags() -> None:
    text = "Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\r\ntag: py3-none-any\nTag:\n"
    assert parse_wheel_tags(text) == ("cp311-cp311-linux_x86_64", "py3-none-any")


@pytest.mark.parametrize(("text", "found"), [("uv\n", "uv"), ("", ""), (" pip x", "pip")])
def test_installer(text: str, found: str) -> None:
    assert parse_installer(text) == found


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (
            {"url": "https://u:p@h.org/a.whl", "archive_info": {}},
            Origin(url="https://h.org/a.whl", kind="archive"),
        ),
        (
            {"url": "file:///a.whl", "archive_info": {"hashes": {"sha256": "AB" * 32}}},
            Origin(url="file:///a.whl", kind="archive", sha256="ab" * 32),
        ),
        (
            {"url": "file:///a.whl", "archive_info": {"hash": f"sha256={'ab' * 32}"}},
            Origin(url="file:///a.whl", kind="archive", sha256="ab" * 32),
        ),
        (
            {"url": "file:///a.whl", "archive_info": {"hashes": [], "hash": "md5=0"}},
            Origin(url="file:///a.whl", kind="archive"),
        ),
        (
            {"url": "https://h.org/a", "vcs_info": {"vcs": "git"}},
            Origin(url="https://h.org/a", kind="checkout"),
        ),
        (
            {"url": "file:///src", "dir_info": {"editable": True}},
            Origin(url="file:///src", editable=True, kind="folder"),
        ),
        ({"url": "file:///src", "dir_info": []}, Origin(url="file:///src", kind="folder")),
    ],
)
def test_direct_url(data: object, found: Origin) -> None:
    assert parse_direct_url(json.dumps(data)) == found


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": 1}', '{"url": ""}', "[" * 100_000])
def test_what_is_no_direct_url(text: str) -> None:
    with pytest.raises(WorldError, match=r"`direct_url\.json`"):
        parse_direct_url(text)


def test_requirements_of_an_egg() -> None:
    text = "numpy>=1.20\n\n[:python_version < '3.8']\ntyping\n\n[test]\npytest\n"
    text += '[x:sys_platform == "linux" or os_name == "nt"]\na\n'
    found = parse_requires_txt(text)
    assert found == (
        "numpy>=1.20",
        "typing; python_version < '3.8'",
        'pytest; extra == "test"',
        'a; (sys_platform == "linux" or os_name == "nt") and extra == "x"',
    )
    assert [Requirement(one).name for one in found] == ["numpy", "typing", "pytest", "a"]


def test_installed_files_are_lines_of_a_record() -> None:
    lines = parse_installed_files("../a/b.py\nPKG-INFO\n../../../../bin/a\n", info="a.egg-info")
    found = parse_record(lines, site="/v/lib/python3.11/site-packages", prefix="/v")
    paths = [entry.path for entry in found.entries]
    assert paths == ["a/b.py", "a.egg-info/PKG-INFO", "/v/bin/a"]


@pytest.mark.parametrize("cuda", ["13.0", None])
def test_torch_version(cuda: str | None) -> None:
    text = torch_version_text("2.11.0+cu130", cuda, git="abc")
    assert parse_torch_version(text) == TorchText(version="2.11.0+cu130", cuda=cuda, git="abc")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "__version__ = '1.13.1'\ndebug = False\ncuda = '11.7'",
            TorchText(version="1.13.1", cuda="11.7"),
        ),
        (
            '__version__="2.0"  # x\r\ncuda: str | None = None\r\n',
            TorchText(version="2.0", cuda=None),
        ),
        (
            "__version__ = '2.5'\nhip: Optional[str] = '6.2'\n",
            TorchText(version="2.5", cuda=None, hip="6.2"),
        ),
        ("__version__ = '2.5'\nif True:\n  cuda = '12'\n", TorchText(version="2.5", cuda=None)),
    ],
)
def test_other_torch_versions(text: str, found: TorchText) -> None:
    assert parse_torch_version(text) == found


@pytest.mark.parametrize(
    "text",
    ["", "__version__ = version()", "__version__ = None", "__version__ = f'{x}'", "__version__='"],
)
def test_torch_without_a_version(text: str) -> None:
    with pytest.raises(WorldError, match="assigns no text to `__version__`"):
        parse_torch_version(text)


def test_pyvenv_of_uv() -> None:
    text = "home = /usr/bin\nimplementation = CPython\nuv = 0.13.9\nversion_info = 3.11.7\n"
    text += "include-system-site-packages = false\nprompt = x\n"
    assert parse_pyvenv(text) == PyvenvConfig(
        home="/usr/bin", version="3.11.7", implementation="cpython", creator="uv"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("version_info = 3.13.0.final.0\nvirtualenv=20", "3.13.0"),
        ("VERSION = 3.10.2", "3.10.2"),
        ("version = 3.15.0a2", "3.15.0a2"),
        ("version = three", ""),
        ("nothing", ""),
    ],
)
def test_versions_of_pyvenv(text: str, found: str) -> None:
    assert parse_pyvenv(text).version == found


def test_system_site_packages() -> None:
    assert parse_pyvenv("include-system-site-packages = TRUE\n").system_site


def test_pth() -> None:
    text = "\ufeff# a\n\n/src\n../x \nimport sys; sys.exit()\nimport\tos\nimportant\n"
    assert parse_pth(text) == PthFile(
        paths=("/src", "../x", "important"), imports=("import sys; sys.exit()", "import\tos")
    )


@given(ANY_TEXT)
def test_any_text(text: str) -> None:
    parse_entry_name(f"{text}.dist-info")
    parse_conda_name(f"{text}.json")
    parse_wheel_tags(text)
    parse_installer(text)
    parse_requires_txt(text)
    parse_installed_files(text, info="x.egg-info")
    parse_pyvenv(text)
    parse_pth(text)
    for parse in (parse_direct_url, parse_torch_version):
        with suppress(WorldError):
            parse(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | ANY_TEXT, st.lists))
def test_any_json(data: object) -> None:
    for value in (data, {"url": data}, {"url": "file:///x", "dir_info": {"editable": data}}):
        with suppress(WorldError):
            assert parse_direct_url(json.dumps(value)).url


LITERAL = st.text(alphabet=st.characters(codec="ascii", categories=["L", "N"]), min_size=1)


@given(LITERAL, st.none() | LITERAL)
def test_torch_version_reads_what_torch_writes(version: str, cuda: str | None) -> None:
    found = parse_torch_version(torch_version_text(version, cuda, git="g"))
    assert (found.version, found.cuda, found.git) == (version, cuda, "g")
