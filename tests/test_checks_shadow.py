"""EB7: libraries and packages that come from elsewhere."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from checkvalues import (
    PREFIX,
    SITE,
    TORCH_CUDA,
    at,
    dist,
    env,
    found,
    host,
    loaded,
    one,
    owned,
    symbols,
    version,
)
from imagemaker import NEW_TORCH, OLD_TORCH, with_torch
from imagemaker import SITE as IMAGE_SITE

from envbuild.checks.leaks import foreign_triton, in_front
from envbuild.checks.shadow import conda_in_the_way, foreign_part, shadowed, two_copies, version_of
from envbuild.checks.symbols import missing_symbols
from envbuild.model.finding import Severity
from envbuild.model.fix import Export, Install, Manual, Reinstall, Remove, Unset
from envbuild.model.installed import EnvironmentKind
from envbuild.model.links import Links

if TYPE_CHECKING:
    from imagemaker import Image

    from envbuild.model.installed import Installed, Ownership

TORCH = dist("torch 2.5.1", TORCH_CUDA)
SPARSE = "nvidia/cusparse/lib/libcusparse.so.12"
LINK = dist("nvidia-nvjitlink-cu12 12.4.127", "nvidia/nvjitlink/lib/libnvJitLink.so.12")
OLD_LINK = "/usr/local/cuda-12.1/lib64/libnvJitLink.so.12"
CUDNN = dist("nvidia-cudnn-cu12 9.10.2.21", "nvidia/cudnn/lib/libcudnn.so.9",
             "nvidia/cudnn/lib/libcudnn_ops.so.9")  # fmt: skip
CONDA = "/opt/conda"
STDCXX = f"{CONDA}/lib/libstdc++.so.6"


def test_an_old_library_on_the_path_that_lacks_symbols() -> None:
    links = Links(
        symbols=symbols(SPARSE, "__nvJitLinkAddData_12_4", provider=OLD_LINK),
        loaded=(loaded("libnvJitLink.so.12", OLD_LINK, "ld_library_path", SPARSE),),
    )
    finding = one(shadowed, env(TORCH, LINK, torch="2.5.1+cu124"), owned(TORCH, LINK), links)
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        f"LD_LIBRARY_PATH puts `{OLD_LINK}` (12.1) before the copy of nvidia-nvjitlink-cu12"
        " 12.4.127"
    )
    assert finding.fixes == (Unset(variable="LD_LIBRARY_PATH"),)
    assert f"file:{OLD_LINK}" in finding.brings


def test_a_folder_on_the_path_that_loses_is_harmless() -> None:
    inside = at("nvidia/nvjitlink/lib/libnvJitLink.so.12")
    links = Links(loaded=(loaded("libnvJitLink.so.12", inside, "preload", SPARSE),))
    machine = host(environment=(("LD_LIBRARY_PATH", "/usr/local/cuda-12.1/lib64"),))
    facts = (env(TORCH, LINK, torch="2.6.0+cu124"), owned(TORCH, LINK), links)
    assert found(shadowed, *facts, machine) == []


@pytest.mark.parametrize(
    ("path", "soname", "severity"),
    [
        ("/opt/cudnn/libcudnn_ops.so.9.1.0", "libcudnn_ops.so.9", Severity.ERROR),
        ("/opt/cudnn/libcudnn_ops.so.9.11.0", "libcudnn_ops.so.9", Severity.ERROR),
        ("/opt/cudnn/libcudnn_ops.so.9.10.2", "libcudnn_ops.so.9", Severity.NOTE),
        ("/opt/cudnn/libcudnn_ops.so.9", "libcudnn_ops.so.9", Severity.WARNING),
        (OLD_LINK, "libnvJitLink.so.12", Severity.WARNING),
        (OLD_LINK.replace("12.1", "12.8"), "libnvJitLink.so.12", Severity.NOTE),
        ("/usr/local/cuda/lib64/libnvJitLink.so.12", "libnvJitLink.so.12", Severity.NOTE),
    ],
)
def test_a_library_that_lacks_nothing_is_judged_by_its_version(
    path: str, soname: str, severity: Severity
) -> None:
    links = Links(loaded=(loaded(soname, path, "ld_library_path"),))
    installed = env(TORCH, CUDNN, LINK)
    assert one(shadowed, installed, owned(TORCH, CUDNN, LINK), links).severity is severity


@pytest.mark.parametrize(("text", "breaks"), [(OLD_TORCH, True), (NEW_TORCH, False)])
def test_the_loader_decides_whether_a_toolkit_on_the_path_is_in_the_way(
    text: str, *, breaks: bool
) -> None:
    image = with_torch()
    image.torch_text, image.ld_library_path = text, (posixpath.dirname(OLD_LINK),)
    image.add(OLD_LINK, defines=("__nvJitLinkCreate_12_1@@libnvJitLink.so.12",))
    facts = (*venv_of(image), image.judge())
    assert [f.severity for f in found(shadowed, *facts)] == [Severity.ERROR] * breaks
    assert [f.because[0] for f in found(missing_symbols, *facts)] == [f"file:{OLD_LINK}"] * breaks


def test_nccl_on_the_path_is_no_matter_and_preloaded_it_is() -> None:
    image, old = with_torch(), "/opt/old/libnccl.so.2"
    image.add(old, defines=("ncclSend",))
    image.ld_library_path = ("/opt/old",)
    assert found(shadowed, *venv_of(image), image.judge()) == []
    image.ld_preload = (old,)
    finding = one(shadowed, *venv_of(image), image.judge())
    assert finding.severity is Severity.ERROR
    assert finding.fixes == (Unset(variable="LD_PRELOAD"),)


def test_a_part_of_cudnn_by_name_from_the_path() -> None:
    image = with_torch()
    image.ld_library_path = ("/opt/cudnn",)
    image.add("/opt/cudnn/libcudnn_graph.so.9", defines=())
    assert one(shadowed, *venv_of(image), image.judge()).severity is Severity.WARNING
    image.ld_library_path, image.cache = (), {"libcudnn_ops.so.9": ("/usr/lib/libcudnn_ops.so.9",)}
    image.add("/usr/lib/libcudnn_ops.so.9", defines=())
    finding = one(foreign_part, *venv_of(image), image.judge())
    assert finding.subject == "/usr/lib/libcudnn_ops.so.9"


def venv_of(image: Image) -> tuple[Installed, Ownership]:
    """Return the environment of an image, each folder of NVIDIA's a package."""
    files = [path.removeprefix(f"{IMAGE_SITE}/") for path in image.files if IMAGE_SITE in path]
    names = {path.split("/")[1] if path.startswith("nvidia/") else "torch" for path in files}
    dists = [
        dist(
            "torch 2.8.0" if name == "torch" else f"nvidia-{name}-cu12 12.8.1",
            *(path for path in files if path.startswith((f"{name}/", f"nvidia/{name}/"))),
            site=IMAGE_SITE,
        )
        for name in sorted(names)
    ]
    sites = {"sites": (IMAGE_SITE,), "own_sites": (IMAGE_SITE,)}
    return env(*dists, torch="2.8.0+cu128", **sites), owned(*dists)


def test_what_no_wheel_brings_is_the_systems() -> None:
    links = Links(loaded=(loaded("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", "default"),))
    assert found(shadowed, env(TORCH, LINK), owned(TORCH, LINK), links) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/usr/local/cuda-12.1/lib64/libcudart.so.12", "12.1"),
        ("/usr/local/cuda-12.1/lib64/libcudnn.so.9", None),
        ("/opt/libcudnn_ops.so.9.1.0", "9.1.0"),
        ("/usr/local/cuda/lib64/libx.so.12", None),
    ],
)
def test_versions_in_paths(path: str, expected: str | None) -> None:
    assert version_of(path) == expected


def test_a_part_that_the_wheel_lacks_comes_from_the_system() -> None:
    part = "/usr/lib/x86_64-linux-gnu/libcudnn_engines_tensor_ir.so.9"
    cudnn = dist("nvidia-cudnn-cu13 9.20.0.48", "nvidia/cudnn/lib/libcudnn.so.9")
    links = Links(
        loaded=(
            loaded("libcudnn.so.9", at("nvidia/cudnn/lib/libcudnn.so.9")),
            loaded("libcudnn_engines_tensor_ir.so.9", part, "cache"),
        )
    )
    facts = (env(TORCH, cudnn, torch="2.12.1+cu132"), owned(TORCH, cudnn), links)
    finding = one(foreign_part, *facts)
    assert "is used with nvidia-cudnn-cu13 9.20.0.48, which has no" in finding.message
    assert found(shadowed, *facts) == []


def test_parts_of_the_wheel_and_a_system_cudnn_alone_are_fine() -> None:
    inside = (
        loaded("libcudnn.so.9", at("nvidia/cudnn/lib/libcudnn.so.9")),
        loaded("libcudnn_ops.so.9", at("nvidia/cudnn/lib/libcudnn_ops.so.9")),
    )
    assert found(foreign_part, env(TORCH, CUDNN), owned(CUDNN), Links(loaded=inside)) == []
    system = (
        loaded("libcudnn.so.9", "/usr/lib/libcudnn.so.9", "cache"),
        loaded("libcudnn_ops.so.9", "/usr/lib/libcudnn_ops.so.9", "cache"),
    )
    assert found(foreign_part, env(TORCH), owned(TORCH), Links(loaded=system)) == []


USER = "/home/me/.local/lib/python3.11/site-packages"


def leaking(theirs: str, site: str, **changes: object) -> object:
    ours = dist("torch 2.7.0+cu128", TORCH_CUDA)
    return env(
        dist(f"torch {theirs}", TORCH_CUDA, site=site), ours,
        sites=(site, SITE), tops=((site, ("torch",)), (SITE, ("torch", "numpy"))), **changes,
    )  # fmt: skip


def test_the_user_site_puts_another_torch_in_front() -> None:
    installed = leaking("2.6.0", USER, user_site=USER, kind=EnvironmentKind.CONDA)
    finding = one(in_front, installed)
    assert finding.message == (
        f"torch 2.6.0 is imported from `{USER}`, the environment has 2.7.0+cu128"
    )
    assert finding.fixes == (Export(variable="PYTHONNOUSERSITE", value="1"),)
    assert finding.brings == ("dist:torch",)


def test_pythonpath_puts_another_torch_in_front() -> None:
    machine = host(environment=(("PYTHONPATH", "/x:/opt/extra/"),))
    finding = one(in_front, leaking("2.6.0", "/opt/extra"), machine)
    assert finding.fixes == (Unset(variable="PYTHONPATH"),)
    same = one(in_front, leaking("2.7.0+cu128", "/opt/extra"), machine)
    assert same.severity is Severity.WARNING


def test_one_folder_in_front_is_one_finding() -> None:
    tops = (("/opt/extra", ("numpy", "torch")), (SITE, ("numpy", "torch")))
    outside = [dist(label, site="/opt/extra") for label in ("torch 2.6.0", "numpy 2.1.0")]
    installed = env(*outside, dist("torch 2.7.0"), dist("numpy 2.1.0"), tops=tops)
    finding = one(in_front, installed)
    assert finding.message == (
        "torch 2.6.0 is imported from `/opt/extra`, the environment has 2.7.0; so is numpy"
    )
    assert finding.severity is Severity.ERROR
    assert finding.brings == ("dist:torch", "dist:numpy")


def test_a_venv_does_not_see_the_user_site() -> None:
    own = env(dist("torch 2.7.0+cu128"), tops=((SITE, ("torch",)),))
    assert found(in_front, own) == []


def test_what_only_the_outside_has_is_not_in_front() -> None:
    base = "/usr/lib/python3/dist-packages"
    own = env(
        dist("torch 2.7.0"), sites=(SITE, base), tops=((SITE, ("torch",)), (base, ("numpy",)))
    )
    assert found(in_front, own) == []


def conda_links(*, is_lacking: bool, how: str = "ld_library_path") -> Links:
    lacking = (version("gymtorch.so", "GLIBCXX_3.4.32", STDCXX, "GLIBCXX_3.4.29"),)
    return Links(
        versions=lacking if is_lacking else (),
        loaded=(loaded("libstdc++.so.6", STDCXX, how, "gymtorch.so"),),
    )


def test_conda_in_the_way_of_a_venv() -> None:
    machine = host(environment=(("CONDA_PREFIX", CONDA),))
    finding = one(conda_in_the_way, env(), conda_links(is_lacking=True), machine)
    assert finding.severity is Severity.ERROR
    assert finding.brings == (f"file:{STDCXX}",)
    finding = one(conda_in_the_way, env(), conda_links(is_lacking=False), machine)
    assert finding.severity is Severity.WARNING
    assert finding.fixes == (Unset(variable="LD_LIBRARY_PATH"),)


def test_an_active_conda_that_brings_nothing_is_no_matter() -> None:
    machine = host(environment=(("CONDA_PREFIX", CONDA),))
    assert found(conda_in_the_way, env(), Links(), machine) == []
    by_base = conda_links(is_lacking=False, how="rpath")
    assert found(conda_in_the_way, env(), by_base, machine) == []
    lacking = conda_links(is_lacking=True)
    assert found(conda_in_the_way, env(), lacking, host()) == []
    inside = env(prefix=f"{CONDA}/envs/x", kind=EnvironmentKind.VENV)
    assert found(conda_in_the_way, inside, lacking, machine) == []
    conda = env(kind=EnvironmentKind.CONDA)
    assert found(conda_in_the_way, conda, lacking, machine) == []


def test_two_copies_of_a_runtime() -> None:
    system = loaded("libstdc++.so.6", "/usr/lib/libstdc++.so.6", "default")
    links = conda_links(is_lacking=True)
    both = Links(versions=links.versions, loaded=(*links.loaded, system))
    assert one(two_copies, both).severity is Severity.WARNING
    assert one(two_copies, Links(loaded=both.loaded)).severity is Severity.NOTE


def test_bundled_copies_live_side_by_side() -> None:
    links = Links(
        loaded=(
            loaded("libgomp-a34b3233.so.1", at("torch/lib/libgomp-a34b3233.so.1")),
            loaded("libgomp.so.1", "/usr/lib/libgomp.so.1", "default"),
            loaded("libgomp-d22c30c5.so.1.0.0", at("scikit_learn.libs/libgomp-d22c30c5.so.1.0.0")),
        )
    )
    assert found(two_copies, links) == []


def test_two_tritons() -> None:
    torch = dist("torch 2.8.0", requires=("triton==3.4.0",))
    installed = env(torch, dist("triton 3.4.0"), dist("pytorch-triton 3.2.0"))
    finding = one(foreign_triton, installed)
    assert finding.message == "triton 3.4.0 and pytorch-triton 3.2.0 bring the same module `triton`"
    assert finding.fixes == (Remove(names=("pytorch-triton",)), Reinstall(names=("triton",)))


def test_a_triton_of_another_source() -> None:
    torch = dist("torch 2.8.0", requires=("triton==3.4.0",))
    built = dist("triton 3.5.0+git1234", origin="https://github.com/triton-lang/triton")
    finding = one(foreign_triton, env(torch, built))
    assert finding.fixes == (Install(requirements=("triton==3.4.0",)),)
    assert found(foreign_triton, env(torch, dist("triton 3.4.0"))) == []
    assert found(foreign_triton, env(dist("triton 3.4.0"))) == []


def test_two_tritons_and_a_torch_that_asks_for_none() -> None:
    finding = one(foreign_triton, env(dist("triton 3.4.0"), dist("pytorch-triton 3.2.0")))
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert PREFIX not in finding.message


def test_a_link_is_followed_to_tell_a_files_version_and_place() -> None:
    image = with_torch()
    image.torch_text, image.ld_library_path = OLD_TORCH, ("/usr/local/cuda/lib64",)
    image.links["/usr/local/cuda"] = "cuda-12.1"
    image.add("/usr/local/cuda-12.1/lib64/libnvJitLink.so.12")
    finding = one(shadowed, *venv_of(image), image.judge())
    assert "`/usr/local/cuda/lib64/libnvJitLink.so.12` (12.1)" in finding.message
    assert finding.evidence[-1] == "which is /usr/local/cuda-12.1/lib64/libnvJitLink.so.12"


def test_a_way_round_to_the_environments_own_file_is_no_other_file() -> None:
    own = at("nvidia/nvjitlink/lib/libnvJitLink.so.12")
    there = loaded("libnvJitLink.so.12", "/alias/libnvJitLink.so.12", "ld_library_path", SPARSE)
    facts = (env(TORCH, LINK), owned(TORCH, LINK))
    assert found(shadowed, *facts, Links(loaded=(replace(there, real=own),))) == []
    assert one(shadowed, *facts, Links(loaded=(replace(there, real="/opt/x.so"),)))


def test_a_copy_that_a_wheel_bundles_for_itself_is_not_shadowed_for_others() -> None:
    krb = "libgssapi_krb5.so.2"
    mesh = dist("pymeshlab 2025.7", f"pymeshlab/lib/{krb}")
    qt = dist("pyqt6 6.11.0", "PyQt6/QtNetwork.so")
    links = Links(loaded=(loaded(krb, f"/usr/lib/{krb}", "cache", "PyQt6/QtNetwork.so"),))
    assert found(shadowed, env(mesh, qt), owned(mesh, qt), links) == []
    needing = dist("pyqt6 6.11.0", "PyQt6/QtNetwork.so", requires=("PyMeshLab>=1",))
    assert one(shadowed, env(mesh, needing), owned(mesh, needing), links)
    own = Links(loaded=(loaded(krb, f"/usr/lib/{krb}", "cache", f"pymeshlab/lib/{krb}"),))
    assert one(shadowed, env(mesh), owned(mesh), own)


def test_one_file_under_two_paths_is_one_copy() -> None:
    usr, lib = "/usr/lib/libstdc++.so.6", "/lib/libstdc++.so.6"
    first = loaded("libstdc++.so.6", usr, "cache", "a.so")
    second = loaded("libstdc++.so.6", lib, "rpath", "b.so")
    same = Links(loaded=(replace(first, real=usr), replace(second, real=usr)))
    assert found(two_copies, same) == []
    assert one(two_copies, Links(loaded=(first, second))).severity is Severity.NOTE
