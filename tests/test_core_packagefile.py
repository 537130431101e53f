"""The data files that come with envbuild."""

from __future__ import annotations

import pytest

from envbuild.core.packagefile import package_bytes, package_text


def test_a_file_of_a_package() -> None:
    assert "capabilities" in package_text("envbuild.core", "gpus.toml")
    assert package_bytes("envbuild.core", "gpus.toml").decode() == package_text(
        "envbuild.core", "gpus.toml"
    )


def test_no_such_file() -> None:
    with pytest.raises(FileNotFoundError):
        package_text("envbuild.core", "no-such-file")
