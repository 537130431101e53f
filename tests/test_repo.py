"""The rules of the repository itself: sizes, names, and what may not stand in a file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest
from hypothesis import settings

import envbuild

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 300
FORBIDDEN_MODULES = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
GENERATED = {".fuzz", ".hypothesis", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".venv"}
MACHINE_PATH = re.compile(
    r"(?<![\w./}-])/(?:work/(?:main|shared|\.)|farm/|tmp/(?:x|brief)\b|opt/(?:wheels|pypi)"
    r"|root/\.(?:pyenv|config))"
)
LEFT_OVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\.)")


def tracked_files() -> tuple[Path, ...]:
    """Give the files under version control, or all of them where git is not at hand."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z"],  # noqa: S607
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        paths = (ROOT / name for name in listed.split("\0") if name)
    else:
        paths = (path for path in ROOT.rglob("*") if not GENERATED & set(path.parts))
    return tuple(sorted(path for path in paths if path.is_file()))


FILES = tracked_files()
MODULES = tuple(
    path for path in FILES if path.suffix == ".py" and path.is_relative_to(ROOT / "envbuild")
)


def text_of(path: Path) -> str | None:
    """Give a file's text, or None for one that is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    """Give ``file:line: text`` for each match in a text file of the repository."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in FILES
        if path.name != Path(__file__).name
        for number, line in enumerate((text_of(path) or "").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_the_repository_is_seen() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in FILES}
    assert {"pyproject.toml", "envbuild/errors.py", "tests/test_repo.py"} <= names
    assert len(MODULES) > 10


def test_modules_are_short() -> None:
    counted = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in MODULES
    }
    assert {name: count for name, count in counted.items() if count > MAX_LINES} == {}


def test_modules_are_named_for_what_they_hold() -> None:
    parts = {part for path in MODULES for part in (path.stem, *path.relative_to(ROOT).parts[:-1])}
    assert parts & FORBIDDEN_MODULES == set()


def test_package_files_are_empty() -> None:
    full = [
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if path.name == "__init__.py" and path.read_text(encoding="utf-8").strip()
    ]
    assert full == ["envbuild/__init__.py"]


def test_modules_say_what_they_are_for() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if path.name != "__init__.py" and not path.read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []


def test_no_work_is_left_over() -> None:
    assert lines_with(LEFT_OVER) == []


def test_no_path_of_one_machine() -> None:
    assert lines_with(MACHINE_PATH) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cd /wo" + "rk/main", True),
        ('cert = "/root/.config/x"', True),
        ("/opt/wheels", True),
        ("/root/.cache/uv", False),
        ("https://example.org/wo" + "rk/main", False),
        ("src/work/x", False),
        ("/workspace/project", False),
    ],
)
def test_what_a_path_of_one_machine_is(line: str, found: bool) -> None:  # noqa: FBT001
    assert bool(MACHINE_PATH.search(line)) is found


def test_the_installed_package_is_tested() -> None:
    """Either the installed copy is imported, or the distribution says that it is the tree."""
    imported = Path(envbuild.__file__).resolve()
    origin = json.loads(distribution("envbuild").read_text("direct_url.json") or "{}")
    editable = origin.get("dir_info", {}).get("editable", False)
    assert imported.is_relative_to(ROOT / "envbuild") is editable
    assert ("site-packages" in imported.parts) is not editable


def test_the_installed_package_is_of_this_tree() -> None:
    installed = Path(envbuild.__file__).parent
    stale = [
        path.relative_to(ROOT).as_posix()
        for path in FILES
        if path.is_relative_to(ROOT / "envbuild")
        and (installed / path.relative_to(ROOT / "envbuild")).read_bytes() != path.read_bytes()
    ]
    assert stale == []


def test_profiles_of_the_property_tests() -> None:
    assert settings.get_profile("ci").derandomize
    assert not settings.get_profile("thorough").derandomize
    assert settings.get_profile("thorough").max_examples > settings.get_profile("ci").max_examples
