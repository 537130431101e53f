"""What is read of the texts of a driver, of libraries, of toolkits and of the kernel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core import drivertext, libctext, limitstext, toolkittext
from envbuild.core.drivertext import SmiText, parse_nvidia_smi
from envbuild.core.limitstext import MemoryText
from envbuild.model.cuda import CudaVersion

MODULE = "NVRM version: NVIDIA UNIX {}  570.86.10  Wed Jan  8 2025\nGCC version: gcc 12.2.0\n"
TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.10              Driver Version: 570.86.10      CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   31C    P0              63W / 400W |       0MiB /  81920MiB |      0%      Default |
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0F:00.0 Off |                    0 |
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|    0   N/A  N/A            1234      C   python                                  500MiB |
"""
QUERY = "Driver Version      : 580.65.06\nGPU 0000\n    Product Name      : NVIDIA B200\n"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (MODULE.format("x86_64 Kernel Module"), "570.86.10"),
        (MODULE.format("Open Kernel Module for x86_64"), "570.86.10"),
        ("535.183.06\n", "535.183.06"),
        ("580.95\n", "580.95"),
        ("", None),
        ("gcc version 12.2.0", None),
    ],
)
def test_module_version(text: str, version: str | None) -> None:
    assert drivertext.parse_module_version(text) == version


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TABLE, SmiText(driver="570.86.10", gpus=("NVIDIA A100-SXM4-80GB",) * 2)),
        (QUERY, SmiText(driver="580.65.06", gpus=("NVIDIA B200",))),
        ("GPU 0: Tesla T4 (UUID: GPU-1)\n", SmiText(gpus=("Tesla T4",))),
        (
            "driver_version, name\n570.86.10, NVIDIA L4\n570.86.10, NVIDIA L40S\n",
            SmiText(driver="570.86.10", gpus=("NVIDIA L4", "NVIDIA L40S")),
        ),
        ("NVIDIA-SMI has failed because it couldn't communicate", SmiText()),
        ("", SmiText()),
    ],
)
def test_nvidia_smi(text: str, found: SmiText) -> None:
    assert parse_nvidia_smi(text) == found


def test_gpu_information() -> None:
    text = "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 140\n"
    assert drivertext.parse_gpu_information(text) == "NVIDIA GeForce RTX 4090"
    assert drivertext.parse_gpu_information("Model: Unknown\n") is None


def test_newest_driver_is_no_text_order() -> None:
    assert drivertext.newest_driver(("535.9.1", "535.183.06", "470.86")) == "535.183.06"
    assert drivertext.newest_driver(()) is None


def test_meminfo() -> None:
    text = "MemTotal:       24684092 kB\nMemFree: 1 kB\nSwapTotal:             0 kB\n"
    assert limitstext.parse_meminfo(text) == MemoryText(total=24684092 * 1024, swap=0)


def test_cgroups() -> None:
    text = "4:memory:/a\n1:cpu,cpuacct:/b:c\n0::/\nnonsense\n"
    groups = {"memory": "/a", "cpu": "/b:c", "cpuacct": "/b:c", "": "/"}
    assert limitstext.parse_cgroups(text) == groups


@pytest.mark.parametrize(
    ("text", "cores"),
    [("max 100000", None), ("200000 100000", 2.0), ("50000", 0.5), ("1 0", None), ("", None)],
)
def test_cpu_max(text: str, cores: float | None) -> None:
    assert limitstext.parse_cpu_max(text) == cores


def test_glibcxx_across_the_edge_of_two_pieces() -> None:
    data = b"x" * 20 + b"GLIBCXX_3.4.9\0GLIBCXX_3.4.30\0GLIBCXX_3.4\0" + b"y" * 20
    for edge in range(len(data)):
        assert libctext.glibcxx_of_chunks([data[:edge], data[edge:]]) == "3.4.30"
    assert libctext.glibcxx_of_chunks([b"GLIBCXX_3.4\0"]) is None


def test_version_json_prefers_nvcc() -> None:
    text = '{"cuda": {"version": "12.8.1"}, "cuda_nvcc": {"version": "12.6.20"}}'
    assert toolkittext.parse_version_json(text) == CudaVersion(major=12, minor=6)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cuda": 1}', '{"cuda": {"version": 12}}', "[" * 100_000]
)
def test_what_is_no_version_json(text: str) -> None:
    assert toolkittext.parse_version_json(text) is None


@pytest.mark.parametrize(
    ("number", "version"),
    [("12080", "12.8"), ("11080", "11.8"), ("9020", "9.2"), ("13000", "13.0")],
)
def test_cuda_header(number: str, version: str) -> None:
    assert str(toolkittext.parse_cuda_header(f"#define CUDA_VERSION {number}\n")) == version


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    for parse in (
        drivertext.parse_module_version,
        drivertext.library_version,
        drivertext.parse_gpu_information,
        drivertext.parse_nvidia_smi,
        drivertext.parse_tegra_release,
        limitstext.parse_meminfo,
        limitstext.parse_cgroups,
        limitstext.parse_limit,
        limitstext.parse_cpu_max,
        libctext.glibc_of_name,
        libctext.glibcxx_of_name,
        libctext.glibc_of_confstr,
        toolkittext.parse_version_json,
        toolkittext.parse_version_txt,
        toolkittext.parse_cuda_header,
        toolkittext.toolkit_of_name,
        toolkittext.toolkit_of_release,
        toolkittext.wrapped_nvcc,
        toolkittext.is_compiler,
        toolkittext.llvm_of_path,
    ):
        parse(text)
    toolkittext.compiler_of_names([text])
    toolkittext.newest_of([text, *text.split()])


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_bytes(chunks: list[bytes]) -> None:
    libctext.glibcxx_of_chunks(chunks)
    libctext.glibc_of_bytes(b"".join(chunks))
