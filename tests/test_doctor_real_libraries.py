"""Real environments in which a library of NVIDIA is older than its users: found and mended."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from realvenv import make_base

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.online


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that is gone after the test, since gigabytes may lie in it."""
    yield tmp_path / "made"
    shutil.rmtree(tmp_path / "made")


def test_an_nvjitlink_that_is_older_than_cusparse(folder: Path) -> None:
    venv = make_base(folder, "torch==2.8.0").install("--no-deps", "nvidia-nvjitlink-cu12==12.6.85")
    told = venv.mend(trying="import torch")
    assert "undefined symbol: __nvJitLinkCreate_12_8" in told.before.reason
    assert told.found.first == (
        "error EB301: nvidia-cusparse-cu12 12.5.8.93 needs 8 symbols that `libnvJitLink.so.12` does"
        " not define, the newest needs nvJitLink 12.8.61 or later; torch pins"
        " `nvidia-nvjitlink-cu12==12.8.93`"
    )
    (install,) = told.repair
    assert install.endswith(" nvidia-nvjitlink-cu12==12.8.93")
    assert (told.fixed.first.partition(":")[0], told.after.code) == ("healthy", 0)


def test_a_cudnn_that_is_older_than_torch(folder: Path) -> None:
    """It has every symbol, and torch refuses it when it asks for its version."""
    venv = make_base(folder, "torch==2.8.0").install("--no-deps", "nvidia-cudnn-cu12==9.1.0.70")
    told = venv.mend(trying="import torch; torch.backends.cudnn.version()")
    assert "cuDNN version incompatibility" in told.before.reason
    assert told.found.first == (
        "warning EB106: torch 2.8.0 requires `nvidia-cudnn-cu12==9.10.2.21`, found 9.1.0.70"
    )
    assert "EB301" not in told.found.out
    assert "`cuDNN version incompatibility`" in told.found.out
    assert (told.fixed.first.partition(":")[0], told.after.code) == ("healthy", 0)
