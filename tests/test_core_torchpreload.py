"""What torch opens by itself, as the texts of several releases say it."""

from __future__ import annotations

from imagemaker import NEW_TORCH, NVIDIA, OLD_TORCH, SITE, Image

from envbuild.core.torchpreload import Preload, parse_preload, preload_path

LISTED = (
    ("cuda_runtime", "libcudart.so.*[0-9]"),
    ("nccl", "libnccl.so.*[0-9]"),
    ("nvjitlink", "libnvJitLink.so.*[0-9]"),
)
V2_11 = """
    cuda_libs: list[tuple[str, str]] = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
    ]
    _preload_cuda_lib("nvtx", "libnvToolsExt.so.*[0-9]", required=False)
            if "libcudart.so" not in _maps:
                return
            _preload_cuda_deps()
"""
ONLY_12_4 = '        if version.cuda not in ["12.4", "12.6"]:\n            return\n'


def test_up_to_2_5_only_a_failure_makes_torch_look() -> None:
    assert parse_preload(OLD_TORCH, cuda="12.4") == Preload(always=(), on_failure=LISTED)


def test_from_2_6_some_are_always_opened() -> None:
    found = parse_preload(NEW_TORCH, cuda="12.8")
    assert found.always == (("nvjitlink", "libnvJitLink.so.*[0-9]"),)
    assert found.cudart == "nvidia/cuda_runtime/lib/libcudart.so"
    assert ("nccl", "libnccl.so.*[0-9]") in found.on_failure


def test_2_6_does_so_for_some_cuda_versions() -> None:
    assert parse_preload(NEW_TORCH + ONLY_12_4, cuda="12.4").always
    assert parse_preload(NEW_TORCH + ONLY_12_4, cuda=None).always
    assert not parse_preload(NEW_TORCH + ONLY_12_4, cuda="11.8").always


def test_later_ones_open_all_of_them() -> None:
    found = parse_preload(V2_11, cuda="13.0")
    assert found.always == found.on_failure
    assert found.always[:2] == (
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
    )
    assert found.cudart == "libcudart.so"


def test_a_text_that_says_nothing() -> None:
    assert parse_preload("", cuda=None) == Preload()


def test_the_file_that_is_opened() -> None:
    image = Image()
    image.add(f"{NVIDIA}/cu13/lib/libcublas.so.13")
    image.add(f"{NVIDIA}/cu13/lib/libcublasLt.so.13")
    image.add(f"{NVIDIA}/nccl/lib/libnccl.so.2")
    image.add(f"{NVIDIA}/nccl/lib/libnccl.so")

    def path(folder: str, pattern: str, cuda: str | None = "13.0") -> str | None:
        return preload_path(image, ("/other", SITE), folder=folder, pattern=pattern, cuda=cuda)

    assert path("cublas", "libcublas.so.*[0-9]") == f"{NVIDIA}/cu13/lib/libcublas.so.13"
    assert path("nccl", "libnccl.so.*[0-9]") == f"{NVIDIA}/nccl/lib/libnccl.so.2"
    assert path("nccl", "libnccl.so.*[0-9]", None) == f"{NVIDIA}/nccl/lib/libnccl.so.2"
    assert path("cublas", "libcublas.so.*[0-9]", "12.8") is None
