"""Toolkits as their wheels say, and which driver compiles which PTX."""

from __future__ import annotations

import pytest

from envbuild.core.archs import toolkit_knows
from envbuild.core.buildtools import newest_host_compiler, nvcc_since
from envbuild.core.kernels import Driver, Package, judge_code
from envbuild.core.ptxas import ptxas_gap
from envbuild.core.ptxisa import cuda_of_driver, cuda_of_ptx, driver_for, too_new
from envbuild.core.toolkits import accepted, first_for, isa_of, toolkits
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.facts import DeviceCode

BLACKWELL = ComputeCapability.parse("12.0")
ADA = ComputeCapability.parse("8.9")


def cuda(text: str) -> CudaVersion:
    return CudaVersion.parse(text)


def ptx(*pairs: tuple[str, int, int], sass: tuple[str, ...] = ()) -> DeviceCode:
    """Return code of PTX: its capability and its version, 0 where that is not known."""
    found = [(ComputeCapability.parse(name), (major, minor)) for name, major, minor in pairs]
    return DeviceCode(
        sass=tuple(map(ComputeCapability.parse, sass)),
        ptx=tuple(one for one, _ in found),
        isa=tuple((one, isa) for one, isa in found if isa[0]),
    )


def test_the_table_covers_each_toolkit_with_wheels() -> None:
    assert list(toolkits()) == sorted(toolkits())
    for known, table in toolkits().items():
        assert {"gcc", "clang", "isa", "archs", "release"} <= set(table), known
        assert f" {known}." in table["release"]
        assert table["gcc"] >= 11
    assert (accepted("gcc", cuda("13.0")), accepted("clang", cuda("13.0"))) == (15, 20)
    assert accepted("clang", cuda("12.2")) == 16
    assert accepted("gcc", cuda("12.7")) is None  # never released for nvcc
    assert newest_host_compiler("gcc", cuda("11.4")) == 11  # older than the wheels
    assert newest_host_compiler("clang", cuda("11.4")) is None


@pytest.mark.parametrize(
    ("capability", "first"),
    [
        *(("9.0", "11.8"), ("10.0", "12.8"), ("10.1", "12.8"), ("10.3", "12.9")),
        *(("12.1", "12.9"), ("11.0", "13.0"), ("8.8", "13.0"), ("7.5", None), ("99.0", None)),
    ],
)
def test_the_first_nvcc_for_a_capability(capability: str, first: str | None) -> None:
    found = first_for(ComputeCapability.parse(capability))
    assert found == (cuda(first) if first else None)


def test_the_rules_of_architectures_agree_with_what_the_wheels_say() -> None:
    for known, table in toolkits().items():
        archs = {ComputeCapability.parse(name) for name in table["archs"]}
        for arch in archs:
            assert toolkit_knows(known, arch), (known, arch)
        for name in ("5.0", "7.0", "7.5", "8.6", "9.0", "10.0", "12.0"):
            one = ComputeCapability.parse(name)
            assert toolkit_knows(known, one) == (one in archs), (known, name)
    assert max(toolkits()[cuda("12.0")]["archs"]) == "9.0a"  # as NVRTC 12.0 in spconv-cu120


@pytest.mark.parametrize(
    ("triton", "unknown"),
    [
        ("3.3.1", ()),  # its variable cannot be set
        ("3.4.0", ("10.3", "10.7", "11.0", "12.1")),
        ("3.5.1", ("10.3", "10.7", "11.0", "12.1")),
        ("3.6.0", ("10.7", "11.0")),
        ("3.7.1", ("10.7",)),
        ("3.8.0", ("10.7",)),
        ("3.9.0", ()),
        ("4.0.0", ()),
        ("nightly", ()),
    ],
)
def test_what_the_ptxas_inside_triton_does_not_know(triton: str, unknown: tuple[str, ...]) -> None:
    every = ("7.0", "7.5", "8.9", "9.0", "10.0", "10.1", "10.3", "10.7", "11.0", "12.0", "12.1")
    gaps = {name: ptxas_gap(triton, ComputeCapability.parse(name)) for name in every}
    assert tuple(name for name, gap in gaps.items() if gap) == unknown
    for name, gap in gaps.items():
        assert gap is None or cuda(gap.first) == nvcc_since(ComputeCapability.parse(name))


@pytest.mark.parametrize(
    ("isa", "first"),
    [((8, 5), "12.5"), ((8, 6), "12.8"), ((8, 7), "12.8"), ((9, 0), "13.0"), ((6, 5), "11.7")],
)
def test_the_cuda_of_a_version_of_ptx(isa: tuple[int, int], first: str) -> None:
    assert isa_of(isa) == cuda(first)
    assert isa_of((99, 0)) is None


def test_drivers_and_the_cuda_they_came_with() -> None:
    assert cuda_of_driver("570.124.06") == cuda("12.8")
    assert cuda_of_driver("580.95.05") == cuda("13.0")
    assert cuda_of_driver("590.44.01") is None  # or newer: what it compiles is not known
    assert cuda_of_driver("570") == cuda("12.8")  # as a project writes it
    assert cuda_of_driver("418.40") is None
    assert cuda_of_driver("not a version") is None
    assert driver_for(cuda("12.8")) == "570.26"
    assert driver_for(cuda("12.7")) == "570.26"
    assert driver_for(cuda("99.0")) is None


def test_ptx_of_a_newer_cuda_than_the_driver_s() -> None:
    code = ptx(("9.0", 8, 8))
    assert cuda_of_ptx(code, code.ptx[0]) == cuda("12.9")
    assert too_new(code, BLACKWELL, cuda("12.8")) == cuda("12.9")
    assert too_new(code, BLACKWELL, cuda("12.9")) is None
    assert too_new(code, BLACKWELL, cuda("13.0")) is None
    assert too_new(code, BLACKWELL, None) is None
    assert too_new(code, ADA, cuda("12.8")) is None  # compute_90 is no code for it at all
    assert too_new(ptx(("9.0", 0, 0)), BLACKWELL, cuda("12.2")) is None
    assert too_new(ptx(("9.0", 99, 0)), BLACKWELL, cuda("12.2")) is None
    # A driver of CUDA 12.2 does not run sm_120 at all: one that does compiles PTX of CUDA 12.8.
    assert too_new(ptx(("9.0", 8, 7)), BLACKWELL, cuda("12.2")) is None
    assert too_new(ptx(("8.0", 8, 7)), ADA, cuda("12.2")) == cuda("12.8")


def test_older_ptx_beside_it_may_be_what_is_used() -> None:
    code = ptx(("8.0", 8, 0), ("9.0", 8, 8))
    assert too_new(code, BLACKWELL, cuda("12.8")) is None
    assert too_new(ptx(("8.0", 0, 0), ("9.0", 8, 8)), BLACKWELL, cuda("12.8")) is None


def judged(
    code: DeviceCode, driver: str | None, gpus: tuple[ComputeCapability, ...] = (BLACKWELL,)
) -> list[tuple[str, str]]:
    known = cuda_of_driver(driver) if driver else None
    one = Driver(label=f"driver {driver}", cuda=known) if known else None
    package = Package(name="spconv-cu126", label="spconv-cu126 2.3.8")
    found = judge_code(package, code, gpus, cuda=cuda("12.8"), driver=one)
    return [(finding.code, finding.message) for finding in found]


def test_machine_code_of_a_newer_minor_runs_and_ptx_does_not() -> None:
    newer = ptx(("9.0", 8, 8), sass=("9.0",))
    assert judged(newer, "570.124.06") == [
        (
            "EB401",
            (
                "spconv-cu126 2.3.8 has only PTX for sm_120, of CUDA 12.9, which driver 570.124.06"
                " (CUDA 12.8) cannot compile"
            ),
        )
    ]
    assert [code for code, _ in judged(newer, "575.57.08")] == ["EB402"]
    assert [code for code, _ in judged(newer, None)] == ["EB402"]
    assert judged(ptx(("9.0", 8, 8), sass=("12.0",)), "570.124.06") == []


def test_each_gpu_is_judged_by_a_driver_that_runs_it() -> None:
    found = judged(ptx(("8.0", 8, 7)), "525.60.13", (ADA, BLACKWELL))
    assert [code for code, _ in found] == ["EB401", "EB402"]
    assert "has only PTX for sm_89, of CUDA 12.8, which driver 525.60.13" in found[0][1]
    assert found[1][1].startswith("sm_120 runs spconv-cu126 2.3.8 only by compiling")
