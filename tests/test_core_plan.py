"""The plan of a lock: what must be there, and the steps with their reasons."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.project.manifest import parse_project
from envbuild.core.script.plan import bytes_of, plan_for, sync_options
from envbuild.errors import RefusedError
from envbuild.model.lock import Artifact, Pinned, TargetLock
from envbuild.model.plan import Compile, InstallLock, MakeEnvironment, SelfCheck
from envbuild.model.stack import SourceBuild

if TYPE_CHECKING:
    from envbuild.model.plan import InstallPlan

PROJECT = """\
[project]
name = "demo"
version = "1"
requires-python = "==3.11.*"
dependencies = ["torch"]
[project.optional-dependencies]
train = []
[dependency-groups]
dev = []
tools = []
envbuild = ["ninja"]
[tool.envbuild]
layer = "{layer}"
[tool.envbuild.targets.other]
python = "3.11"
gpus = ["B200"]
[tool.envbuild.targets.cu128]
python = "3.11"
gpus = ["B200", "RTX 5090"]
{more}
"""


def pinned(name: str, version: str, size: int | None = None, host: str = "files.example") -> Pinned:
    file = f"{name}-{version}-py3-none-any.whl"
    artifact = Artifact(filename=file, url=f"https://{host}/{file}", sha256="0" * 64, size=size)
    return Pinned(name=name, version=version, index="", artifacts=(artifact,))


LOCK = TargetLock(
    target="cu128",
    python="3.11",
    platform="linux-x86_64",
    packages=(
        pinned("numpy", "2.2.5", 1000),
        pinned("torch", "2.7.0+cu128", 5000, "torch.example"),
    ),
    gpus=("B200", "RTX 5090"),
    capabilities=("10.0", "12.0"),
    cuda="12.8",
)
POINTOPS = SourceBuild(project="pointops", path="libs/pointops")


def plan(
    lock: TargetLock = LOCK, *, layer: str = "pip", more: str = "", ptx: bool = False
) -> InstallPlan:
    project = parse_project(PROJECT.format(layer=layer, more=more))
    target = next(one for one in project.targets if one.name == lock.target)
    return plan_for("text", lock, project, target, path="lockfiles/pylock.x.toml", ptx=ptx)


def test_the_steps_of_a_lock_without_builds() -> None:
    made = plan()
    assert [type(step) for step in made.steps] == [MakeEnvironment, InstallLock, SelfCheck]
    assert all(step.reason for step in made.steps)
    assert made.lock_sha256 == hashlib.sha256(b"text").hexdigest()
    assert made.variables == ()


def test_what_must_be_there() -> None:
    needs = plan().needs
    assert needs.hosts == ("files.example", "torch.example")
    assert needs.disk_bytes == 12_000
    assert (needs.cuda_major, needs.oldest_nvcc, needs.compiler) == (None, None, False)


def test_a_build_needs_nvcc_and_a_compiler() -> None:
    made = plan(replace(LOCK, builds=(POINTOPS,)))
    assert (made.needs.cuda_major, made.needs.oldest_nvcc) == (12, "12.8")
    assert made.needs.compiler
    assert not made.needs.git
    (step,) = [one for one in made.steps if isinstance(one, Compile)]
    assert step.capabilities == ("10.0", "12.0")
    values = {one.name: one.value for one in made.variables}
    assert values["TORCH_CUDA_ARCH_LIST"] == "10.0;12.0"
    assert values["FORCE_CUDA"] == "1"


def test_ptx_is_an_option() -> None:
    values = {
        one.name: one.value for one in plan(replace(LOCK, builds=(POINTOPS,)), ptx=True).variables
    }
    assert values["TORCH_CUDA_ARCH_LIST"] == "10.0;12.0+PTX"


def test_a_newer_gpu_needs_a_newer_nvcc_of_the_same_major() -> None:
    made = plan(
        replace(
            LOCK,
            capabilities=("12.1",),
            builds=(POINTOPS,),
            packages=(pinned("torch", "2.8.0+cu128"),),
        )
    )
    assert made.needs.oldest_nvcc == "12.9"


@pytest.mark.parametrize(
    ("torch", "cuda", "capability", "why"),
    [
        ("2.5.1+cu124", "12.4", "10.0", "torch 2.5.1 does not take 10.0"),
        ("2.8.0+cu128", "12.8", "11.0", "nvcc of CUDA 12.8 does not compile for 11.0"),
        ("2.9.0+cu130", "13.0", "7.0", "nvcc of CUDA 13.0 does not compile for 7.0"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_its_reason(
    torch: str, cuda: str, capability: str, why: str
) -> None:
    lock = replace(
        LOCK,
        packages=(pinned("torch", torch),),
        cuda=cuda,
        capabilities=(capability,),
        builds=(POINTOPS,),
    )
    with pytest.raises(RefusedError, match=why):
        plan(lock)
    assert plan(replace(lock, builds=())).steps


def test_uv_lock_holds_the_default_target_alone() -> None:
    def by_project(lock: TargetLock) -> bool:
        (step,) = [s for s in plan(lock, layer="project").steps if isinstance(s, InstallLock)]
        return step.by_project

    assert not by_project(LOCK)
    assert by_project(replace(LOCK, target="other"))


def test_groups_and_extras_are_spelled_out() -> None:
    text = PROJECT.format(layer="project", more='extras = ["train"]\ngroups = ["tools"]')
    project = parse_project(text)
    assert sync_options(project, project.targets[1]) == (
        "--no-default-groups",
        *("--extra", "train"),
        *("--group", "tools"),
        *("--group", "dev"),
        *("--group", "envbuild"),
    )


def test_unknown_sizes_are_guessed() -> None:
    assert bytes_of(pinned("torch", "2.7.0")) > bytes_of(pinned("six", "1.17.0")) > 0


@given(st.permutations(["10.0", "12.0", "9.0"]))
def test_the_order_of_the_gpus_is_no_matter(capabilities: list[str]) -> None:
    made = plan(replace(LOCK, capabilities=tuple(capabilities), builds=(POINTOPS,)))
    assert {one.name: one.value for one in made.variables}[
        "TORCH_CUDA_ARCH_LIST"
    ] == "9.0;10.0;12.0"
