"""Kind driver-too-old: a torch for a CUDA that the machine's driver does not run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from answers import best, pins, refused
from casedoctor import PLAIN, card, torch_env
from fakes import target

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor

A100 = (card("NVIDIA A100", "8.0"),)


@pytest.mark.parametrize(
    ("torch", "driver", "said", "taken"),
    [
        pytest.param(
            "2.11.0+cu130",
            "570.86.10",
            "torch 2.11.0+cu130 (CUDA 13.0) needs driver 580 or newer, found 570.86.10",
            "torch==2.11.0+cu129",
            id="drv_h1",
        ),
        pytest.param(
            "2.1.0+cu121",
            "470.86",
            "torch 2.1.0+cu121 (CUDA 12.1) needs driver 525.60.13 or newer, found 470.86",
            "torch==2.1.0+cu118",
            id="drv_h2",
        ),
        pytest.param(
            "2.9.1+cu130",
            "576.02",
            "torch 2.9.1+cu130 (CUDA 13.0) needs driver 580 or newer, found 576.02",
            "torch==2.9.1+cu12",
            id="drv_h4",
        ),
    ],
)
def test_a_driver_of_the_major_before(
    doctor: Doctor, tmp_path: Path, *, torch: str, driver: str, said: str, taken: str
) -> None:
    env = torch_env(tmp_path, torch, metadata=torch.partition("+")[0])
    answer = doctor(env, host=replace(PLAIN, driver=driver, gpus=A100))
    assert answer.code == 1
    assert answer.first == f"error EB403: {said}"
    assert taken in answer.repair
    assert "--index https://download.pytorch.org/whl/cu1" in answer.repair
    assert "or update the driver to" in answer.effects


@pytest.mark.parametrize(
    ("torch", "changes"),
    [
        ("2.11.0+cu130", {"driver": "580.65.06"}),
        ("2.11.0+cu130", {"driver": "570.86.10", "compat_driver": "580.82.07"}),
        ("2.8.0+cu128", {"driver": "525.85.12"}),
        ("2.11.0+cu130", {}),
    ],
)
def test_a_driver_that_will_do_or_none(
    doctor: Doctor, tmp_path: Path, torch: str, changes: dict[str, str]
) -> None:
    """Within a CUDA major every driver runs the code of every release; CI has no driver at all."""
    host = replace(PLAIN, gpus=A100 if changes else (), **changes)  # type: ignore[arg-type]
    answer = doctor(torch_env(tmp_path, torch), "--fail-on", "note", host=host)
    assert answer.code == 0, answer.out


def test_drv_h3_a_wider_range_does_not_leave_the_driver_behind() -> None:
    where = target("8.0", driver=">=575")
    assert pins(best(where, "torch<2.13", "torchvision"))["torch"].partition("+cu")[2][:2] == "12"
    assert "+cu13" in pins(best(target("8.0", driver=">=580"), "torch<2.13"))["torch"]


def test_drv_h3_a_build_that_the_driver_cannot_run_is_refused_with_the_reason() -> None:
    error = refused(target("8.0", driver=">=575"), "torch==2.12.1+cu130")
    assert "driver" in error.message
    assert "580" in f"{error.message} {error.hint}"
