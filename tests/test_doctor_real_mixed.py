"""doctor on real environments that were mixed up without touching torch's own files.

Two builds of one package side by side, a part of another release, a package for another numpy or
CUDA. As in test_doctor_real.py, what is tried fails before the repair and works after it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from realvenv import make_base

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from realvenv import RealVenv

pytestmark = pytest.mark.online

PROVIDERS = "import onnxruntime as o; assert 'CUDAExecutionProvider' in o.get_available_providers()"
# Without a GPU every plug-in of JAX fails, but only one of another release for this reason.
PLUGIN = (
    "import io, logging, jax; said = io.StringIO();"
    " logging.getLogger('jax').addHandler(logging.StreamHandler(said)); jax.devices();"
    " assert 'register_custom_type_id_handler' not in said.getvalue()"
)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """What is installed one after another, what is taken away again, and what doctor says.

    ``first`` is the beginning of the cause and ``repair`` the last words of each command.
    """

    name: str
    installs: tuple[tuple[str, ...], ...]
    removes: tuple[str, ...] = ()
    trying: str
    reason: str
    first: str
    repair: tuple[str, ...]
    is_content: bool = True

    def __str__(self) -> str:
        return self.name


SMALL = (
    Mixture(
        name="both-onnxruntimes",
        installs=(("onnxruntime-gpu==1.31.1",), ("onnxruntime==1.32.0",)),
        trying=PROVIDERS,
        reason="AssertionError",
        first="error EB111: onnxruntime 1.32.0 and onnxruntime-gpu 1.31.1 both own `onnxruntime/`",
        repair=("onnxruntime", "onnxruntime-gpu==1.31.1"),
    ),
    Mixture(
        name="the-other-onnxruntime-removed",
        installs=(("onnxruntime-gpu==1.31.1",), ("onnxruntime==1.32.0",)),
        removes=("onnxruntime",),
        trying=PROVIDERS,
        reason="AttributeError: module 'onnxruntime' has no attribute",
        first="error EB202: onnxruntime-gpu 1.31.1: onnxruntime/capi/",
        repair=("onnxruntime-gpu==1.31.1",),
    ),
    Mixture(
        name="the-other-opencv-removed",
        installs=(("opencv-python",), ("opencv-python-headless==5.0.0.93",)),
        removes=("opencv-python",),
        trying="import cv2",
        reason="ModuleNotFoundError: No module named 'cv2'",
        first="error EB202: opencv-python-headless 5.0.0.93: cv2/cv2.abi3.so is gone, as opencv-",
        repair=("opencv-python-headless==5.0.0.93",),
    ),
    Mixture(
        name="numpy-2-under-an-old-pandas",
        installs=(("pandas==2.0.3", "numpy<2"), ("numpy==2.*",)),
        trying="import pandas",
        reason="ValueError: numpy.dtype size changed, may indicate binary incompatibility",
        first="error EB108: pandas 2.0.3 is compiled against numpy 1, found numpy 2.4.6",
        repair=("'numpy<2'",),
    ),
    Mixture(
        name="a-plug-in-of-another-jax",
        installs=(
            ("jax==0.10.2", "numpy"),
            ("--no-deps", "jax-cuda12-plugin==0.5.3", "jax-cuda12-pjrt==0.5.3"),
        ),
        trying=PLUGIN,
        reason="AssertionError",
        first="warning EB106: jax 0.10.2 requires `jax-cuda12-plugin[with-cuda]<=0.10.2,>=0.10.2`",
        repair=("'jax-cuda12-plugin[with-cuda]<=0.10.2,>=0.10.2'",),
    ),
    Mixture(
        name="a-jaxlib-of-another-jax",
        installs=(("jax==0.10.2", "numpy"), ("--no-deps", "jaxlib==0.5.3")),
        trying="import jax",
        reason="RuntimeError: jaxlib is version 0.5.3, but this version of jax requires version",
        first="warning EB106: jax 0.10.2 requires `jaxlib<=0.10.2,>=0.10.1`, found 0.5.3",
        repair=("'jaxlib<=0.10.2,>=0.10.1'",),
        is_content=False,
    ),
    Mixture(
        name="cuda-python-over-cuda-bindings",  # as vLLM's requirements admit both
        installs=(("cuda-bindings==13.5.0",), ("cuda-python==12.6.2.post1",)),
        trying="import cuda.bindings.nvml",
        reason="ImportError: cuda.bindings._internal.utils does not export expected C function",
        first="error EB111: cuda-bindings 13.5.0 and cuda-python 12.6.2.post1 both own `cuda/`",
        repair=("'cuda-python>=12.9,==13.*'",),
    ),
    Mixture(
        name="two-cupys",
        installs=(("cupy-cuda12x==14.2.0",), ("cupy-cuda11x==13.6.0",)),
        trying="import cupy; assert cupy.__version__ == '14.2.0'",
        reason="AssertionError",
        first="error EB201: cupy-cuda11x 13.6.0 and cupy-cuda12x 14.2.0 own cupy/",
        repair=("cupy-cuda11x", "cupy-cuda12x==14.2.0"),
    ),
)
WITH_TORCH = (
    Mixture(
        name="cublas-removed",
        installs=(),
        removes=("nvidia-cublas-cu12",),
        trying="import torch",
        reason="ImportError: libcublas.so.12: cannot open shared object file",
        first="error EB106: torch 2.8.0 requires `nvidia-cublas-cu12==12.8.4.1`, found none",
        repair=("nvidia-cublas-cu12==12.8.4.1",),
        is_content=False,
    ),
    Mixture(
        name="a-torchvision-of-another-torch",
        installs=(("--no-deps", "torchvision==0.22.0", "numpy", "pillow"),),
        trying="import torchvision; torchvision.ops.nms",
        reason="RuntimeError: operator torchvision::nms does not exist",
        first="error EB103: torchvision 0.22.0 is made for torch >=2.7,<2.8, found torch 2.8.0",
        repair=("torchvision==0.23.0",),
        is_content=False,
    ),
    Mixture(
        name="a-bitsandbytes-of-before-this-cuda",
        installs=(("--no-deps", "bitsandbytes==0.43.3", "numpy", "packaging"),),
        trying="import bitsandbytes",
        reason="ModuleNotFoundError: No module named 'triton.ops'",
        first="error EB406: bitsandbytes 0.43.3 has no libbitsandbytes_cuda128.so",
        repair=("'bitsandbytes>=0.45.3'",),
    ),
)


@pytest.fixture(scope="module")
def torch280(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealVenv]:
    """Return a venv with torch 2.8.0 (CUDA 12) that no test changes."""
    folder = tmp_path_factory.mktemp("base") / "venv"
    yield make_base(folder, "torch==2.8.0")
    shutil.rmtree(folder)


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that is gone after the test."""
    yield tmp_path / "made"
    shutil.rmtree(tmp_path / "made")


@pytest.mark.parametrize("mixture", SMALL, ids=str)
def test_a_mixture(mixture: Mixture, folder: Path) -> None:
    assert_mended(mixture, make_base(folder, *mixture.installs[0]), *mixture.installs[1:])


@pytest.mark.parametrize("mixture", WITH_TORCH, ids=str)
def test_a_mixture_with_torch(mixture: Mixture, torch280: RealVenv, folder: Path) -> None:
    assert_mended(mixture, torch280.copy(folder), *mixture.installs)


def assert_mended(mixture: Mixture, venv: RealVenv, *more: tuple[str, ...]) -> None:
    for words in more:
        venv.install(*words)
    if mixture.removes:
        venv.uninstall(*mixture.removes)
    assert venv.is_content() is mixture.is_content
    told = venv.mend(trying=mixture.trying)
    assert (told.before.code, mixture.reason in told.before.error) == (1, True), told.before
    assert told.found.first.startswith(mixture.first), told.found
    assert tuple(words.split()[-1] for words in told.repair) == mixture.repair
    assert (told.fixed.code, told.fixed.first.partition(":")[0]) == (0, "healthy"), told.fixed
    assert told.after.code == 0, told.after.error
