"""Kind hollow-extension: a package that is installed without the part that it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from casedoctor import OLD_ERROR, extension, library, torch_env

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor

CP311 = "cp311-cp311-linux_x86_64"


@pytest.mark.parametrize("name", ["torch-cluster", "torch-sparse"])
def test_cpu_h1_only_the_part_for_the_cpu(doctor: Doctor, tmp_path: Path, name: str) -> None:
    folder, version = name.replace("-", "_"), {"torch-cluster": "1.6.3"}.get(name, "0.6.18")
    env = torch_env(tmp_path, "2.1.0+cu121", new_abi=False)
    files = {f"{folder}/__init__.py": "", **extension(f"{folder}/_knn_cpu.so", OLD_ERROR)}
    env.install(name, version, files=files, tag=CP311)
    answer = doctor(env)
    assert answer.code == 1
    assert answer.first == (
        f"error EB109: {name} {version} has only *_cpu.so (wheel tag {CP311}), found torch"
        " 2.1.0+cu121"
    )
    assert "it ends with `Not compiled with CUDA support`" in answer.effects
    assert f"{name}=={version}+pt21cu121" in answer.repair
    assert "https://data.pyg.org/whl/torch-2.1.0+cu121.html" in answer.repair


def test_cpu_h1_trap_a_torch_without_cuda(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.1.0+cpu", new_abi=False, archs="")
    files = {"torch_cluster/__init__.py": "", **extension("torch_cluster/_knn_cpu.so", OLD_ERROR)}
    env.install("torch-cluster", "1.6.3+pt21cpu", files=files, tag=CP311)
    assert doctor(env, "--fail-on", "note").code == 0


def test_cpu_h2_a_shell_of_python_alone(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.8.0+cu128", metadata="2.8.0")
    files = {"flash_attn/__init__.py": "import flash_attn_2_cuda\n"}
    answer = doctor(env.install("flash-attn", "2.8.3", files=files, requires=["torch"]))
    assert answer.code == 1
    assert answer.first == (
        "error EB109: flash-attn 2.8.3 has no compiled part (wheel tag py3-none-any), found torch"
        " 2.8.0+cu128"
    )
    assert "FLASH_ATTENTION_SKIP_CUDA_BUILD packs the Python files alone" in answer.effects
    assert "`cu12torch2.8cxx11abiTRUE`" in answer.repair


@pytest.mark.parametrize("compiled", [False, True])
def test_cpu_h3_operators_that_were_left_out(
    doctor: Doctor, tmp_path: Path, *, compiled: bool
) -> None:
    env = torch_env(tmp_path, "2.9.1+cu128", python="3.12")
    files: dict[str, bytes | str] = {"mmcv/__init__.py": "", "mmcv/ops/__init__.py": ""}
    if compiled:
        files["mmcv/_ext.cpython-312-x86_64-linux-gnu.so"] = library("_ext", "PyInit__ext")
    answer = doctor(env.install("mmcv", "2.2.0", files=files))
    assert answer.code == int(not compiled), answer.out
    if not compiled:
        assert "mmcv 2.2.0 has no compiled part" in answer.first
        assert "built without torch at hand" in answer.effects
        assert "uv pip install 'setuptools<82' && MMCV_WITH_OPS=1 FORCE_CUDA=1" in answer.repair
        assert "--no-build-isolation" in answer.repair
        assert answer.repair.endswith(" mmcv==2.2.0")
