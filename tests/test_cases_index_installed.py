"""Kind index-resolution, as doctor finds it in an environment and its lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from casedoctor import torch_env

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

LOCKED = """\
version = 1
requires-python = ">=3.10"

[[package]]
name = "x"
version = "0"
source = {{ virtual = "." }}
dependencies = [{{ name = "torch" }}]

[[package]]
name = "torch"
version = "2.0.0"
source = {{ registry = "{torch}" }}
dependencies = [{{ name = "torchtriton" }}]

[[package]]
name = "torchtriton"
version = "2.0.0"
source = {{ registry = "{triton}" }}
"""
MANIFEST = '[project]\nname = "x"\nversion = "0"\ndependencies = ["torch"]\n'
WHL = "https://download.pytorch.org/whl/nightly/cu117"
PYPI = "https://pypi.org/simple"


def nightly(folder: Path, version: str) -> MadeEnv:
    """Make a nightly torch of December 2022 with a torchtriton."""
    env = torch_env(folder, "2.0.0+cu117", python="3.10", new_abi=False, requires=["torchtriton"])
    return env.install("torchtriton", version, files={"triton/__init__.py": ""})


def test_idx_h2_doctor_names_the_strategy(doctor: Doctor, tmp_path: Path) -> None:
    torch_env(tmp_path, "2.8.0+cu128")
    setting = '[tool.uv]\nindex-strategy = "unsafe-best-match"\n'
    (tmp_path / "pyproject.toml").write_text(f"{MANIFEST}{setting}", "utf-8")
    answer = doctor(tmp_path, "--fail-on", "warning")
    assert answer.code == 1
    assert 'EB505: pyproject.toml: [tool.uv] has `index-strategy = "unsafe-' in answer.first
    assert "whatever CUDA it is built for" in answer.first


def test_idx_h4_doctor_knows_the_impostor(doctor: Doctor, tmp_path: Path) -> None:
    answer = doctor(nightly(tmp_path, "3.0.0"))
    assert answer.code == 1
    assert answer.first == (
        "error EB113: torchtriton 3.0.0 does not come from PyTorch's index, which alone publishes"
        " it"
    )
    assert "uv pip uninstall" in answer.repair
    assert "change every key and password" in answer.repair


@pytest.mark.parametrize(
    ("torch", "triton", "code"),
    [
        (WHL, PYPI, 1),
        (PYPI, PYPI, 1),
        (WHL, WHL, 0),
        ("https://mirror.example/whl", "https://mirror.example/whl", 0),
    ],
)
def test_idx_h4_doctor_reads_it_from_the_lock(
    doctor: Doctor, tmp_path: Path, *, torch: str, triton: str, code: int
) -> None:
    nightly(tmp_path, "2.0.0")
    (tmp_path / "pyproject.toml").write_text(MANIFEST, "utf-8")
    (tmp_path / "uv.lock").write_text(LOCKED.format(torch=torch, triton=triton), "utf-8")
    answer = doctor(tmp_path, "--select", "EB113")
    assert answer.code == code, answer.out
    if code:
        assert f"uv.lock takes torchtriton 2.0.0 from {triton}" in answer.effects
        assert "[tool.uv.sources]" in answer.repair
        assert "uv sync --directory" not in answer.repair, "it would bring the impostor back"
