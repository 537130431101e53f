"""doctor says nothing of real environments that work: whatever is installed can be imported.

Each is made of PyPI's wheels of a day, in hard links into uv's cache.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from realvenv import make_base

if TYPE_CHECKING:
    from collections.abc import Iterator

    from realvenv import RealVenv

pytestmark = pytest.mark.online

_LACKING = "cannot open shared object file"
_IMPORT = re.compile(r"`import (\w+)`")

IMPORTS = Path(__file__).with_name("importall.py").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What to install, a GPU that it is for, and which imports may fail for what other reason."""

    name: str
    requirements: tuple[str, ...]
    gpu: str = "H100"
    fails: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.name


SMALL = (
    Stack(
        name="science",
        requirements=(
            *("numba", "scipy", "scikit-learn", "pandas", "pyarrow", "h5py"),
            "opencv-python-headless",
        ),
    ),
    Stack(name="cupy", requirements=("cupy-cuda12x",)),
    Stack(name="onnxruntime", requirements=("onnxruntime-gpu",)),
    Stack(name="faiss", requirements=("faiss-cpu",)),
    Stack(
        name="open3d",
        requirements=("open3d",),
        fails=(("matplotlib_inline", "No module named 'matplotlib'"),),
    ),
    Stack(name="opencv", requirements=("opencv-python",)),
    Stack(
        name="readers",
        requirements=(
            *("pillow", "lxml", "psycopg2-binary", "soundfile", "rasterio", "av", "decord", "vtk"),
            *("h5py", "mpi4py", "lightgbm", "xgboost-cpu", "pyodbc", "mujoco", "glfw", "PyOpenGL"),
        ),
    ),
    Stack(
        name="windows",
        requirements=("pyqt5", "pyside6-essentials", "pygame", "polyscope", "pyrealsense2"),
    ),
    Stack(name="ray", requirements=("ray[default]",)),
    Stack(name="tensorflow", requirements=("tensorflow",)),
)
LARGE = (
    Stack(name="jax", requirements=("jax[cuda12]",)),
    Stack(
        name="torch-2.5",
        requirements=("torch==2.5.1", "torchvision==0.20.1", "torchaudio==2.5.1"),
        fails=(("triton", "No module named 'setuptools'"),),  # it does not say that it needs it
    ),
    Stack(
        name="torch-2.7-spconv",
        requirements=("torch==2.7.0", "spconv-cu126"),
    ),
    Stack(
        name="torch-2.8",
        requirements=("torch==2.8.0", "torchvision==0.23.0", "torchaudio==2.8.0"),
    ),
    Stack(
        name="torch-2.15",
        requirements=("torch==2.15.*", "torchvision", "torchaudio", "torchcodec"),
        gpu="B200",
    ),
    Stack(name="xgboost", requirements=("torch==2.8.0", "xgboost")),
    Stack(name="hugging-face", requirements=("transformers", "peft", "accelerate", "bitsandbytes")),
    Stack(name="lightning", requirements=("lightning", "torchmetrics", "tensorboard")),
    Stack(name="graphs", requirements=("torch", "torch-geometric")),
    Stack(name="deepspeed", requirements=("deepspeed",)),
    Stack(
        name="trellis",
        requirements=("torch==2.7.0", "spconv-cu126", "xformers==0.0.30", "numpy"),
    ),
    Stack(
        name="vision-and-medicine",
        requirements=("diffusers", "ultralytics", "monai", "torchvision"),
        gpu="B200",
    ),
    Stack(
        name="torch-family",
        requirements=("torchtune", "torchao", "torchrl", "torchdata", "nvidia-modelopt"),
        gpu="B200",
        fails=(
            # its last release, 0.6.1, names no torchao and wants an old one
            ("torchtune", "No module named 'torchao.dtypes.nf4tensor'"),
            ("recipes", "isn't a package"),  # torchtune's, which refuses on purpose
        ),
    ),
    Stack(name="tensorflow-cuda", requirements=("tensorflow[and-cuda]", "keras")),
    # Alone it brings a cuda-python with files of cuda-bindings: see below.
    Stack(
        name="vllm",
        requirements=("vllm", "cuda-python>=12.9"),
        gpu="B200",
        fails=(("PyNvVideoCodec", "libnvidia-encode.so.1"),),  # of the driver
    ),
    Stack(name="vllm-0.11", requirements=("vllm==0.11.0",)),
    # One environment for three frameworks, each with its own libraries of NVIDIA.
    Stack(
        name="torch-and-jax-and-cupy",
        requirements=(
            *("torch==2.8.0", "jax[cuda12]", "cupy-cuda12x", "keras"),
            *("nvidia-dali-cuda120", "transformer-engine[core_cu12]>=2"),
        ),
        fails=(
            ("keras", "No module named 'tensorflow'"),  # the backend it takes when told nothing
            ("rec2idx", "No module named 'mxnet'"),  # a tool of DALI
            # of 2.20: it looks for a folder that no wheel of CUDA 12 has, with a GPU or without
            ("transformer_engine", "cudart shared object not found"),
        ),
    ),
    Stack(name="rapids", requirements=("cuml-cu12",)),
    Stack(
        name="sglang",
        requirements=("sglang",),
        gpu="B200",
        fails=(  # all but one without a driver
            ("deep_ep", "The NVIDIA driver does not expose a usable CUDA device"),
            ("flash_mla", "Could not load this library"),
            ("sgl_kernel", "Could not load any common_ops library"),
            ("matplotlib_inline", "No module named 'matplotlib'"),
            *(
                (f"torch_memory_saver_hook_mode_{mode}{cuda}", "libcuda.so.1")
                for mode in ("preload", "torch")
                for cuda in ("", "_cu12", "_cu13")
            ),
        ),
    ),
)


@pytest.fixture(name="venv")
def a_venv(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealVenv]:
    """Return an environment of the stack, which is gone after the test."""
    folder = tmp_path / "venv"
    try:
        yield make_base(folder, *request.getfixturevalue("stack").requirements)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("stack", SMALL, ids=str)
def test_what_can_be_imported_is_healthy(stack: Stack, venv: RealVenv) -> None:
    assert_healthy(stack, venv)


@pytest.mark.slow
@pytest.mark.parametrize("stack", LARGE, ids=str)
def test_a_large_stack_that_can_be_imported_is_healthy(stack: Stack, venv: RealVenv) -> None:
    assert_healthy(stack, venv)


@pytest.mark.slow
def test_torchcodec_is_warned_of_only_where_it_cannot_be_imported(tmp_path: Path) -> None:
    venv = make_base(tmp_path / "venv", "torch==2.11.0", "torchcodec==0.11.*")
    primary = json.loads(venv.doctor("--format", "json").out)["primary"]
    failed = json.loads(venv.tries(IMPORTS).out)
    shutil.rmtree(venv.prefix)
    assert [*failed] == ([] if primary is None else ["torchcodec"])
    assert primary is None or "without which `import torchcodec` fails" in primary["message"]


@pytest.mark.slow
def test_xgboost_over_a_torch_of_cuda_13_is_no_false_alarm(tmp_path: Path) -> None:
    venv = make_base(tmp_path / "venv", "torch==2.15.0", "xgboost==3.2.0")
    primary = json.loads(venv.doctor("--format", "json").out)["primary"]
    shutil.rmtree(venv.prefix)
    assert primary["code"] == "EB101"


@pytest.mark.slow
def test_vllm_alone_overwrites_cuda_bindings(tmp_path: Path) -> None:
    """flashinfer-python admits a `cuda-python` with files that `cuda-bindings` has as well.

    Which of the two is installed last is a matter of luck. No check of uv sees it.
    """
    venv = make_base(tmp_path / "venv", "vllm")
    assert venv.is_content()
    primary = json.loads(venv.doctor("--format", "json").out)["primary"]
    fixed = venv.doctor("--fix", "--yes")
    after = venv.tries("import cuda.bindings.nvml, cuda.bindings.runtime, flashinfer")
    shutil.rmtree(venv.prefix)
    assert primary["code"] == "EB111"
    assert "cuda-python 12.6.2.post1" in primary["message"]
    assert "cuda-bindings 13.5.0" in primary["message"]
    assert (fixed.first.partition(":")[0], after.state) == ("healthy", "works")


def assert_healthy(stack: Stack, venv: RealVenv) -> None:
    """Nothing is said but of the imports that fail for want of a library of the system."""
    failed = json.loads(venv.tries(IMPORTS).out)
    for name, reason in stack.fails:
        assert reason in failed.pop(name, reason)
    lacking = {name for name, reason in failed.items() if _LACKING in reason}
    for words in ((), ("--gpu", stack.gpu)):
        done = venv.doctor(*words, "--format", "json")
        told = json.loads(done.out)
        problems = [
            one
            for one in (told["primary"], *(o["cause"] for o in told["others"]))
            if one is not None
        ]
        assert {one["code"] for one in problems} <= {"EB309"}, done.out
        assert {name for one in problems for name in _IMPORT.findall(one["message"])} == lacking
        assert (done.error, told["consequences"]) == ("", [])
        assert bool(done.code) == any(one["severity"] == "error" for one in problems)
    assert failed.keys() == lacking
