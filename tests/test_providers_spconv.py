"""spconv and cumm for a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes import FakeFacts, FakeSource, candidate, code, context, linux, target, wheel

from envbuild.model.project import BuildSpec, Prefer
from envbuild.model.stack import PypiPin, Refusal
from envbuild.model.target import Platform
from envbuild.providers.interface import Extension
from envbuild.providers.spconv import extend

if TYPE_CHECKING:
    from envbuild.model.stack import Candidate

NEEDS = ("numpy", "cumm-cu126<0.8.0,>=0.7.11")
SOURCE = FakeSource(
    files=(
        *(
            wheel("pypi", linux("spconv_cu126-2.3.8", tag), requires=NEEDS)
            for tag in ("cp39", "cp311", "cp313")
        ),
        wheel("pypi", linux("cumm_cu126-0.7.11")),
        wheel("pypi", linux("cumm_cu126-0.8.2", "cp313")),
        wheel("pypi", linux("spconv_cu121-2.3.8", "cp312"), requires=()),
        wheel("pypi", linux("spconv_cu120-2.3.6")),
        wheel("pypi", linux("spconv_cu118-2.3.8")),
        wheel("pypi", linux("spconv-2.3.8")),
    )
)
FACTS = FakeFacts(
    codes={
        linux("spconv_cu126-2.3.8"): code("sm_80 sm_90 compute_90"),
        linux("spconv_cu120-2.3.6"): code("sm_80 sm_89 compute_52"),
        linux("spconv_cu118-2.3.8"): code("sm_80"),
    }
)
CU128 = candidate("cu128", "2.7.0+cu128")


def answer(
    *requirements: str,
    chosen: Candidate = CU128,
    python: str = "3.11",
    platform: Platform = Platform.LINUX_X86_64,
    gpus: tuple[str, ...] = ("8.0",),
    builds: tuple[BuildSpec, ...] = (),
) -> Extension | Refusal:
    where = target(*gpus, python=python, platform=platform)
    return extend(chosen, context(where, *requirements, source=SOURCE, facts=FACTS, builds=builds))


def pin(found: Extension | Refusal) -> PypiPin:
    assert isinstance(found, Extension)
    (only,) = found.pins
    assert isinstance(only, PypiPin)
    return only


def reason(found: Extension | Refusal) -> str:
    assert isinstance(found, Refusal)
    return found.reason


def test_the_nearest_minor_not_above_torchs_cuda() -> None:
    found = pin(answer("spconv"))
    assert (found.requirement, found.replaces) == ("spconv-cu126==2.3.8", "spconv")
    assert pin(answer("spconv", chosen=candidate("cu118", "2.7.0+cu118"))).project == "spconv-cu118"


def test_an_older_minor_serves_where_the_nearest_has_no_wheel() -> None:
    chosen = candidate("cu124", "2.6.0+cu124")
    assert pin(answer("spconv", chosen=chosen, python="3.12")).project == "spconv-cu121"
    assert pin(answer("spconv", chosen=chosen)).requirement == "spconv-cu120==2.3.6"


def test_a_name_with_cuda_is_checked_against_the_major() -> None:
    found = pin(answer("spconv-cu120"))
    assert (found.requirement, found.replaces) == ("spconv-cu120==2.3.6", None)
    assert reason(answer("spconv-cu118")) == (
        "spconv-cu118 is built for CUDA 11, which does not mix with CUDA 12"
    )


@pytest.mark.parametrize("name", ["cu130", "cu132"])
def test_nothing_for_cuda_13(name: str) -> None:
    found = answer("spconv", chosen=candidate(name, f"2.12.0+{name}"))
    assert reason(found) == "spconv has no wheel for CUDA 13 (newest: spconv-cu126)"


def test_no_wheel_for_the_python_or_the_platform() -> None:
    assert reason(answer("spconv", python="3.14")) == (
        "spconv-cu126 2.3.8 has wheels for Python 3.9 to 3.13"
    )
    assert reason(answer("spconv", platform=Platform.LINUX_AARCH64)) == (
        "spconv-cu126 has no wheel for linux-aarch64"
    )


def test_the_projects_specifier_holds() -> None:
    assert reason(answer("spconv>=3")) == "no wheel of spconv-cu126 is within `spconv>=3`"


def test_cumm_must_exist_for_the_python() -> None:
    assert reason(answer("spconv", python="3.13")) == (
        "spconv-cu126 2.3.8 needs `cumm-cu126<0.8.0,>=0.7.11`, which has no wheel for Python 3.13"
    )


def test_cumm_goes_with_spconv_and_its_version_is_left_to_the_resolver() -> None:
    found = answer("spconv", "cumm>=0.7")
    assert isinstance(found, Extension)
    assert [(p.requirement, p.replaces) for p in found.pins if isinstance(p, PypiPin)] == [
        ("cumm-cu126>=0.7", "cumm"),
        ("spconv-cu126==2.3.8", "spconv"),
    ]
    assert pin(answer("spconv", "cumm-cu126<0.8")).project == "spconv-cu126"
    assert reason(answer("cumm-cu118")) == (
        "cumm-cu118 is built for CUDA 11, which does not mix with CUDA 12"
    )
    cu130 = candidate("cu130", "2.12.0+cu130")
    assert reason(answer("cumm", chosen=cu130)) == (
        "cumm has no wheel for CUDA 13 (newest: cumm-cu128)"
    )


def test_a_name_with_cuda_decides_for_the_plain_name_too() -> None:
    found = answer("spconv", "spconv-cu120")
    assert isinstance(found, Extension)
    assert {p.project for p in found.pins} == {"spconv-cu120"}


def test_the_cpu_build() -> None:
    chosen = candidate("cpu", "2.7.0+cpu")
    found = pin(answer("spconv", chosen=chosen, gpus=()))
    assert (found.requirement, found.replaces) == ("spconv==2.3.8", None)
    assert reason(answer("spconv-cu126", chosen=chosen, gpus=())) == (
        "spconv-cu126 is built for CUDA 12.6, the target takes the CPU build of torch"
    )


def test_notes_on_gpus_that_its_nvrtc_does_not_know() -> None:
    found = answer("spconv", gpus=("12.0", "8.0"))
    assert isinstance(found, Extension)
    assert found.notes == (
        (
            "spconv-cu126 2.3.8 brings NVRTC 12.6, which cannot compile for sm_120: "
            "kernels that it compiles while running fail there"
        ),
    )
    old = answer("spconv-cu120", gpus=("12.0",))
    assert isinstance(old, Extension)
    assert "NVRTC 12.0, which cannot compile for sm_120" in old.notes[0]
    native = answer("spconv", gpus=("9.0",))
    assert isinstance(native, Extension)
    assert native.notes == ()


def test_there_is_no_source_distribution() -> None:
    found = answer("spconv", builds=(BuildSpec(name="spconv", prefer=Prefer.SOURCE),))
    assert reason(found) == (
        "spconv has no source distribution to build from, "
        "the build table must name a `path` or `git`"
    )
    either = BuildSpec(name="spconv", prefer=Prefer.WHEEL_OR_SOURCE)
    assert pin(answer("spconv", builds=(either,))).project == "spconv-cu126"
    own = BuildSpec(name="spconv", git="https://git.example/spconv@abc")
    assert answer("spconv", builds=(own,)) == Extension()
