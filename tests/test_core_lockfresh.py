"""Whether a lock has the torch and the CUDA that its target asks for."""

from __future__ import annotations

import pytest

from envbuild.core.lockfresh import input_reasons
from envbuild.core.project.manifest import parse_project
from envbuild.model.lock import Pinned, TargetLock

PROJECT = """\
[project]
name = "demo"
version = "0.1"
dependencies = ["torch"]
[tool.envbuild]
layer = "pip"
[tool.envbuild.targets.t]
python = "3.11"
"""


def reasons(keys: str, *, torch: str, cuda: str | None) -> tuple[str, ...]:
    project = parse_project(f"{PROJECT}{keys}\n")
    pinned = Pinned(name="torch", version=torch, index="https://h.org/simple", artifacts=())
    lock = TargetLock(
        target="t", python="3.11", platform="linux-x86_64", packages=(pinned,), cuda=cuda
    )
    return input_reasons(project, project.targets[0], lock, document={})


@pytest.mark.parametrize(
    ("keys", "torch", "cuda"),
    [
        ("", "2.11.0+cpu", None),
        ("", "2.11.0", "13.0"),
        ('cuda = "12.8"', "2.7.0+cu128", "12.8"),
        ('cuda = ">=12.6,<13"\ntorch = "2.7.*"', "2.7.0+cu128", "12.8"),
        ('torch = "2.7.0"', "2.7.0+cpu", None),
    ],
)
def test_a_torch_that_the_target_admits(keys: str, torch: str, cuda: str | None) -> None:
    assert reasons(keys, torch=torch, cuda=cuda) == ()


@pytest.mark.parametrize(
    ("keys", "torch", "cuda", "said"),
    [
        ("", "2.7.0+cu128", "12.8", "the lock is for CUDA 12.8, the target for the CPU"),
        ('cuda = "12.8"', "2.7.0+cpu", None, "the lock is for the CPU, the target for CUDA"),
        ('cuda = "12.8"', "2.7.0", "12.6", "the lock is for CUDA 12.6, the target for CUDA"),
        ('torch = "2.8.*"', "2.7.0+cpu", None, "the lock has torch 2.7.0+cpu, the target wants"),
    ],
)
def test_a_torch_that_it_does_not(keys: str, torch: str, cuda: str | None, said: str) -> None:
    (reason,) = reasons(keys, torch=torch, cuda=cuda)
    assert reason.startswith(said)
