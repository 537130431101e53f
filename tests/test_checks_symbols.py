"""EB3: symbols, libraries and the torch that extensions were built for."""

from __future__ import annotations

import pytest
from checkvalues import (
    FACTS,
    NEW_ERROR,
    OLD_ERROR,
    SITE,
    TORCH_CUDA,
    at,
    dist,
    env,
    found,
    imports,
    library,
    loaded,
    one,
    owned,
    symbols,
    version,
)

from envbuild.checks.binaries import broken_binary, other_machine, other_python
from envbuild.checks.libraries import missing_library, other_cuda, too_old
from envbuild.checks.symbols import missing_symbols
from envbuild.checks.tables import first_from, majors_of, package_for
from envbuild.checks.torchextension import other_torch
from envbuild.checks.torchpairs import built_for
from envbuild.model.finding import Severity
from envbuild.model.fix import Install, Manual, Reinstall, Remove, Unset
from envbuild.model.installed import Ownership, RecordEntry
from envbuild.model.links import BrokenBinary, Links, MissingLibrary

NCCL = "nvidia/nccl/lib/libnccl.so.2"
SIX = (
    "ncclAlltoAll",
    "ncclCommShrink",
    "ncclCommWindowDeregister",
    "ncclCommWindowRegister",
    "ncclDevCommCreate",
    "ncclDevCommDestroy",
)
TORCH = dist("torch 2.11.0", TORCH_CUDA, requires=("nvidia-nccl-cu13==2.28.9",))
CU12 = dist("nvidia-nccl-cu12 2.26.2", NCCL)
CU13 = dist("nvidia-nccl-cu13 2.28.9", NCCL)


def test_the_incident_names_every_symbol_and_the_version_that_has_them_all() -> None:
    installed = env(TORCH, CU12, CU13, torch="2.11.0+cu130")
    links = Links(symbols=symbols(TORCH_CUDA, *SIX, provider=NCCL))
    finding = one(missing_symbols, installed, owned(TORCH, CU13, CU12), links)
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "torch 2.11.0 needs 6 symbols that `libnccl.so.2` does not define, the newest needs NCCL"
        " 2.28.3 or later; torch pins `nvidia-nccl-cu13==2.28.9`"
    )
    assert finding.evidence[0] == "ncclAlltoAll (since NCCL 2.28.3)"
    assert finding.evidence[5] == "ncclCommWindowRegister (since NCCL 2.27.3)"
    assert f"{at(NCCL)} is nvidia-nccl-cu12 2.26.2's" in finding.evidence
    assert finding.fixes == (Remove(names=("nvidia-nccl-cu12",)), Reinstall(names=(CU13.name,)))
    assert f"file:{at(NCCL)}" in finding.because
    assert "import:torch" in finding.brings


def test_an_old_nccl_alone_is_replaced_by_the_pinned_one() -> None:
    torch = dist("torch 2.8.0", TORCH_CUDA, requires=("nvidia-nccl-cu12==2.27.3; extra == ''",))
    old = dist("nvidia-nccl-cu12 2.18.3", NCCL)
    links = Links(symbols=symbols(TORCH_CUDA, "ncclMemFree", provider=NCCL))
    finding = one(missing_symbols, env(torch, old, torch="2.8.0+cu128"), owned(torch, old), links)
    assert finding.fixes == (Install(requirements=("nvidia-nccl-cu12==2.27.3",)),)
    assert "1 symbol that" in finding.message
    assert "it needs NCCL 2.19.3 or later" in finding.message


def test_an_old_nvjitlink_under_cusparse() -> None:
    jitlink = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
    sparse = "nvidia/cusparse/lib/libcusparse.so.12"
    torch = dist("torch 2.8.0", TORCH_CUDA, requires=("nvidia-nvjitlink-cu12==12.8.93",))
    user = dist("nvidia-cusparse-cu12 12.5.8.93", sparse)
    old = dist("nvidia-nvjitlink-cu12 12.1.105", jitlink)
    names = ("__nvJitLinkCreate_12_8", "__nvJitLinkComplete_12_4", "__nvJitLinkUnheardOf")
    links = Links(symbols=symbols(sparse, *names, provider=jitlink))
    installed = env(torch, user, old, torch="2.8.0+cu128")
    finding = one(missing_symbols, installed, owned(torch, user, old), links)
    assert finding.message == (
        "nvidia-cusparse-cu12 12.5.8.93 needs 3 symbols that `libnvJitLink.so.12` does not define,"
        " the newest needs nvJitLink 12.8.61 or later; torch pins `nvidia-nvjitlink-cu12==12.8.93`"
    )
    assert finding.evidence[:3] == (
        "__nvJitLinkCreate_12_8 (since nvJitLink 12.8.61)",
        "__nvJitLinkComplete_12_4 (since nvJitLink 12.4.99)",
        "__nvJitLinkUnheardOf",
    )
    assert finding.fixes == (Install(requirements=("nvidia-nvjitlink-cu12==12.8.93",)),)


def test_a_toolkit_s_library_that_is_too_old_is_found_by_its_whole_name() -> None:
    torch = dist("torch 2.8.0", TORCH_CUDA, requires=("nvidia-cusolver-cu12==11.7.3.90",))
    theirs = "/usr/local/cuda-12.4/lib64/libcusolver.so.11.6.0.99"
    links = Links(
        symbols=symbols(TORCH_CUDA, "cusolverDnXsyevBatched", provider=theirs),
        loaded=(loaded("libcusolver.so.11", theirs, "ld_library_path"),),
    )
    finding = one(missing_symbols, env(torch, torch="2.8.0+cu128"), owned(torch), links)
    assert "it needs cuSOLVER 11.7.1.2 or later" in finding.message
    assert finding.fixes == (Unset(variable="LD_LIBRARY_PATH"),)


def test_a_symbol_that_a_newer_release_dropped() -> None:
    library = "nvidia/cusolver/lib/libcusolver.so.11"
    torch, newer = dist("torch 2.1.0", TORCH_CUDA), dist("nvidia-cusolver-cu12 11.7.5.82", library)
    links = Links(symbols=symbols(TORCH_CUDA, "cusolverDnCgehd2", provider=library))
    installed = env(torch, newer, torch="2.1.0+cu121")
    finding = one(missing_symbols, installed, owned(torch, newer), links)
    assert "`libcusolver.so.11` does not define, it went with cuSOLVER 11.6.0.99" in finding.message
    assert finding.evidence[0] == "cusolverDnCgehd2 (gone in cuSOLVER 11.6.0.99)"


def test_a_cu11_library_written_last_is_removed() -> None:
    torch = dist("torch 2.8.0", TORCH_CUDA, requires=("nvidia-nccl-cu12==2.27.3",))
    cu11, cu12 = dist("nvidia-nccl-cu11 2.14.3", NCCL), dist("nvidia-nccl-cu12 2.27.3", NCCL)
    links = Links(symbols=symbols(TORCH_CUDA, "ncclMemFree", provider=NCCL))
    finding = one(
        missing_symbols,
        env(torch, cu12, cu11, torch="2.8.0+cu128"),
        owned(torch, cu12, cu11),
        links,
    )
    assert finding.fixes == (Remove(names=("nvidia-nccl-cu11",)), Reinstall(names=(cu12.name,)))


def test_a_preloaded_library_is_not_a_matter_of_packages() -> None:
    torch = dist("torch 2.8.0", TORCH_CUDA, requires=("nvidia-nccl-cu12==2.27.3",))
    theirs = "/usr/lib/x86_64-linux-gnu/libnccl.so.2"
    links = Links(
        symbols=symbols(TORCH_CUDA, "ncclMemFree", provider=theirs),
        loaded=(loaded("libnccl.so.2", theirs, "preload", "LD_PRELOAD"),),
    )
    finding = one(missing_symbols, env(torch, torch="2.8.0+cu128"), owned(torch), links)
    assert finding.fixes == (Unset(variable="LD_PRELOAD"),)
    assert f"{theirs} is no package's, found by way of LD_PRELOAD" in finding.evidence


def test_mkl_without_its_profiler() -> None:
    torch = dist("torch 2.2.2", "torch/lib/libtorch_cpu.so")
    links = Links(symbols=symbols("torch/lib/libtorch_cpu.so", "iJIT_NotifyEvent"))
    finding = one(missing_symbols, env(torch, torch="2.2.2"), owned(torch), links)
    assert finding.fixes == (Manual(text="conda install 'mkl<2024.1'"),)
    assert "symbol:iJIT_NotifyEvent" in finding.because


def test_nothing_missing_is_nothing_found() -> None:
    installed = env(TORCH, CU13, torch="2.11.0+cu130")
    for rule in (missing_symbols, other_torch, too_old, missing_library, other_cuda, broken_binary):
        assert found(rule, installed, owned(TORCH, CU13), Links(examined=9)) == []


def extension(
    label: str,
    path: str,
    *names: str,
    torch: str,
    all_names: tuple[str, ...] = (),
    **changes: object,
) -> tuple[object, ...]:
    """Return the facts about an extension that lacks symbols of torch."""
    package = dist(label, path, **changes)
    own = dist(f"torch {torch}", TORCH_CUDA)
    links = Links(
        symbols=symbols(path, *names, provider="torch/lib/libc10.so"),
        torch_users=(imports(path, *names, *all_names),),
    )
    return env(own, package, torch=torch), owned(own, package), links


def test_the_old_abi_under_a_torch_of_the_new_one() -> None:
    facts = extension(
        "flash-attn 2.7.4.post1", "flash_attn_2_cuda.so", OLD_ERROR, torch="2.7.0+cu128"
    )
    finding = one(other_torch, *facts)
    assert finding.message == (
        "flash-attn 2.7.4.post1 is built for the old C++ ABI (before cxx11), torch has the new C++"
        " ABI: 1 symbol of torch missing in torch 2.7.0+cu128"
    )
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert "`cu12torch2.7cxx11abiTRUE`" in fix.text
    assert finding.evidence[0] == f"{OLD_ERROR} (c10::Error::Error)"
    assert "dist:flash-attn" in finding.because


def test_the_new_abi_under_a_torch_of_the_old_one() -> None:
    facts = extension(
        "flash-attn 2.8.0.post2", "flash_attn_2_cuda.so", NEW_ERROR, torch="2.6.0+cu124"
    )
    finding = one(other_torch, *facts)
    assert "is built for the new C++ ABI (cxx11), torch has the old C++ ABI" in finding.message
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert "cu12torch2.6cxx11abiFALSE" in fix.text


def test_a_pyg_wheel_of_a_newer_torch_is_replaced_from_the_page_of_this_one() -> None:
    guard = "_ZNK3c107SymBool10guard_boolEPKcl"
    facts = extension(
        "torch-scatter 2.1.2+pt21cu118",
        "torch_scatter/_scatter_cuda.so",
        guard,
        torch="1.13.1+cu117",
    )
    finding = one(other_torch, *facts)
    assert "torch-scatter 2.1.2+pt21cu118 is built for torch 2.1:" in finding.message
    page = "https://data.pyg.org/whl/torch-1.13.0+cu117.html"
    assert finding.fixes == (
        Install(requirements=("torch-scatter==2.1.1+pt113cu117",), find_links=page),
    )
    facts = extension(
        "torch-sparse 0.6.18+pt26cu124", "torch_sparse/_spmm_cuda.so", guard, torch="2.7.1+cu128"
    )
    (fix,) = one(other_torch, *facts).fixes
    assert fix == Install(
        requirements=("torch-sparse==0.6.18+pt27cu128",),
        find_links="https://data.pyg.org/whl/torch-2.7.0+cu128.html",
    )


def test_an_egg_and_a_file_of_nobody_are_rebuilt() -> None:
    load = "_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb"
    path = "pointops-0.0.0-py3.11-linux-x86_64.egg/pointops_cuda.cpython-311-x86_64-linux-gnu.so"
    torch = dist("torch 2.8.0", TORCH_CUDA)
    links = Links(
        symbols=symbols(path, load, provider="torch/lib/libtorch_python.so"),
        torch_users=(imports(path, load),),
    )
    finding = one(
        other_torch, env(torch, torch="2.8.0+cu128"), owned(torch, unowned=(at(path),)), links
    )
    assert finding.subject == "pointops_cuda.cpython-311-x86_64-linux-gnu.so"
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert "egg" in fix.text
    assert "--no-build-isolation" in fix.text


def test_an_editable_build_is_built_again_where_it_came_from() -> None:
    load = "_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb"
    facts = extension(
        "pointops 1.0", "pointops_cuda.so", load,
        torch="2.8.0+cu128", origin="file:///app/libs/pointops", editable=True,
    )  # fmt: skip
    (fix,) = one(other_torch, *facts).fixes
    assert fix == Manual(
        text="build pointops again for torch 2.8.0+cu128: uv pip install --no-build-isolation"
        " --reinstall --editable /app/libs/pointops"
    )


def test_an_optional_of_std_is_a_torch_of_another_minor() -> None:
    name = "_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj"
    facts = extension("vllm 0.5.0", "vllm/_C.abi3.so", name, torch="2.1.2+cu121")
    finding = one(other_torch, *facts)
    assert finding.message.startswith("vllm 0.5.0 is built for")
    assert finding.message.endswith("1 symbol of torch missing in torch 2.1.2+cu121")


def test_the_torch_that_an_extension_needs_is_told_by_its_symbols() -> None:
    name = "torch_exception_get_what_without_backtrace"
    facts = extension(
        "torchaudio 2.11.1", "torchaudio/lib/libtorchaudio.so", name, torch="2.11.0+cu130"
    )
    finding = one(other_torch, *facts)
    assert finding.message == (
        "torchaudio 2.11.1 is built for torch 2.13 or newer: 1 symbol of torch missing in torch"
        " 2.11.0+cu130"
    )
    index = "https://download.pytorch.org/whl/cu130"
    assert finding.fixes == (Install(requirements=("torchaudio==2.11.0+cu130",), index=index),)


def test_a_companion_comes_from_the_index_of_torch() -> None:
    name = "_ZN3c104cuda9SetDeviceEa"
    torch = dist("torch 2.8.0+cu128", TORCH_CUDA)
    vision = dist("torchvision 0.22.1", "torchvision/_C.so")
    links = Links(symbols=symbols("torchvision/_C.so", name, provider="torch/lib/libc10_cuda.so"))
    finding = one(other_torch, env(torch, vision, torch="2.8.0+cu128"), owned(torch, vision), links)
    assert finding.fixes == (
        Install(
            requirements=("torchvision==0.23.0+cu128",),
            index="https://download.pytorch.org/whl/cu128",
        ),
    )


def test_torch_of_two_builds_is_no_extension() -> None:
    torch = dist("torch 2.8.0", TORCH_CUDA, "torch/lib/libc10.so")
    links = Links(symbols=symbols(TORCH_CUDA, OLD_ERROR, provider="torch/lib/libc10.so"))
    facts = (env(torch, torch="2.8.0+cu128"), owned(torch), links)
    assert found(other_torch, *facts) == []
    assert one(missing_symbols, *facts).fixes == (Reinstall(names=("torch",)),)


@pytest.mark.parametrize(
    ("text", "minor"),
    [
        ("2.1.2+pt27cu128", "2.7"),
        ("2.1.2+pt210cu128", "2.10"),
        ("2.1.1+pt113cu117", "1.13"),
        ("2.7.4.post1+cu12torch2.7cxx11abiTRUE", "2.7"),
        ("1.0+cu.12.8.torch.2.11", "2.11"),
        ("2.7.0+cu128", None),
        ("0.0.31", None),
    ],
)
def test_local_versions_name_a_torch(text: str, minor: str | None) -> None:
    assert built_for(text) == minor


def test_a_glibc_that_is_too_old() -> None:
    flash = dist("flash-attn 2.8.3", "flash_attn_2_cuda.so")
    libc = "/lib64/libc.so.6"
    links = Links(
        versions=(
            version("flash_attn_2_cuda.so", "GLIBC_2.32", libc, "GLIBC_2.31"),
            version("flash_attn_2_cuda.so", "GLIBC_2.34", libc, "GLIBC_2.31"),
        )
    )
    finding = one(too_old, env(flash), owned(flash), links)
    assert finding.message == (
        "flash-attn 2.8.3 needs GLIBC_2.34, `/lib64/libc.so.6` has at most GLIBC_2.31"
    )
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert "RHEL 9, Amazon Linux 2023 or later" in fix.text


def test_a_libstdcxx_of_conda() -> None:
    gym = dist("isaacgym 1.0", "gymtorch.so")
    conda = "/opt/conda/lib/libstdc++.so.6"
    links = Links(versions=(version("gymtorch.so", "GLIBCXX_3.4.32", conda, "GLIBCXX_3.4.29"),))
    finding = one(too_old, env(gym), owned(gym), links)
    assert finding.fixes == (Manual(text="conda install 'libstdcxx-ng>=13'"),)
    assert f"file:{conda}" in finding.because


def test_versions_and_who_has_them() -> None:
    assert first_from("glibc", "2.32") == "RHEL 9, Amazon Linux 2023"
    assert first_from("glibcxx", "3.4.31") == "13"
    assert first_from("glibc", "9.0") is None


def test_a_library_that_torch_pins_and_nobody_installed() -> None:
    torch = dist(
        "torch 2.8.0", "torch/lib/libtorch_nvshmem.so", requires=("nvidia-nvshmem-cu12==3.3.20",)
    )
    links = Links(libraries=(library("torch/lib/libtorch_nvshmem.so", "libnvshmem_host.so.3"),))
    finding = one(missing_library, env(torch, torch="2.8.0+cu128"), owned(torch), links)
    assert finding.message == (
        "torch 2.8.0 needs `libnvshmem_host.so.3`, which `nvidia-nvshmem-cu12` brings: torch pins"
        " 3.3.20, and it is not installed"
    )
    assert finding.fixes == (Install(requirements=("nvidia-nvshmem-cu12==3.3.20",)),)
    assert "import:torch" in finding.brings


def test_a_library_whose_file_is_gone_is_reinstalled() -> None:
    installed = env(TORCH, CU13, torch="2.11.0+cu130")
    links = Links(libraries=(library(TORCH_CUDA, "libnccl.so.2"),))
    finding = one(missing_library, installed, owned(TORCH), links)
    assert finding.fixes == (Reinstall(names=("nvidia-nccl-cu13",)),)
    assert f"file:{at(NCCL)}" in finding.because


def test_a_library_in_a_site_folder_that_torch_does_not_look_at() -> None:
    lib64 = "/usr/lib64/python3.11/site-packages"
    torch = dist("torch 2.6.0", TORCH_CUDA, site=lib64, requires=("nvidia-cusparselt-cu12==0.6.2",))
    lt = dist("nvidia-cusparselt-cu12 0.6.2", "nvidia/cusparselt/lib/libcusparseLt.so.0")
    lacking = MissingLibrary(path=f"{lib64}/{TORCH_CUDA}", library="libcusparseLt.so.0")
    facts = (env(torch, lt, torch="2.6.0+cu124"), owned(torch, lt))
    finding = one(missing_library, *facts, Links(libraries=(lacking,)))
    assert finding.hint == f"it lies in `{SITE}`, where those that need it do not look"


def test_libraries_that_only_some_uses_need_are_left_alone() -> None:
    torch = dist("torch 2.8.0", "torch/lib/libcaffe2_nvrtc.so")
    links = Links(
        libraries=(
            library("torch/lib/libcaffe2_nvrtc.so", "libcuda.so.1", optional=True),
            library("nvidia/nvshmem/lib/nvshmem_bootstrap_mpi.so.3", "libmpi.so.40", optional=True),
        )
    )
    for rule in (missing_library, other_cuda):
        assert found(rule, env(torch, torch="2.8.0+cu128"), owned(torch), links) == []


def torchcodec(*lacking: str) -> tuple[object, ...]:
    names = [f"torchcodec/libtorchcodec_core{n}.so" for n in (4, 5, 6, 7)]
    codec = dist("torchcodec 0.7.0", *names)
    torch = dist("torch 2.8.0", TORCH_CUDA)
    libraries = tuple(
        library(
            f"torchcodec/libtorchcodec_core{n}.so", f"libavutil.so.{52 + int(n)}", optional=True
        )
        for n in lacking
    )
    return env(torch, codec, torch="2.8.0+cu128"), owned(torch, codec), Links(libraries=libraries)


def test_no_ffmpeg_is_no_mismatch_and_torchcodec_cannot_be_imported() -> None:
    facts = torchcodec("4", "5", "6", "7")
    finding = one(missing_library, *facts)
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith("no FFmpeg was found, without which `import torchcodec` fails")
    assert found(other_torch, *facts) == []


def test_a_torchcodec_with_a_library_for_images_does_without_ffmpeg() -> None:
    core = "torchcodec/libtorchcodec_core9.so"
    codec = dist("torchcodec 0.17.0", core, "torchcodec/libtorchcodec_image.so")
    links = Links(libraries=(library(core, "libavutil.so.61", optional=True),))
    assert one(missing_library, env(codec), owned(codec), links).severity is Severity.NOTE


def test_torchaudio_does_without_ffmpeg() -> None:
    path = "torio/lib/libtorio_ffmpeg4.so"
    audio = dist("torchaudio 2.8.0", path)
    links = Links(libraries=(library(path, "libavutil.so.56", optional=True),))
    finding = one(missing_library, env(audio), owned(audio), links)
    assert finding.severity is Severity.NOTE


def test_one_ffmpeg_is_enough() -> None:
    assert found(missing_library, *torchcodec("4", "5", "7")) == []


@pytest.mark.parametrize(
    ("requires", "fix"),
    [
        (
            ("cuda-toolkit[cublas,nvrtc]==12.*; extra == 'ctk'",),
            Install(requirements=("cupy-cuda12x[ctk]==14.2.0",)),
        ),
        ((), Manual(text="install the CUDA 12 toolkit")),
    ],
)
def test_cupy_is_imported_without_cuda(requires: tuple[str, ...], fix: object) -> None:
    paths = "cupy_backends/cuda/libs/cublas.so", "cupy/cuda/jitify.so"
    cupy = dist("cupy-cuda12x 14.2.0", *paths, requires=requires)
    links = Links(
        libraries=(library(paths[0], "libcublas.so.12"), library(paths[1], "libnvrtc.so.12"))
    )
    finding = one(missing_library, env(cupy), owned(cupy), links)
    assert (finding.severity, finding.fixes) == (Severity.NOTE, (fix,))
    assert finding.message == (
        "cupy-cuda12x 14.2.0: no CUDA 12 libraries were found, which it needs on a GPU"
    )
    torch = dist("torch 2.11.0", TORCH_CUDA)
    facts = env(torch, cupy, torch="2.11.0+cu130"), owned(torch, cupy), links
    assert found(missing_library, *facts) == []
    assert one(other_cuda, *facts).severity is Severity.WARNING


def test_a_plug_in_for_torch_is_of_no_use_without_torch() -> None:
    path = "open3d/open3d_torch_ops.so"
    links = Links(libraries=(library(path, "libc10.so"), library(path, "libcudart.so.12")))
    own = "open3d/pybind.cpython-311-x86_64-linux-gnu.so"
    free, bound = (dist("open3d 0.20.0", path, own, requires=one_) for one_ in ((), ("torch",)))
    assert found(missing_library, env(free), owned(free), links) == []
    assert len(found(missing_library, env(bound), owned(bound), links)) == 2
    torch = dist("torch 2.8.0", TORCH_CUDA)
    facts = env(torch, free, torch="2.8.0+cpu"), owned(torch, free), links
    assert found(missing_library, *facts)


def test_a_plug_in_for_another_torch_fails_alone() -> None:
    path = "open3d/open3d_torch_ops.so"
    torch, links = dist("torch 2.8.0", TORCH_CUDA), Links(symbols=symbols(path, NEW_ERROR))
    for requires, severity in (((), Severity.WARNING), (("torch",), Severity.ERROR)):
        open3d = dist("open3d 0.20.0", path, "open3d/pybind.abi3.so", requires=requires)
        facts = env(torch, open3d, torch="2.8.0+cu128"), owned(torch, open3d), links, FACTS
        finding = one(other_torch, *facts)
        assert finding.severity is severity
        assert ("import:open3d" in finding.brings) is (severity is Severity.ERROR)
    pyg = dist("pyg-lib 0.4.0", "libpyg.so")
    links = Links(symbols=symbols("libpyg.so", NEW_ERROR))
    facts = env(torch, pyg, torch="2.8.0+cu128"), owned(torch, pyg), links, FACTS
    assert one(other_torch, *facts).severity is Severity.ERROR


def test_what_is_linked_to_torch_where_there_is_none() -> None:
    codec = dist("torchcodec 0.17.0", "torchcodec/libtorchcodec_image.so")
    links = Links(libraries=(library("torchcodec/libtorchcodec_image.so", "libc10.so"),))
    finding = one(missing_library, env(codec), owned(codec), links)
    assert finding.message.endswith("needs `libc10.so`, which torch brings, and there is none")


def test_a_package_of_another_cuda_major() -> None:
    vllm = dist("vllm 0.21.0", "vllm/_C.abi3.so")
    torch = dist("torch 2.9.1+cu129", TORCH_CUDA)
    links = Links(libraries=(library("vllm/_C.abi3.so", "libcudart.so.13"),))
    facts = (env(torch, vllm, torch="2.9.1+cu129"), owned(torch, vllm), links)
    finding = one(other_cuda, *facts)
    assert finding.message == (
        "vllm 0.21.0 is linked to CUDA 13 (`libcudart.so.13`), torch 2.9.1+cu129 brings CUDA 12"
    )
    assert found(missing_library, *facts) == []


def test_the_same_major_is_a_missing_library() -> None:
    xformers = dist("xformers 0.0.31", "xformers/_C.so")
    torch = dist("torch 2.8.0", TORCH_CUDA)
    links = Links(libraries=(library("xformers/_C.so", "libcudart.so.12"),))
    facts = (env(torch, xformers, torch="2.8.0+cu128"), owned(torch, xformers), links)
    assert found(other_cuda, *facts) == []
    (fix,) = one(missing_library, *facts).fixes
    assert fix == Install(requirements=("nvidia-cuda-runtime-cu12",))


def test_an_extension_for_cuda_under_a_cpu_torch() -> None:
    xformers = dist("xformers 0.0.31", "xformers/_C.so")
    torch = dist("torch 2.8.0+cpu", "torch/lib/libtorch_cpu.so")
    links = Links(libraries=(library("xformers/_C.so", "libc10_cuda.so"),))
    finding = one(
        missing_library, env(torch, xformers, torch="2.8.0+cpu"), owned(torch, xformers), links
    )
    assert "which torch 2.8.0+cpu does not have: it is a CPU build" in finding.message


def test_the_table_of_libraries_knows_majors_with_one_name_in_two() -> None:
    assert package_for("libcudart.so.12", 12) == "nvidia-cuda-runtime-cu12"
    assert package_for("libcusparseLt.so.0", 12) == "nvidia-cusparselt-cu12"
    assert majors_of("libcusparse.so.12") == (12, 13)
    assert majors_of("libcudart.so.13") == (13,)
    assert majors_of("libavutil.so.56") == ()


POINTOPS_310 = "pointops_cuda.cpython-310-x86_64-linux-gnu.so"


def test_a_module_for_another_python() -> None:
    ops = dist("pointops 1.0", POINTOPS_310, tags=("cp310-cp310-linux_x86_64",))
    finding = one(other_python, env(ops), owned(ops))
    assert finding.message == (
        "pointops 1.0 has 1 module for Python 3.10, the environment is Python 3.11.7"
    )
    assert finding.fixes == (Reinstall(names=("pointops",)),)


def test_a_file_of_nobody_for_another_python_is_a_warning() -> None:
    ownership = Ownership(unowned=(at(POINTOPS_310),))
    assert one(other_python, env(), ownership).severity is Severity.WARNING


@pytest.mark.parametrize(
    "names",
    [
        (POINTOPS_310, "pointops_cuda.cpython-311-x86_64-linux-gnu.so"),
        (POINTOPS_310, "pointops_cuda.abi3.so"),
        ("libpointops.so", "x.libs/libgomp-a34b3233.so.1.0.0"),
    ],
)
def test_another_file_of_the_module_will_do(names: tuple[str, ...]) -> None:
    ops = dist("pointops 1.0", *names, tags=("cp310-cp310-linux_x86_64",))
    assert found(other_python, env(ops), owned(ops)) == []


def test_a_wheel_for_this_python_may_carry_parts_for_others() -> None:
    part = "debugpy/_vendored/cython.cpython-310-x86_64-linux-gnu.so"
    for tag in ("cp311-cp311-manylinux_2_28_x86_64", "py2.py3-none-any", "cp39-abi3-linux_x86_64"):
        debugpy = dist("debugpy 1.8", part, tags=(tag,))
        assert found(other_python, env(debugpy), owned(debugpy)) == []


def test_a_free_threaded_module_is_another_one() -> None:
    name = "m.cpython-313t-x86_64-linux-gnu.so"
    ops = dist("m 1.0", name, tags=("cp313-cp313t-linux_x86_64",))
    assert found(other_python, env(ops, python="3.13.1", free_threaded=True), owned(ops)) == []


def test_a_file_that_is_cut_short() -> None:
    torch = dist("torch 2.8.0", TORCH_CUDA)
    links = Links(broken=(BrokenBinary(path=at(TORCH_CUDA), reason="the file ends at 4,096"),))
    finding = one(broken_binary, env(torch), owned(torch), links)
    assert finding.fixes == (Reinstall(names=("torch",)),)
    assert f"file:{at(TORCH_CUDA)}" in finding.because
    assert "library:libtorch_cuda.so" in finding.brings


def test_how_long_a_cut_file_should_be_is_what_record_says() -> None:
    torch = dist("torch 2.8.0", record=(RecordEntry(path=TORCH_CUDA, size=2_328_442_689),))
    links = Links(broken=(BrokenBinary(path=at(TORCH_CUDA), reason="the file ends at 9 of 20 b"),))
    finding = one(broken_binary, env(torch), owned(torch), links)
    assert "the file ends at 9 bytes, RECORD says 2328442689" in finding.message
    assert "RECORD says" in finding.evidence[0]


def test_what_is_larger_than_is_read_is_not_known_and_no_error() -> None:
    torch = dist("torch 2.8.0", TORCH_CUDA)
    links = Links(unread=(BrokenBinary(path=at(TORCH_CUDA), reason="the string table takes 1"),))
    finding = one(broken_binary, env(torch), owned(torch), links)
    assert finding.severity is Severity.UNKNOWN
    assert finding.message == (
        "torch 2.8.0: `libtorch_cuda.so` was not judged, the string table takes 1"
    )
    assert (finding.fixes, finding.brings) == ((), ())


def test_a_wheel_for_another_machine() -> None:
    arm = dist("torch 2.11.0", TORCH_CUDA, tags=("cp311-cp311-manylinux_2_28_aarch64",))
    assert one(other_machine, env(arm)).message == (
        "torch 2.11.0 is made for aarch64, the environment is x86_64"
    )
    links = Links(broken=(BrokenBinary(path=at(TORCH_CUDA), reason="of aarch64"),))
    assert found(broken_binary, env(arm), owned(arm), links) == []


@pytest.mark.parametrize(
    "tags",
    [
        (),
        ("py3-none-any",),
        ("cp311-cp311-manylinux_2_17_x86_64", "cp311-cp311-manylinux2014_x86_64"),
        ("cp311-cp311-linux_x86_64",),
        ("cp311-cp311-android_21_arm64_v8a",),
    ],
)
def test_wheels_for_this_machine_or_of_unknown_tags(tags: tuple[str, ...]) -> None:
    assert found(other_machine, env(dist("numpy 2.0", tags=tags))) == []


def test_parts_of_cuda_13_are_pinned_by_the_toolkit_package() -> None:
    kit = dist(
        "cuda-toolkit 13.0.2",
        requires=("nvidia-nvjitlink==13.0.88.*; sys_platform == 'linux' and extra == 'all'",),
    )
    links = Links(libraries=(library(TORCH_CUDA, "libnvJitLink.so.13"),))
    finding = one(missing_library, env(TORCH, kit, torch="2.11.0+cu130"), owned(TORCH), links)
    assert finding.fixes == (Install(requirements=("nvidia-nvjitlink==13.0.88",)),)


def test_symbols_of_a_library_that_is_gone_follow_from_that() -> None:
    torch = dist("torch 2.8.0", TORCH_CUDA, "torch/lib/libc10.so")
    vision = dist("torchvision 0.23.0", "torchvision/_C.so")
    cpu = "torch/lib/libtorch_cpu.so"
    links = Links(
        libraries=(library(TORCH_CUDA, "libc10.so"),),
        symbols=(
            *symbols(TORCH_CUDA, NEW_ERROR, provider=cpu),
            *symbols("torchvision/_C.so", NEW_ERROR, provider=cpu),
        ),
    )
    facts = (env(torch, vision, torch="2.8.0+cu128"), owned(torch, vision), links)
    gone = one(missing_library, *facts)
    assert gone.fixes == (Reinstall(names=("torch",)),)
    assert gone.hint is None
    assert "library:libc10.so" in gone.brings
    for rule in (missing_symbols, other_torch):
        assert "library:libc10.so" in one(rule, *facts).because
