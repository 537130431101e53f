"""Which builds of torch a target could take, and in which order."""

from __future__ import annotations

import dataclasses

import pytest
from fakes import FakeFacts, FakeSource, code, context, cuda, linux, target, wheel
from packaging.specifiers import SpecifierSet

from envbuild.core.candidates import belongs, candidates
from envbuild.core.project.targetversions import oldest_driver
from envbuild.core.torchcode import coverage_notes
from envbuild.model.facts import TorchBuild
from envbuild.model.project import IndexUrls
from envbuild.model.target import Platform
from envbuild.model.wheel import PageKind

ARM = Platform.LINUX_AARCH64
OLD = code("sm_50 sm_80 sm_90")
NEW = code("sm_75 sm_80 sm_90 sm_100 sm_120")


def build(
    torch: str, tag: str, sass: str | None = None, *, pypi: bool = False, arm: bool = False
) -> TorchBuild:
    found = None if sass is None else code(sass)
    return TorchBuild(
        torch=torch,
        cuda=None if tag == "cpu" else cuda(tag),
        on_pypi=pypi,
        on_pypi_aarch64=arm,
        code_x86_64=found,
        code_aarch64=found,
    )


FACTS = FakeFacts(
    keys={PageKind.PYTORCH: ("cu130", "cu128", "cu126", "cpu", "cu121_full", "rocm6.4")},
    builds=(
        build("2.9.0", "cu130", "sm_80 sm_120"),
        build("2.8.0", "cu128", "sm_80 sm_120", pypi=True),
        build("2.8.0", "cu126", "sm_80 sm_90"),
        build("2.7.0", "cu128", "sm_80 sm_120 compute_120"),
        build("2.7.0", "cu126", "sm_50 sm_80 sm_90", pypi=True),
        build("2.7.0", "cpu", arm=True),
    ),
    drivers={12: "525.60.13", 13: "580"},
)
SOURCE = FakeSource(
    files=(
        wheel("cu130", linux("torch-2.9.0+cu130")),
        wheel("cu128", linux("torch-2.8.0+cu128")),
        wheel("cu128", linux("torch-2.7.0+cu128")),
        wheel("cu126", linux("torch-2.8.0+cu126")),
        wheel("cu126", linux("torch-2.7.0+cu126")),
        wheel("cpu", linux("torch-2.8.0+cpu")),
        wheel("pypi", linux("torch-2.8.0")),
        wheel("pypi", linux("torch-2.7.0")),
    )
)


def labels(*gpus: str, requirements: tuple[str, ...] = (), **limits: str) -> list[str]:
    found, _ = candidates(
        context(target(*gpus, **limits), *requirements, source=SOURCE, facts=FACTS)
    )
    return [candidate.label for candidate in found]


def test_newest_torch_then_newest_cuda_then_the_index_before_pypi() -> None:
    assert labels("8.0") == [
        "torch 2.9.0+cu130",
        "torch 2.8.0+cu128",
        "torch 2.8.0 from PyPI (CUDA 12.8)",
        "torch 2.8.0+cu126",
        "torch 2.7.0+cu128",
        "torch 2.7.0+cu126",
        "torch 2.7.0 from PyPI (CUDA 12.6)",
    ]


def test_every_gpu_must_have_code() -> None:
    assert labels("12.0", "8.0") == [
        "torch 2.9.0+cu130",
        "torch 2.8.0+cu128",
        "torch 2.8.0 from PyPI (CUDA 12.8)",
        "torch 2.7.0+cu128",
    ]


def test_a_rejection_says_what_code_there_is() -> None:
    _, rejected = candidates(context(target("12.0"), source=SOURCE, facts=FACTS))
    reasons = [rejection.refusals[0].reason for rejection in rejected]
    assert (
        "torch 2.7.0 from PyPI (CUDA 12.6) has no code for sm_120: SASS sm_50 … sm_90, no PTX"
    ) in reasons
    assert len(reasons) == 3


def test_the_users_limits() -> None:
    assert labels("8.0", torch="==2.7.*", cuda="==12.8") == ["torch 2.7.0+cu128"]
    assert labels("8.0", requirements=("torch<2.8",), cuda=">=12.8") == ["torch 2.7.0+cu128"]
    assert labels("8.0", requirements=("torch==2.7.0+cu126",)) == ["torch 2.7.0+cu126"]
    assert labels("8.0", requirements=("torch==2.7.0; python_version < '3.11'",))[0].endswith("130")
    assert labels("8.0", python="3.12") == []


def test_pages_that_cuda_or_the_driver_exclude_are_not_fetched() -> None:
    for limits in ({"driver": ">=550"}, {"cuda": "<13"}):
        source = FakeSource(files=SOURCE.files)
        found, _ = candidates(context(target("8.0", **limits), source=source, facts=FACTS))
        assert found[0].label == "torch 2.8.0+cu128"
        assert ("pytorch-cu130", "torch") not in source.asked
        assert ("pytorch-cpu", "torch") not in source.asked
        assert ("pytorch-cu128", "torch") in source.asked


def test_a_cpu_target_takes_the_cpu_page_alone() -> None:
    source = FakeSource(files=SOURCE.files)
    found, _ = candidates(context(target(), source=source, facts=FACTS))
    assert [candidate.label for candidate in found] == ["torch 2.8.0+cpu"]
    assert source.asked == [("pytorch-cpu", "torch")]


def test_without_pytorchs_index_everything_comes_from_pypi() -> None:
    here = context(target(), source=SOURCE, facts=FACTS)
    found, _ = candidates(dataclasses.replace(here, indexes=IndexUrls(pytorch=None)))
    assert [candidate.torch.version for candidate in found] == ["2.8.0", "2.7.0"]


def test_pypi_on_aarch64_is_a_cpu_build_up_to_2_10() -> None:
    files = (wheel("pypi", linux("torch-2.7.0", machine="aarch64")),)
    here = context(target("9.0", platform=ARM), source=FakeSource(files), facts=FACTS)
    found, rejected = candidates(here)
    assert found == ()
    (rejection,) = rejected
    reason = "torch 2.7.0 from PyPI is a CPU build on linux-aarch64"
    assert rejection.refusals[0].reason == reason


def test_a_pypi_release_that_the_facts_do_not_know_is_read_from_its_requirements() -> None:
    toolkit = wheel("pypi", linux("torch-2.16.0"), requires=("cuda-toolkit[cudart]==13.4.0",))
    runtime = wheel("pypi", linux("torch-2.4.0"), requires=("nvidia-cuda-runtime-cu12==12.1.105",))
    here = context(target("8.0"), source=FakeSource((toolkit, runtime)), facts=FACTS)
    found, _ = candidates(here)
    assert [str(candidate.cuda) for candidate in found] == ["13.4", "12.1"]


def test_a_pypi_release_whose_cuda_is_not_known_is_no_answer_for_a_gpu() -> None:
    files = (wheel("pypi", linux("torch-2.99.0"), requires=None),)
    found, rejected = candidates(context(target("8.0"), source=FakeSource(files), facts=FACTS))
    assert found == ()
    assert rejected[0].refusals[0].reason == (
        "it is not known with which CUDA torch 2.99.0 from PyPI was built"
    )


def test_jit_comes_after_native_and_unknown_last_each_with_a_note() -> None:
    facts = FakeFacts(
        keys={PageKind.PYTORCH: ("cu128",)},
        builds=(
            build("2.9.0", "cu128"),
            build("2.8.0", "cu128", "sm_80 compute_80"),
            build("2.7.0", "cu128", "sm_90"),
        ),
    )
    files = tuple(wheel("cu128", linux(f"torch-2.{minor}.0+cu128")) for minor in (7, 8, 9))
    here = context(target("9.0"), source=FakeSource(files), facts=facts)
    found, _ = candidates(here)
    assert [candidate.public for candidate in found] == ["2.7.0", "2.8.0", "2.9.0"]
    assert [coverage_notes(candidate, here) for candidate in found] == [
        (),
        ("torch 2.8.0+cu128 has SASS sm_80, PTX compute_80: sm_90 runs it by JIT only",),
        ("the GPU code of torch 2.9.0+cu128 is not known",),
    ]


def test_unknown_code_of_a_toolkit_that_cannot_compile_for_the_gpu_is_refused() -> None:
    facts = FakeFacts(keys={PageKind.PYTORCH: ("cu121",)}, builds=(build("2.2.2", "cu121"),))
    files = (wheel("cu121", linux("torch-2.2.2+cu121")),)
    found, rejected = candidates(context(target("12.0"), source=FakeSource(files), facts=facts))
    assert found == ()
    assert rejected[0].refusals[0].reason == (
        "CUDA 12.1 of torch 2.2.2+cu121 does not compile for sm_120"
    )


def test_a_hashed_sibling_goes_first() -> None:
    files = (
        wheel("cu128", linux("torch-2.8.0+cu128"), sha256=None),
        wheel("pypi", linux("torch-2.8.0")),
    )
    found, _ = candidates(context(target("8.0"), source=FakeSource(files), facts=FACTS))
    assert [candidate.torch.page.name for candidate in found] == ["pypi", "pytorch-cu128"]


def test_wheels_at_the_root_of_the_index_are_other_builds() -> None:
    name = linux("torch-2.5.1", machine="aarch64")
    own = wheel("cu124", name)
    root = wheel("cu124", name, folder="root")
    assert belongs(own, "cu124")
    assert not belongs(root, "cu124")
    assert not belongs(wheel("cu128", linux("torch-2.5.1+cu124"), folder="cu128"), "cu128")


def test_early_releases_are_taken_only_when_asked_for() -> None:
    files = (wheel("cu128", linux("torch-2.9.0rc1+cu128")),)
    source = FakeSource(files)
    assert candidates(context(target("8.0"), source=source, facts=FACTS))[0] == ()
    asked = context(target("8.0", torch=">=2.9.0rc1"), source=source, facts=FACTS)
    assert [candidate.public for candidate in candidates(asked)[0]] == ["2.9.0rc1"]


@pytest.mark.parametrize(
    ("text", "oldest"),
    [(">=570", "570"), ("==550.*", "550"), ("<600", None), (">=525,>=550", "550"), (None, None)],
)
def test_oldest_driver(text: str | None, oldest: str | None) -> None:
    found = oldest_driver(SpecifierSet(text) if text else None)
    assert (None if found is None else str(found)) == oldest
