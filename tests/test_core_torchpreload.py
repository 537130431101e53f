"""What torch opens by itself, as the texts of several releases say it."""

from __future__ import annotations

from fuzzing import FUZZ
from hypothesis import given
from hypothesis import strategies as st
from imagemaker import NEW_TORCH, NVIDIA, OLD_TORCH, SITE, Image

from envbuild.core.link.torchpreload import Opened, Preload, parse_preload, preload_path

LISTED = (
    Opened("cuda_runtime", "libcudart.so.*[0-9]"),
    Opened("nccl", "libnccl.so.*[0-9]"),
    Opened("nvjitlink", "libnvJitLink.so.*[0-9]"),
)
V2_14 = """
def _get_cuda_dep_paths(path: str, lib_folder: str, lib_name: str) -> list[str]:
    nvidia_lib_paths = glob.glob(os.path.join(path, "nvidia", lib_folder, "lib", lib_name))
    nvidia_lib_paths += glob.glob(os.path.join(path, "nvidia", f"cu{major}", "lib", lib_name))
    lib_paths = glob.glob(os.path.join(path, lib_folder, "lib", lib_name))

def _preload_cuda_lib(lib_folder: str, lib_name: str, required: bool = True) -> None:
    ctypes.CDLL(lib_path)

def _preload_cuda_deps(err: OSError | None = None, required: bool = True) -> None:
    cuda_libs: list[tuple[str, str]] = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
    ]
    _preload_cuda_lib("nvtx", "libnvToolsExt.so.*[0-9]", required=False)

def _load_global_deps() -> None:
    try:
        if "libcudart.so" not in _maps:
            return
        _preload_cuda_deps(required=False)
    except OSError as err:
        _preload_cuda_deps(err)

OTHERS = {"no": "libother.so"}
"""
V2_8 = OLD_TORCH.replace(
    "        }\n", '        }\n        cuda_libs["cufile"] = "libcufile.so.*[0-9]"\n'
)
V1_13 = """
def _preload_cuda_deps():
    cublas_path = os.path.join(nvidia_path, 'cublas', 'lib', 'libcublas.so.11')
    cudnn_path = os.path.join(nvidia_path, 'cudnn', 'lib', 'libcudnn.so.8')

def _load_global_deps():
    try:
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
    except OSError as err:
        if 'libcublas.so.11' not in err.args[0]:
            raise err
        _preload_cuda_deps()
"""
ONLY_12_4 = (
    '        if version.cuda not in ["12.4", "12.6"]:\n            return\n    except OSError'
)


def test_up_to_2_5_only_a_failure_makes_torch_look() -> None:
    assert parse_preload(OLD_TORCH, cuda="12.4") == Preload(always=(), on_failure=LISTED)


def test_from_2_6_some_are_always_opened() -> None:
    found = parse_preload(NEW_TORCH, cuda="12.8")
    assert found.always == (Opened("nvjitlink", "libnvJitLink.so.*[0-9]"),)
    assert found.cudart == "nvidia/cuda_runtime/lib/libcudart.so"
    assert found.on_failure == LISTED


def test_some_are_for_some_cuda_versions_alone() -> None:
    text = NEW_TORCH.replace("    except OSError", ONLY_12_4)
    assert parse_preload(text, cuda="12.4").always
    assert parse_preload(text, cuda=None).always
    assert not parse_preload(text, cuda="11.8").always


def test_2_8_adds_one_for_cuda_12() -> None:
    added = Opened("cufile", "libcufile.so.*[0-9]")
    assert parse_preload(V2_8, cuda="12.8").on_failure == (*LISTED, added)
    assert parse_preload(V2_8, cuda=None).on_failure == (*LISTED, added)
    assert parse_preload(V2_8, cuda="11.8").on_failure == LISTED


def test_later_ones_open_all_of_them_in_order() -> None:
    all_of_them = (
        Opened("cublas", "libcublasLt.so.*[0-9]"),
        Opened("cublas", "libcublas.so.*[0-9]"),
        Opened("nvtx", "libnvToolsExt.so.*[0-9]", required=False),
    )
    found = parse_preload(
        V2_14.replace("required=False)\n    except", ")\n    except"), cuda="13.0"
    )
    assert (found.always, found.on_failure) == (all_of_them, all_of_them)
    assert found.cudart == "libcudart.so"
    assert found.places == ("nvidia/{folder}", "nvidia/cu{major}", "{folder}")


def test_from_2_14_on_what_is_not_there_stops_nothing() -> None:
    found = parse_preload(V2_14, cuda="13.0")
    assert [one.required for one in found.always] == [False, False, False]
    assert [one.required for one in found.on_failure] == [True, True, False]


def test_1_13_opens_two() -> None:
    two = (Opened("cublas", "libcublas.so.11"), Opened("cudnn", "libcudnn.so.8"))
    assert parse_preload(V1_13, cuda="11.7") == Preload(on_failure=two)


def test_a_text_that_says_nothing() -> None:
    assert parse_preload("", cuda=None) == Preload()
    assert parse_preload('LIBS = {"nccl": "libnccl.so.2"}', cuda="12.8") == Preload()


@FUZZ
@given(st.text(max_size=40), st.text(max_size=6))
def test_no_text_is_too_odd(text: str, cuda: str) -> None:
    parse_preload(V2_14.replace("cuda_libs", text), cuda=cuda)


def test_the_file_that_is_opened() -> None:
    image = Image()
    image.add(f"{NVIDIA}/cu13/lib/libcublas.so.13")
    image.add(f"{NVIDIA}/cu13/lib/libcublasLt.so.13")
    image.add(f"{NVIDIA}/nccl/lib/libnccl.so.2")
    image.add(f"{NVIDIA}/nccl/lib/libnccl.so")
    image.add(f"{SITE}/curand/lib/libcurand.so.10")
    places = parse_preload(V2_14, cuda="13.0").places

    def path(folder: str, pattern: str, major: str = "13", *, last: int = 3) -> str | None:
        one = Opened(folder, pattern)
        return preload_path(image, ("/other", SITE), places[:last], one=one, major=major)

    assert path("cublas", "libcublas.so.*[0-9]") == f"{NVIDIA}/cu13/lib/libcublas.so.13"
    assert path("nccl", "libnccl.so.*[0-9]") == f"{NVIDIA}/nccl/lib/libnccl.so.2"
    assert path("nccl", "libnccl.so.*[0-9]", "") == f"{NVIDIA}/nccl/lib/libnccl.so.2"
    assert path("cublas", "libcublas.so.*[0-9]", "12") is None
    assert path("curand", "libcurand.so.*[0-9]") == f"{SITE}/curand/lib/libcurand.so.10"
    assert path("curand", "libcurand.so.*[0-9]", last=2) is None
