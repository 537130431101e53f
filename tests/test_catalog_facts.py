"""Facts about builds: GPU code, pairs, symbols, shared paths, drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envbuild.catalog.reader import Catalog
from envbuild.model.cuda import ComputeCapability, CudaVersion
from envbuild.model.target import Platform

if TYPE_CHECKING:
    from envbuild.model.facts import DeviceCode, TorchBuild

CU126, CU128, CU130 = (CudaVersion.parse(tag) for tag in ("cu126", "cu128", "cu130"))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load()


def build(catalog: Catalog, public: str, cuda: CudaVersion | None) -> TorchBuild:
    found = catalog.torch_build(public, cuda)
    assert found is not None
    return found


def sass(code: DeviceCode | None) -> set[str]:
    assert code is not None
    return {capability.sm for capability in code.sass}


def test_only_the_cu128_build_of_torch_27_runs_on_blackwell(catalog: Catalog) -> None:
    assert sass(build(catalog, "2.7.0", CU128).code_x86_64) >= {"sm_100", "sm_120"}
    assert not sass(build(catalog, "2.7.0", CU126).code_x86_64) & {"sm_100", "sm_120"}
    index = "torch-2.7.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl"
    pypi = "torch-2.7.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert sass(catalog.device_code(index)) >= {"sm_100", "sm_120"}
    assert not sass(catalog.device_code(pypi)) & {"sm_100", "sm_120"}


def test_a_helper_library_of_torch_does_not_speak_for_it(catalog: Catalog) -> None:
    code = catalog.device_code("torch-2.10.0-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert "sm_70" in sass(code)
    assert "sm_60" not in sass(code)


def test_a_bundled_library_does_not_speak_for_a_wheel(catalog: Catalog) -> None:
    code = catalog.device_code("torchvision-0.22.0-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert code is not None
    assert [capability.compute for capability in code.ptx] == ["compute_50"]
    assert "sm_89" not in sass(code)


def test_spconv_reaches_blackwell_by_ptx_alone(catalog: Catalog) -> None:
    code = catalog.device_code("spconv_cu126-2.3.8-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert code is not None
    assert max(code.sass) == ComputeCapability.parse("9.0")
    assert {capability.compute for capability in code.ptx} == {"compute_52", "compute_90"}
    assert not code.family
    other = catalog.device_code("spconv_cu126-2.3.8-cp312-cp312-manylinux_2_28_x86_64.whl")
    assert other is not None
    assert other.family
    assert (other.sass, other.ptx) == (code.sass, code.ptx)


@pytest.mark.parametrize(
    "filename",
    [
        "spconv_cu126-2.3.9-cp311-cp311-manylinux_2_28_x86_64.whl",
        "spconv_cu126-2.3.8-cp311-cp311-manylinux_2_28_aarch64.whl",
        "torchvision-0.22.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.5.1-cp311-cp311-linux_aarch64.whl",
        "torch-9.9.9+cu128-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.7.0+mine-cp311-cp311-manylinux_2_28_x86_64.whl",
        "numpy-2.2.0-py3-none-any.whl",
    ],
)
def test_gpu_code_that_is_not_known_is_not_guessed(catalog: Catalog, filename: str) -> None:
    assert catalog.device_code(filename) is None


def test_wheels_without_gpu_code_are_known_to_have_none(catalog: Catalog) -> None:
    for filename in (
        "cumm_cu126-0.7.11-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.7.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.8.0-cp311-cp311-manylinux_2_28_aarch64.whl",
    ):
        code = catalog.device_code(filename)
        assert code is not None, filename
        assert code.sass == code.ptx == ()


def test_which_build_pypi_serves(catalog: Catalog) -> None:
    builds = catalog.torch_builds()
    on_pypi = {b.torch: b.cuda for b in builds if b.on_pypi}
    assert on_pypi["2.7.0"] == CU126
    assert on_pypi["2.8.0"] == CU128
    assert on_pypi["2.11.0"] == CU130
    aarch64 = {b.torch: b.cuda for b in builds if b.on_pypi_aarch64}
    assert aarch64["2.8.0"] is None
    assert aarch64["2.11.0"] == CU130
    assert len(on_pypi) == len([b for b in builds if b.on_pypi])


def test_builds_are_newest_first_with_the_cpu_build_last(catalog: Catalog) -> None:
    keys = [
        (Version(b.torch), (b.cuda.major, b.cuda.minor) if b.cuda else (0, 0))
        for b in catalog.torch_builds()
    ]
    assert keys == sorted(keys, reverse=True)
    assert len(set(keys)) == len(keys)


def test_companions_and_abi(catalog: Catalog) -> None:
    cu128, cpu = build(catalog, "2.7.0", CU128), build(catalog, "2.7.0", None)
    assert cu128.companions == (("torchaudio", "2.7.0"), ("torchvision", "0.22.0"))
    assert cpu.companions == cu128.companions
    assert cpu.cxx11_abi is True
    assert "3.11" in cpu.pythons
    assert build(catalog, "2.6.0", CudaVersion.parse("12.4")).cxx11_abi is False
    assert build(catalog, "2.6.0", CU126).cxx11_abi is True
    assert build(catalog, "2.6.0", None).cxx11_abi is None
    old = build(catalog, "2.1.0", CudaVersion.parse("11.8"))
    assert dict(old.companions)["torchvision"] == "0.16.0"
    assert old.code_x86_64 is None
    assert catalog.torch_build("9.9.9", CU128) is None


def test_aarch64_has_its_own_architectures(catalog: Catalog) -> None:
    code = build(catalog, "2.11.0", CU130).code_aarch64
    assert "sm_110" in sass(code)
    assert "sm_75" not in sass(code)


def test_computed_pairings_win_over_declared_ones(catalog: Catalog) -> None:
    expected = {
        ("torchaudio", "2.11.1"): ">=2.13,<2.16",
        ("torchaudio", "2.11.0"): ">=2.11,<2.16",
        ("torchaudio", "2.7.0"): "==2.7.0",
        ("torchcodec", "0.11.1"): ">=2.11,<2.16",
        ("torchcodec", "0.2.1"): ">=2.6,<2.7",
        ("torchcodec", "0.8.0"): "==2.9.*",
        ("torchcodec", "0.8.7"): "==2.9.*",
        ("torchvision", "0.22.0"): ">=2.7,<2.8",
        ("xformers", "0.0.35"): ">=2.10,<2.16",
        ("vllm", "0.9.0"): "==2.7.0",
    }
    for (project, version), torch in expected.items():
        pairing = catalog.pairing(project, version)
        assert pairing is not None, project
        assert (pairing.project, pairing.version, pairing.torch) == (project, version, torch)
        assert pairing.source.endswith("; 2026-11-29")
    assert catalog.pairing("torchaudio", "2.7.1+cu128") == catalog.pairing("torchaudio", "2.7.1")
    assert catalog.pairing("torchaudio", "9.9.9") is None
    assert catalog.pairing("numpy", "2.0.0") is None


@pytest.mark.parametrize("project", ["torchvision", "torchaudio", "xformers", "torchcodec", "vllm"])
def test_pairings_are_valid_and_newest_first(catalog: Catalog, project: str) -> None:
    pairings = catalog.pairings(project)
    versions = [Version(pairing.version) for pairing in pairings]
    assert versions == sorted(set(versions), reverse=True)
    for pairing in pairings:
        assert SpecifierSet(pairing.torch)


def test_symbols_that_torch_needs_of_nccl(catalog: Catalog) -> None:
    needs = catalog.torch_needs("2.8.0", "nccl")
    assert needs is not None
    assert "ncclCommWindowRegister" in needs
    assert catalog.nccl_first_version("ncclCommWindowRegister", cuda_major=12) == "2.27.3"
    versions = catalog.nccl_versions(cuda_major=12)
    assert versions.index("2.26.2") < versions.index("2.27.3")
    first = [catalog.nccl_first_version(symbol, cuda_major=12) for symbol in needs]
    assert max(versions.index(version) for version in first if version) == versions.index("2.27.3")
    assert catalog.nccl_first_version("ncclNothing", cuda_major=12) is None
    assert catalog.nccl_versions(cuda_major=11) == ()


def test_symbols_of_other_libraries(catalog: Catalog) -> None:
    assert catalog.torch_needs("2.8.0", "cuFile") == catalog.torch_needs("2.8.0", "cufile")
    assert catalog.torch_needs("2.8.0", "nvshmem") == ()
    newer = catalog.torch_needs("2.10.0", "nvshmem")
    assert newer
    assert "nvshmem_init" not in newer  # weak: torch runs without it
    assert catalog.torch_needs("1.13.1", "nccl") is None


def test_shared_paths_do_not_depend_on_the_order(catalog: Catalog) -> None:
    paths = catalog.shared_paths("nvidia_nccl_cu13", "nvidia-nccl-cu12")
    assert "nvidia/nccl/lib/libnccl.so.2" in paths
    assert paths == catalog.shared_paths("nvidia-nccl-cu12", "nvidia-nccl-cu13")
    cudnn = catalog.shared_paths("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
    assert "nvidia/cudnn/lib/libcudnn_ops.so.9" in cudnn
    assert catalog.shared_paths("nvidia-cublas-cu12", "nvidia-cublas") == ()


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [
        ("12.8", "525.60.13"),
        ("12.5", "525.60.13"),
        ("13.0", "580"),
        ("13.4", "580"),
        ("11.8", "450.80.2"),
        ("10.2", "440.33"),
        ("11.0", None),
        ("14.0", None),
    ],
)
def test_minimum_driver(catalog: Catalog, cuda: str, driver: str | None) -> None:
    for platform in Platform:
        assert catalog.minimum_driver(CudaVersion.parse(cuda), platform) == driver


def test_date(catalog: Catalog) -> None:
    assert catalog.date == "2026-11-29"
