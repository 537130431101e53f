"""What every test shares: the network switch and the profiles of the property tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("thorough", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--online``."""
    parser.addoption("--online", action="store_true", help="also run tests that reach the network")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what reaches the network, unless ``--online`` asks for it."""
    if config.getoption("--online"):
        return
    skip = pytest.mark.skip(reason="reaches the network: run with --online")
    for item in items:
        if item.get_closest_marker("online"):
            item.add_marker(skip)
