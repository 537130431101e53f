"""What the loader's model says of sound and of broken environments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from elfmaker import AARCH64, make_elf
from fuzzing import FUZZ, mutated
from hypothesis import given
from imagemaker import LIBC, NVIDIA, OLD_TORCH, SITE, TAG, TORCH, Image, machine, with_torch

from envbuild.core.link.symbols import newest_of
from envbuild.model.links import MissingLibrary, MissingSymbol, MissingVersion

if TYPE_CHECKING:
    from envbuild.model.links import Links

CUDA = f"{TORCH}/lib/libtorch_cuda.so"
NCCL = f"{NVIDIA}/nccl/lib/libnccl.so.2"
CUSPARSE = f"{NVIDIA}/cusparse/lib/libcusparse.so.12"
SHADOW = "/usr/local/cuda-12.1/lib64"


def how_of(links: Links, soname: str) -> tuple[str, str]:
    """Give where a library was found, and how."""
    (one,) = (one for one in links.loaded if one.soname == soname)
    return one.path, one.how


def is_sound(links: Links) -> bool:
    """Say whether nothing at all is reported."""
    return not (links.libraries or links.symbols or links.versions or links.broken)


def test_a_sound_environment_gives_no_finding() -> None:
    links = with_torch().judge()
    assert is_sound(links)
    assert links.examined > 8
    assert how_of(links, "libnccl.so.2") == (NCCL, "rpath")


def test_an_older_nccl_lacks_a_symbol() -> None:
    image = with_torch()
    image.add(NCCL, defines=("ncclSend",))
    assert image.judge().symbols == (MissingSymbol(path=CUDA, name="ncclCommSplit", provider=NCCL),)


def test_the_tail_of_another_name_defines_nothing_and_a_merged_name_does() -> None:
    image = with_torch()
    image.add(NCCL, defines=("pncclSend", "ncclSend", "pncclCommSplit"), merge=True)
    assert [one.name for one in image.judge().symbols] == ["ncclCommSplit"]
    image.add(NCCL, defines=("pncclSend", "ncclSend", "ncclCommSplit"), merge=True)
    assert is_sound(image.judge())


def test_weak_symbols_may_stay_undefined_and_weak_definitions_count() -> None:
    image = with_torch()
    image.add(NCCL, defines=("?ncclSend", "?ncclCommSplit"))
    image.extension("ext/_C", imports=("?__cxa_thread_atexit_impl",))
    assert is_sound(image.judge())


def test_a_library_that_is_gone() -> None:
    image = with_torch()
    del image.files[NCCL]
    links = image.judge()
    assert links.libraries == (MissingLibrary(path=CUDA, library="libnccl.so.2"),)
    assert links.symbols == (), "what the missing library defines is no further finding"


def test_with_a_hole_only_symbols_whose_owner_is_there_are_judged() -> None:
    image = with_torch()
    del image.files[NCCL]
    image.add(f"{NVIDIA}/cudnn/lib/libcudnn.so.9", runpath="$ORIGIN")
    assert [one.name for one in image.judge().symbols] == ["cudnnCreate"]


def test_libraries_that_no_wheel_brings_are_optional() -> None:
    image = machine()
    image.extension("av/_core", needed=("libavutil.so.60",), imports=("av_malloc",))
    links = image.judge()
    assert [(one.library, one.optional) for one in links.libraries] == [("libavutil.so.60", True)]
    assert links.symbols == ()


def test_libcuda_is_the_drivers() -> None:
    image = machine()
    image.extension("cu/driver", needed=("libcuda.so.1",), imports=("cuInit", "nvmlInit_v2"))
    links = image.judge()
    assert [one.optional for one in links.libraries] == [True]
    assert links.symbols == ()


def test_plug_ins_are_no_roots() -> None:
    image = with_torch()
    lib = f"{NVIDIA}/nvshmem/lib/nvshmem_bootstrap_mpi.so.3"
    image.add(lib, needed=("libmpi.so.40", "libcudart.so.11.0"), wants=("MPI_Init",))
    assert is_sound(image.judge())


def test_a_library_may_use_what_its_loader_loaded() -> None:
    """libtorch_nvshmem.so uses c10 without being linked to it."""
    image = with_torch()
    image.add(f"{TORCH}/lib/libextra.so", wants=("_ZN3c105ErrorC2Ev",))
    image.extension("ext/_C", needed=("libextra.so", "libc10.so"), rpath=f"{TORCH}/lib")
    assert is_sound(image.judge())


def test_torch_is_loaded_before_its_extensions() -> None:
    image = with_torch()
    image.extension("flash_attn_2_cuda", needed=("libc10.so",), imports=("_ZN3c105ErrorC2Ev",))
    assert is_sound(image.judge()), "it has no RPATH: libc10.so is found by its SONAME"


def test_an_extension_for_another_torch() -> None:
    image = with_torch()
    name = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
    path = image.extension("flash_attn_2_cuda", needed=("libc10.so",), imports=(name, "printf"))
    links = image.judge()
    provider = f"{TORCH}/lib/libc10.so"
    assert links.symbols == (MissingSymbol(path=path, name=name, provider=provider),)
    (user,) = links.torch_users
    assert (user.path, user.symbols, user.abi, user.stable) == (path, (name,), "old", False)
    assert user.libraries == ("libc10.so",)


def test_users_of_torch_are_told_apart() -> None:
    image = with_torch()
    image.add(
        f"{TORCH}/lib/libc10.so",
        defines=("aoti_torch_new", "_ZN3c103fooENSt7__cxx1112basic_stringE"),
    )
    image.add(f"{SITE}/ta/lib/libta.so", needed=("libc10.so",), wants=("aoti_torch_new",))
    image.add(
        f"{SITE}/tb/lib/libtb.so",
        needed=("libc10.so",),
        defines=("_ZN5torch2tb3ownEv",),
        wants=("_ZN3c103fooENSt7__cxx1112basic_stringE", "_ZN5torch2tb5otherEv"),
    )
    image.add(
        f"{SITE}/tb/lib/libtb2.so",
        needed=("libtb.so",),
        rpath="$ORIGIN",
        wants=("_ZN5torch2tb3ownEv",),
    )
    users = {one.path.rpartition("/")[2]: one for one in image.judge().torch_users}
    assert (users["libta.so"].abi, users["libta.so"].stable) == (None, True)
    assert (users["libtb.so"].abi, users["libtb.so"].stable) == ("new", False)
    assert "libtb2.so" not in users


def test_without_torch_its_libraries_are_missing() -> None:
    image = machine()
    image.extension("flash_attn_2_cuda", needed=("libc10.so",), imports=("_ZN3c105ErrorC2Ev",))
    assert [(one.library, one.optional) for one in image.judge().libraries] == [
        ("libc10.so", False)
    ]


def test_another_cuda_major_is_missing_although_its_wheel_lies_there() -> None:
    image = with_torch()
    image.add(f"{NVIDIA}/cuda_runtime/lib/libcudart.so.13", defines=("cudaMalloc",))
    image.extension("xf/_C", needed=("libc10.so", "libcudart.so.13"), imports=("cudaMalloc",))
    assert [(one.library, one.optional) for one in image.judge().libraries] == [
        ("libcudart.so.13", False)
    ]


def test_a_package_may_load_its_own_library_first() -> None:
    image = with_torch()
    image.add(f"{SITE}/ta/lib/libta.so", defines=("own",))
    image.extension("ta/lib/_ta", needed=("libta.so",), imports=("own",))
    links = image.judge()
    assert is_sound(links)
    assert how_of(links, "libta.so") == (f"{SITE}/ta/lib/libta.so", "preload")


def test_symbols_of_the_same_package_are_taken_to_be_loaded() -> None:
    image = machine()
    image.add(f"{SITE}/ta/lib/libta.so", defines=("own",))
    image.extension("ta/_ta", imports=("own",))
    image.extension("tb/_tb", imports=("own",))
    assert [one.path for one in image.judge().symbols] == [f"{SITE}/tb/_tb.{TAG}.so"]


@pytest.mark.parametrize(
    ("text", "breaks"), [(OLD_TORCH, True), (Image().torch_text, False)], ids=["2.5", "2.6"]
)
def test_an_old_library_on_ld_library_path(text: str, *, breaks: bool) -> None:
    image = with_torch()
    image.torch_text, image.ld_library_path = text, (SHADOW,)
    image.add(
        f"{SHADOW}/libnvJitLink.so.12", defines=("__nvJitLinkCreate_12_1@@libnvJitLink.so.12",)
    )
    links = image.judge()
    wanted = MissingSymbol(
        path=CUSPARSE,
        name="__nvJitLinkCreate_12_8",
        version="libnvJitLink.so.12",
        provider=f"{SHADOW}/libnvJitLink.so.12",
    )
    assert links.symbols == ((wanted,) if breaks else ())
    _, how = how_of(links, "libnvJitLink.so.12")
    assert how == ("ld_library_path" if breaks else "preload")


def test_a_rpath_is_stronger_than_ld_library_path() -> None:
    image = with_torch()
    image.ld_library_path = (SHADOW,)
    image.add(f"{SHADOW}/libnccl.so.2", defines=())
    links = image.judge()
    assert is_sound(links)
    assert how_of(links, "libnccl.so.2") == (NCCL, "rpath")


def test_parts_of_cudnn_come_from_ld_library_path() -> None:
    image = with_torch()
    image.ld_library_path = (SHADOW,)
    image.add(f"{SHADOW}/libcudnn_graph.so.9", defines=())
    links = image.judge()
    assert is_sound(links)
    assert how_of(links, "libcudnn_graph.so.9") == (
        f"{SHADOW}/libcudnn_graph.so.9",
        "ld_library_path",
    )
    assert how_of(links, "libcudnn.so.9")[1] == "rpath"


def test_ld_preload_wins_over_everything() -> None:
    image = with_torch()
    image.ld_preload = ("/opt/old/libnccl.so.2",)
    image.add("/opt/old/libnccl.so.2", defines=("ncclSend",))
    links = image.judge()
    assert [one.name for one in links.symbols] == ["ncclCommSplit"]
    assert links.symbols[0].provider == "/opt/old/libnccl.so.2"
    assert how_of(links, "libnccl.so.2") == ("/opt/old/libnccl.so.2", "preload")


def test_ld_preload_of_a_file_that_is_gone_is_passed_over() -> None:
    image = with_torch()
    image.ld_preload = ("/gone/libnccl.so.2", "libgone.so")
    assert is_sound(image.judge())


def test_torch_looks_for_the_wheels_itself_where_its_rpath_does_not_reach() -> None:
    image = with_torch()
    image.torch_text = OLD_TORCH
    image.add(f"{TORCH}/lib/libtorch_global_deps.so", needed=("libcudart.so.12",))
    links = image.judge()
    assert is_sound(links)
    assert how_of(links, "libcudart.so.12")[1] == "preload"
    image.torch_text = ""
    links = image.judge()
    assert [one.library for one in links.libraries] == ["libcudart.so.12"]


def test_a_c_library_that_is_too_old() -> None:
    image = machine()
    path = image.extension(
        "fa",
        needed=("libc.so.6",),
        imports=("strlcpy@GLIBC_2.38=libc.so.6", "printf@GLIBC_2.2.5=libc.so.6"),
    )
    links = image.judge()
    wanted = MissingVersion(
        path=path, library="libc.so.6", version="GLIBC_2.38", found=LIBC, newest="GLIBC_2.31"
    )
    assert links.versions == (wanted,)
    assert links.symbols == ()


def test_a_symbol_that_is_there_in_another_version_alone() -> None:
    image = machine()
    path = image.extension("fa", needed=("libc.so.6",), imports=("printf@GLIBC_2.31=libc.so.6",))
    (one,) = image.judge().symbols
    assert one == MissingSymbol(path=path, name="printf", version="GLIBC_2.31", provider=LIBC)


def test_a_library_without_versions_takes_every_reference() -> None:
    image = machine()
    image.add("/usr/lib/libfoo.so.1", defines=("foo",))
    image.extension("fa", needed=("libfoo.so.1",), imports=("foo@FOO_2=libfoo.so.1",))
    assert is_sound(image.judge())


def test_the_newest_version_is_by_number_and_of_the_family() -> None:
    defined = ("GLIBC_2.9", "GLIBC_2.31", "GLIBC_PRIVATE", "GCC_9.0", "GLIBCXX_3.4.30")
    assert newest_of("GLIBC_2.38", defined) == "GLIBC_2.31"
    assert newest_of("GLIBCXX_3.4.32", defined) == "GLIBCXX_3.4.30"
    assert newest_of("CXXABI_1.3", defined) is None
    assert newest_of("private", defined) is None


def test_the_c_api_may_come_from_libpython() -> None:
    image = machine()
    image.add("/usr/bin/python3.11", soname=None, needed=("$ORIGIN/../lib/libpython3.11.so.1.0",))
    image.add("/usr/lib/libpython3.11.so.1.0", defines=("PyModule_Create2", "PyObject_GetAttr"))
    image.extension("fa")
    assert is_sound(image.judge())
    image.add("/usr/lib/libpython3.11.so.1.0", defines=("PyObject_GetAttr",))
    assert [one.name for one in image.judge().symbols] == ["PyModule_Create2"]


def test_without_an_interpreter_its_symbols_are_not_judged() -> None:
    image = machine()
    image.executable = ""
    image.extension("fa", imports=("absent",))
    assert [one.name for one in image.judge().symbols] == ["absent"]


def test_modules_of_other_interpreters_are_not_judged() -> None:
    image = machine()
    for name in (
        "a.cpython-310-x86_64-linux-gnu.so",
        "b.cpython-311t-x86_64-linux-gnu.so",
        "c.cpython-311-aarch64-linux-gnu.so",
        "d.cpython-311-x86_64-linux-musl.so",
        "e.cpython-311-darwin.so",
        "tests/f.cpython-311-x86_64-linux-gnu.so",
    ):
        image.add(f"{SITE}/pkg/{name}", wants=("absent",))
    assert is_sound(image.judge())
    image.add(f"{SITE}/pkg/g.abi3.so", wants=("absent",))
    image.add(f"{SITE}/pkg/h.so", defines=("PyInit_h",), wants=("absent",))
    assert len(image.judge().symbols) == 2
    assert len(image.judge(tag="311t").symbols) == 3


def test_libraries_of_other_machines_are_passed_over() -> None:
    image = machine()
    image.add("/lib64/libz.so.1", machine=AARCH64)
    image.add("/usr/lib/libz.so.1", defines=("deflate",))
    image.extension("fa", needed=("libz.so.1",), imports=("deflate",))
    links = image.judge()
    assert is_sound(links)
    assert how_of(links, "libz.so.1") == ("/usr/lib/libz.so.1", "default")


def test_a_module_for_another_machine_is_named() -> None:
    image = machine()
    path = image.extension("fa", machine=AARCH64)
    image.add("/lib64/libz.so.1", machine=AARCH64)
    image.extension("fb", needed=("libz.so.1",))
    data = bytearray(image.files[image.extension("fc")])
    data[4] = 1  # 32-bit
    image.files[f"{SITE}/fc.{TAG}.so"] = bytes(data)
    links = image.judge()
    assert [(one.path, one.reason) for one in links.broken] == [
        (path, "the file is for aarch64, wanted x86_64"),
        (
            f"{SITE}/fc.{TAG}.so",
            (
                "the file is 32-bit little-endian x86_64, "
                "wanted 64-bit little-endian x86_64 or aarch64"
            ),
        ),
    ]
    assert [one.library for one in links.libraries] == ["libz.so.1"]


def test_torch_in_the_lib_folder_of_conda_is_no_user_of_itself() -> None:
    image = machine()
    lib = "/opt/conda/lib"
    image.add(f"{lib}/libc10.so", defines=("_ZN3c105ErrorC2Ev",))
    image.add(f"{lib}/libtorch_cpu.so", needed=("libc10.so",), wants=("_ZN3c105ErrorC2Ev",))
    image.extension("fa", needed=("libtorch_cpu.so", "libc10.so"), imports=("_ZN3c105ErrorC2Ev",))
    image.cache = {name: (f"{lib}/{name}",) for name in ("libc10.so", "libtorch_cpu.so")}
    links = image.judge()
    assert is_sound(links)
    assert [one.path for one in links.torch_users] == [f"{SITE}/fa.{TAG}.so"]


def test_a_broken_module_is_named_and_a_linker_script_is_not() -> None:
    image = with_torch()
    path = image.extension("fa")
    image.files[path] = image.files[path][:200]
    image.files[f"{SITE}/pkg/libx.so"] = b"INPUT(-lx)"
    assert [one.path for one in image.judge().broken] == [path]
    image.files[NCCL] = b""
    assert [(one.path, one.reason) for one in image.judge().broken][-1] == (
        NCCL,
        "the file is empty, wanted an ELF file",
    )


def test_a_file_of_zeros_is_named_although_nothing_is_linked_to_it() -> None:
    image = with_torch()
    path = f"{TORCH}/lib/libtorch_cuda_linalg.so"
    image.files[path] = bytes(4096)
    assert [(one.path, one.reason) for one in image.judge().broken] == [
        (path, "the file begins with zeros, wanted an ELF file")
    ]


def test_what_a_cut_library_of_torch_defines_is_no_further_finding() -> None:
    image = with_torch()
    image.add(
        f"{TORCH}/lib/libtorch_python.so",
        needed=("libtorch_cuda.so", "libtorch_cpu.so"),
        wants=("_ZN2at4cuda5sleepEl", "_ZN2at6Tensor3addEv"),
        rpath="$ORIGIN",
    )
    assert [one.name for one in image.judge().symbols] == ["_ZN2at4cuda5sleepEl"]
    image.files[CUDA] = image.files[CUDA][:200]
    links = image.judge()
    assert links.symbols == ()
    assert [one.path for one in links.broken] == [CUDA]
    assert [one.library for one in links.libraries] == ["libtorch_cuda.so"]


def test_the_cache_of_the_loader_comes_before_the_default_folders() -> None:
    image = machine()
    image.add("/opt/lib/libz.so.1", defines=("deflate",))
    image.add("/usr/lib/libz.so.1", defines=())
    image.cache = {"libz.so.1": ("/opt/lib/libz.so.1",)}
    image.extension("fa", needed=("libz.so.1",), imports=("deflate",))
    links = image.judge()
    assert is_sound(links)
    assert how_of(links, "libz.so.1") == ("/opt/lib/libz.so.1", "cache")


def test_a_file_reached_by_two_paths_is_loaded_once() -> None:
    image = with_torch()
    image.links[f"{SITE}/alias"] = "torch/lib"
    image.extension(
        "fa", needed=("libc10.so",), rpath="$ORIGIN/alias", imports=("_ZN3c105ErrorC2Ev",)
    )
    assert is_sound(image.judge())


def test_the_origin_is_that_of_the_link_and_not_of_its_goal() -> None:
    """A venv of links into a cache (uv's link mode) keeps its libraries side by side."""
    image = machine()
    image.add("/cache/1/b.so", soname="libb.so", defines=("b",))
    image.add("/cache/2/a.so", soname=None, needed=("libb.so",), rpath="$ORIGIN", wants=("b",))
    image.links[f"{SITE}/pkg/libb.so"] = "/cache/1/b.so"
    image.links[f"{SITE}/pkg/a.{TAG}.so"] = "/cache/2/a.so"
    links = image.judge()
    assert is_sound(links)
    assert how_of(links, "libb.so") == (f"{SITE}/pkg/libb.so", "rpath")


HOSTILE = make_elf(
    soname="libnccl.so.2",
    needed=("libc.so.6", "$ORIGIN/libx.so"),
    rpath="$ORIGIN:$LIB",
    defines=("ncclSend@@V1", "ncclCommSplit"),
    wants=("printf@GLIBC_2.2.5=libc.so.6", "PyObject_GetAttr"),
)


@FUZZ
@given(data=mutated(HOSTILE))
def test_no_library_however_broken_stops_the_judging(data: bytes) -> None:
    image = with_torch()
    image.files[NCCL] = data
    image.extension("fa", needed=("libnccl.so.2",), rpath=f"{NVIDIA}/nccl/lib")
    links = image.judge()
    assert all(one.path for one in (*links.broken, *links.symbols, *links.libraries))


@pytest.mark.parametrize("is_there", [True, False])
def test_what_an_interpreter_loads_is_there_where_it_cannot_be_read(*, is_there: bool) -> None:
    image = machine()
    if is_there:
        image.add(LIBC.replace("libc.so.6", "libm.so.6"), defines=("floor", "cos"))
    del image.files[image.executable]
    path = image.extension("compiled", imports=("floor", "hollow"), needed=("libc.so.6",))
    lacking = [(one.path, one.name) for one in image.judge().symbols]
    assert (path, "hollow") in lacking
    assert ((path, "floor") in lacking) is not is_there
