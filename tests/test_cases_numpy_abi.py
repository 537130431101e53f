"""Kind numpy-abi: what is compiled against numpy 1 beside numpy 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from casedoctor import library, torch_env
from envmaker import EnvMaker
from index import local_wheel, make_sdist
from lockworld import pyproject

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from lockworld import World


def test_npy_h1_a_torch_from_before_numpy_2(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.2.2+cu121", metadata="2.2.2", new_abi=False, python="3.10")
    answer = doctor(env.install("numpy", "2.0.0"))
    assert answer.code == 1
    assert answer.first == (
        "error EB108: torch 2.2.2 is compiled against numpy 1, found numpy 2.0.0"
    )
    assert answer.repair.endswith("--reinstall-package numpy 'numpy<2'")


@pytest.mark.parametrize(("torch", "numpy"), [("2.3.0", "2.0.0"), ("2.2.2", "1.26.4")])
def test_npy_h1_trap_either_is_of_one_age(
    doctor: Doctor, tmp_path: Path, torch: str, numpy: str
) -> None:
    env = torch_env(tmp_path, f"{torch}+cu121", metadata=torch, new_abi=False, python="3.10")
    answer = doctor(env.install("numpy", numpy), "--fail-on", "note")
    assert answer.code == 0, answer.out


@pytest.mark.parametrize(("opencv", "code"), [("4.9.0.80", 1), ("4.10.0.84", 0)])
def test_npy_h2_an_opencv_from_before_numpy_2(
    doctor: Doctor, tmp_path: Path, opencv: str, code: int
) -> None:
    env = EnvMaker(tmp_path).venv(python="3.12").install("numpy", "2.1.3")
    files = {"cv2/__init__.py": "", "cv2/cv2.abi3.so": library("cv2", "PyInit_cv2")}
    tag = "cp37-abi3-manylinux_2_17_x86_64"
    requires = ["numpy>=1.21.2"]
    env.install("opencv-python", opencv, files=files, requires=requires, tag=tag)
    answer = doctor(env)
    assert answer.code == code, answer.out
    if code:
        assert answer.first == (
            "error EB108: opencv-python 4.9.0.80 is compiled against numpy 1, found numpy 2.1.3"
        )
        assert "`numpy<2`, or `opencv-python>=4.10.0.84`" in answer.effects
        assert "'numpy<2'" in answer.repair


def test_npy_h3_a_bound_that_no_wheel_for_the_python_satisfies(own_world: World) -> None:
    """A numpy from before the Python has only its sdist there, which will not compile."""
    own_world.index.add_sdist("numpy", "1.21.0", make_sdist("numpy", "1.21.0"))
    own_world.index.add_pypi(
        local_wheel("numpy", "1.21.0", "cp310-cp310-manylinux_2_17_x86_64"),
        local_wheel("torch-points-kernels", "0.7.0", requires=("torch", "numpy<=1.21")),
    )
    own_world.write(pyproject("torch-points-kernels"))
    (target,) = own_world.lock().targets
    found = {one.code: one for one in target.findings}
    assert "numpy 1.21.0 has no wheel for Python 3.11" in found["EB105"].message
    assert found["EB105"].hint == "it has wheels for Python 3.10"
