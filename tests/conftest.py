"""What every test shares: the network switch, the profiles of the property tests, the world."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from casedoctor import Doctor
from hypothesis import settings
from index import LocalIndex
from lockworld import World, populate

from envbuild.catalog.reader import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "thorough", derandomize=False, max_examples=2000, deadline=None, print_blob=True
)
settings.load_profile("ci")


# NOTE: nox and uv tell every uv that is started below them which environment is the project's. A
# test's uv must not act on the environment that runs the tests.
for _name in ("UV_PROJECT_ENVIRONMENT", "UV_PROJECT", "UV_PYTHON", "UV_WORKING_DIR", "VIRTUAL_ENV"):
    os.environ.pop(_name, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--online``."""
    parser.addoption("--online", action="store_true", help="also run tests that reach the network")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what reaches the network and what repeats for long, unless it is asked for."""
    is_online = config.getoption("--online")
    is_slow = "slow" in config.getoption("markexpr")
    for item in items:
        if item.get_closest_marker("online"):
            if not is_online:
                item.add_marker(pytest.mark.skip(reason="reaches the network: run with --online"))
        elif item.get_closest_marker("slow") and not is_slow:
            item.add_marker(pytest.mark.skip(reason="repeats for minutes: run with -m slow"))


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """Return the embedded catalog."""
    return Catalog.load()


@pytest.fixture(scope="session")
def shared_index(catalog: Catalog) -> Iterator[LocalIndex]:
    """Serve the world's wheels; no test changes it."""
    with LocalIndex() as index:
        populate(index, catalog)
        yield index


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the caches of everything that locks over the shared index."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(name="world")
def a_world(
    shared_index: LocalIndex, shared_cache: Path, catalog: Catalog, tmp_path: Path
) -> World:
    """Return an empty project in front of the shared index."""
    root = tmp_path / "project"
    root.mkdir()
    return World(index=shared_index, root=root, cache=shared_cache, catalog=catalog)


@pytest.fixture(name="own_world")
def a_world_of_its_own(catalog: Catalog, tmp_path: Path) -> Iterator[World]:
    """Return an empty project with an index and caches that the test may change."""
    root = tmp_path / "project"
    root.mkdir()
    with LocalIndex() as index:
        populate(index, catalog)
        yield World(index=index, root=root, cache=tmp_path / "cache", catalog=catalog)


@pytest.fixture(name="doctor")
def a_doctor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Doctor:
    """Return `envbuild doctor` in this process and in an empty folder, with no active venv."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Doctor(capsys=capsys)
