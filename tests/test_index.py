"""The local index itself: uv resolves and installs from it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
import uv
from index import CP311, LocalIndex, local_wheel, make_wheel

from envbuild.core.indexpages import flash_attn_page, pyg_page, pypi_page, pytorch_page
from envbuild.model.wheel import WheelFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from envbuild.model.wheel import IndexPage


def run_uv(tmp_path: Path, *arguments: str, stdin: str = "") -> str:
    python = ["--python", sys.executable, "--no-python-downloads", "--no-config"]
    target = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("UV_", "PIP_"))}
    done = subprocess.run(
        [uv.find_uv_bin(), "pip", *arguments, *python, *target],
        input=stdin,
        env=environ | {"UV_CACHE_DIR": str(tmp_path / "cache"), "NO_COLOR": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheels_are_deterministic_and_true() -> None:
    data = make_wheel("torch-scatter", "2.1.2+pt27cu128", CP311, requires=["scipy; extra == 'x'"])
    assert data == make_wheel(
        "torch-scatter", "2.1.2+pt27cu128", CP311, requires=["scipy; extra == 'x'"]
    )
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        assert opened.testzip() is None
        info = "torch_scatter-2.1.2+pt27cu128.dist-info"
        metadata = opened.read(f"{info}/METADATA").decode()
        record = opened.read(f"{info}/RECORD").decode()
        assert {line.split(",")[0] for line in record.splitlines()} == set(opened.namelist())
    assert "Provides-Extra: x\nRequires-Dist: scipy; extra == 'x'\n" in metadata


@pytest.fixture
def index() -> Iterator[LocalIndex]:
    with LocalIndex() as served:
        yield served


def test_uv_compiles_from_simple_and_flat_layouts(tmp_path: Path, index: LocalIndex) -> None:
    torch = local_wheel("torch", "2.7.0+cu128", CP311, requires=["filelock"])
    scatter = local_wheel("torch-scatter", "2.1.2+pt27cu128", CP311)
    index.add_pytorch("cu128", torch)
    index.add_pyg("2.7.0", "cu128", scatter, aliases=["2.7.1"])
    index.add_pypi(local_wheel("filelock", "3.20.0"))
    out = run_uv(
        tmp_path,
        *("compile", "-", "--no-header", "--no-annotate", "--generate-hashes"),
        *("--index", f"{index.base}/whl/cu128", "--default-index", index.urls.pypi or ""),
        *("--find-links", f"{index.base}/pyg/torch-2.7.1+cu128.html"),
        stdin="torch\ntorch-scatter\n",
    )
    assert f"torch==2.7.0+cu128 \\\n    --hash=sha256:{torch.sha256}" in out
    assert f"torch-scatter==2.1.2+pt27cu128 \\\n    --hash=sha256:{scatter.sha256}" in out
    assert index.requests["/whl/cu128/torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl"] == 0


def test_uv_compiles_from_a_flat_mirror_and_a_release(tmp_path: Path, index: LocalIndex) -> None:
    flash = "2.8.3+cu12torch2.7cxx11abiTRUE"
    index.add_flat("cu128", local_wheel("torch", "2.7.0+cu128", CP311))
    index.add_release(
        "2.8.3",
        local_wheel("flash-attn", flash, CP311, requires=["torch"], metadata_version="2.8.3"),
    )
    out = run_uv(
        tmp_path,
        *("compile", "-", "--no-header", "--no-annotate", "--no-index"),
        *("--find-links", f"{index.base}/aliyun/cu128/"),
        *("--find-links", f"{index.base}/flash-attn/expanded_assets/v2.8.3"),
        stdin="flash-attn\n",
    )
    assert out.split() == ["flash-attn==2.8.3+cu12torch2.7cxx11abitrue", "torch==2.7.0+cu128"]


def given(page: IndexPage | None, filename: str, *requires: str) -> WheelFile:
    assert page is not None
    project, version = filename.split("-")[:2]
    return WheelFile(
        project=project.replace("_", "-"),
        version=version,
        filename=filename,
        url="",
        page=page,
        requires_dist=requires,
        sha256="0" * 64,
        metadata_sha256="0" * 64,
    )


def test_uv_installs_from_given_facts(tmp_path: Path, index: LocalIndex) -> None:
    urls = index.urls
    scatter = "torch_scatter-2.1.2+pt27cu128-cp311-cp311-linux_x86_64.whl"
    flash = "flash_attn-2.8.3+cu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"
    index.add_facts(
        [
            given(pytorch_page(urls, "cu128"), f"torch-2.7.0+cu128-{CP311}.whl", "numpy"),
            given(pypi_page(urls), "numpy-2.2.0-3-py3-none-any.whl"),
            given(pyg_page(urls, "2.7.1", "cu128"), scatter, "torch"),
            given(flash_attn_page(urls, "2.8.3"), flash, "torch"),
        ]
    )
    run_uv(
        tmp_path,
        *("install", "torch-scatter", "flash-attn", "--target", str(tmp_path / "site")),
        *("--index", f"{index.base}/whl/cu128", "--default-index", urls.pypi or ""),
        *("--find-links", pyg_page(urls, "2.7.0", "cu128").url),
        *("--find-links", flash_attn_page(urls, "2.8.3").url),
    )
    installed = {path.name for path in (tmp_path / "site").iterdir()}
    assert {"torch", "numpy", "torch_scatter", "flash_attn"} <= installed
