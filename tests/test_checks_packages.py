"""EB1: packages that do not belong together, and healthy environments that look alike."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from checkvalues import FACTS, aim, dist, env, found, gpu, host, one
from envmaker import EnvMaker

from envbuild.checks.companions import wrong_companions
from envbuild.checks.compiledparts import conda_mkl, hollow, numpy_abi
from envbuild.checks.cudamix import cuda_mix
from envbuild.checks.files import RULES as FILES
from envbuild.checks.files import two_owners
from envbuild.checks.packagedata import compiled_parts, ended, numpy2_releases, same_imports
from envbuild.checks.packages import RULES
from envbuild.checks.requirements import unmet_requirements
from envbuild.checks.rule import Judged, Skipped, judge
from envbuild.checks.sameimport import same_import_twice
from envbuild.checks.torchbuild import two_installers, wrong_torch
from envbuild.checks.twins import cuda_twins, two_versions
from envbuild.core.cause import sort_findings
from envbuild.core.installedrequires import needs_of, python_of
from envbuild.model.finding import Severity
from envbuild.model.fix import Install, Manual, Reinstall, Remove
from envbuild.model.host import Host
from envbuild.model.installed import (
    EnvironmentKind,
    Installed,
    OnDisk,
    Ownership,
    RecordEntry,
    SharedPath,
)
from envbuild.model.layers import Aim, Layers, LockedVersion, LockFile
from envbuild.model.links import Links
from envbuild.ports import Facts

if TYPE_CHECKING:
    from pathlib import Path

    from envbuild.model.finding import Finding
    from envbuild.model.installed import Distribution

NCCL = "nvidia/nccl/lib/libnccl.so.2"
CUDNN = "nvidia/cudnn/lib/libcudnn.so.9"
TORCH_213 = dist("torch 2.12.1", requires=("nvidia-nccl-cu13==2.29.7", "nvidia-cudnn-cu13"))
LINUX = ("cp311-cp311-manylinux_2_28_x86_64",)


def contested(path: str, *owners: Distribution, winner: Distribution | None) -> Ownership:
    """Return an ownership in which each owner records other bytes for a path."""
    entries = tuple(
        (owner.label, RecordEntry(path=path, sha256=str(number) * 64, size=number))
        for number, owner in enumerate(owners, start=1)
    )
    disk = OnDisk(size=1, sha256="1" * 64)
    label = winner.label if winner else None
    return Ownership(shared=(SharedPath(path=path, owners=entries, disk=disk, winner=label),))


def no_layers() -> Layers:
    return Layers(directory="", owned=False)


def everything(installed: Installed, ownership: Ownership | None = None) -> list[Finding]:
    given = {
        Installed: installed,
        Ownership: ownership or Ownership(),
        Layers: no_layers(),
        Host: host(),
        Links: Links(),
        Facts: FACTS,
    }
    outcomes = judge((*RULES, *FILES), given)
    assert all(isinstance(outcome, Judged) for outcome in outcomes), outcomes
    return [f for outcome in outcomes if isinstance(outcome, Judged) for f in outcome.findings]


# EB101: twins (case DUP-H1)


def test_twins_that_overwrite_each_other_are_named_with_the_one_to_drop() -> None:
    cu12, cu13 = dist("nvidia-nccl-cu12 2.27.3", NCCL), dist("nvidia-nccl-cu13 2.29.7", NCCL)
    installed = env(TORCH_213, cu12, cu13, torch="2.12.1+cu132")
    finding = one(cuda_twins, installed, contested(NCCL, cu12, cu13, winner=cu12))
    assert finding.severity is Severity.ERROR
    assert finding.subject == "nvidia-nccl-cu12 2.27.3"
    assert "on disk is nvidia-nccl-cu12 2.27.3's" in finding.message
    assert finding.fixes == (
        Remove(names=("nvidia-nccl-cu12",)),
        Reinstall(names=("nvidia-nccl-cu13",)),
    )
    assert any(token.endswith(NCCL) for token in finding.brings)


def test_torchs_own_bytes_on_disk_make_twins_a_warning() -> None:
    cu12, cu13 = dist("nvidia-nccl-cu12 2.27.3", NCCL), dist("nvidia-nccl-cu13 2.29.7", NCCL)
    xgboost = dist("xgboost 3.2.0", requires=("nvidia-nccl-cu12",))
    installed = env(TORCH_213, cu12, cu13, xgboost, torch="2.12.1+cu130")
    finding = one(cuda_twins, installed, contested(NCCL, cu12, cu13, winner=cu13))
    assert finding.severity is Severity.WARNING
    assert "removing or installing `nvidia-nccl-cu12` breaks it" in finding.message
    assert finding.hint is not None
    assert "xgboost 3.2.0" in finding.hint


def test_without_a_record_the_facts_say_which_twins_share_paths() -> None:
    twins = [dist(f"nvidia-cudnn-cu{major} 9.{major}", record=None) for major in (12, 13)]
    finding = one(cuda_twins, env(TORCH_213, *twins, torch="2.12.1+cu130"))
    assert finding.subject == "nvidia-cudnn-cu12 9.12"
    assert finding.severity is Severity.ERROR


def test_left_over_cublas_is_harmless() -> None:
    left = dist("nvidia-cublas-cu12 12.9.1.4", "nvidia/cublas/lib/libcublas.so.12")
    right = dist("nvidia-cublas 13.4.0.1", "nvidia/cu13/lib/libcublas.so.13")
    torch = dist("torch 2.12.1", requires=("nvidia-cublas",))
    finding = one(cuda_twins, env(torch, left, right, torch="2.12.1+cu130"))
    assert finding.severity is Severity.NOTE
    assert finding.evidence == ("nvidia-cublas-cu12 12.9.1.4",)
    user = dist("cupy-cuda12x 14.0", requires=("nvidia-cublas-cu12",))
    assert found(cuda_twins, env(torch, left, right, user, torch="2.12.1+cu130")) == []


def test_one_build_of_each_library_is_no_twin() -> None:
    cu12 = dist("nvidia-nccl-cu12 2.26.2", NCCL)
    jax = dist("jax-cuda12-plugin 0.6.0", requires=("nvidia-nccl-cu12>=2.18",))
    assert found(cuda_twins, env(dist("torch 2.7.0"), cu12, jax, torch="2.7.0+cu128")) == []


# EB107, EB111


def test_two_metadata_folders_of_torch() -> None:
    old, new = dist("torch 2.7.0+cu128"), dist("torch 2.11.0")
    path = "torch/lib/libtorch_cuda.so"
    finding = one(two_versions, env(new, old), contested(path, new, old, winner=new))
    assert finding.severity is Severity.WARNING
    assert Install(requirements=("torch==2.11.0",)) in finding.fixes
    mixed = one(two_versions, env(new, old), contested(path, new, old, winner=None))
    assert mixed.severity is Severity.ERROR
    assert "import:torch" in mixed.brings


def test_versions_in_different_folders_or_of_an_egg_are_no_duplicates() -> None:
    other = dist("torch 2.7.0", site="/home/u/.local/lib/python3.11/site-packages")
    egg = dist("torch 2.7.0", info="torch-2.7.0.egg-info")
    assert found(two_versions, env(dist("torch 2.11.0"), other, egg)) == []


@pytest.mark.parametrize(
    ("a", "b", "file", "keep"),
    [
        ("onnxruntime 1.23.2", "onnxruntime-gpu 1.23.2", "onnxruntime/a.so", "onnxruntime-gpu"),
        ("spconv-cu118 2.3.6", "spconv-cu120 2.3.6", "spconv/core_cc.so", "spconv-cu120"),
        ("cumm-cu118 0.4.11", "cumm-cu120 0.4.11", "cumm/core_cc.so", "cumm-cu120"),
        ("nixl-cu12 1.2.0", "nixl-cu13 1.2.0", "nixl_ep/nixl_ep_cpp.so", "nixl-cu13"),
    ],
)
def test_one_import_of_two_distributions(a: str, b: str, file: str, keep: str) -> None:
    first, second = dist(a, file), dist(b, file)
    loser = first if first.name != keep else second
    finding = one(
        same_import_twice, env(first, second), contested(file, first, second, winner=loser)
    )
    assert finding.severity is Severity.ERROR
    assert f"on disk is {loser.label}'s" in finding.message
    assert finding.fixes[-1] == Reinstall(names=(keep,))


def test_two_opencv_work_until_a_library_is_missing() -> None:
    file = "cv2/cv2.abi3.so"
    both = dist("opencv-python 4.10.0.84", file), dist("opencv-python-headless 4.10.0.84", file)
    finding = one(same_import_twice, env(*both))
    assert finding.severity is Severity.WARNING
    assert Reinstall(names=("opencv-python-headless",)) in finding.fixes


def test_cuda_python_from_before_it_left_its_files_to_cuda_bindings() -> None:
    """`uv pip install vllm` of 2026-11-29: flashinfer-python requires `cuda-python>=12.0`."""
    file = "cuda/bindings/driver.cpython-311-x86_64-linux-gnu.so"
    old, new = dist("cuda-python 12.6.2.post1", file), dist("cuda-bindings 13.5.0", file)
    asker = dist("flashinfer-python 0.7.2", requires=("cuda-python>=12.0", "cuda-bindings>=12"))
    for winner, severity in ((new, Severity.WARNING), (old, Severity.ERROR)):
        facts = env(old, new, asker), contested(file, old, new, winner=winner)
        finding = one(same_import_twice, *facts)
        assert finding.severity is severity
        assert finding.fixes == (
            Install(requirements=("cuda-python>=12.9,==13.*", "cuda-bindings>=12")),
        )
        assert one(two_owners, *facts).severity is severity
    meta = dist("cuda-python 13.5.0", requires=("cuda-bindings~=13.5.0",))
    assert found(same_import_twice, env(meta, new)) == []


def test_condas_stubs_and_meta_packages_bring_no_import() -> None:
    stubs = [
        dist(f"{name} 4.11", record=(), installer="conda")
        for name in ("opencv-python", "opencv-python-headless")
    ]
    meta = dist("nixl 1.3.0"), dist("nixl-cu13 1.3.0", "nixl_ep/a.so")
    assert found(same_import_twice, env(*stubs, *meta)) == []


# EB102 (cases MAJ-H1, MAJ-H3)


@pytest.mark.parametrize(
    "package", ["torch-scatter 2.1.2+pt27cu118", "spconv-cu118 2.3.6", "vllm 0.21.0+cu118"]
)
def test_an_extension_of_another_cuda_major(package: str) -> None:
    installed = env(dist("torch 2.7.0+cu128"), dist(package), torch="2.7.0+cu128")
    finding = one(cuda_mix, installed)
    assert finding.severity is Severity.ERROR
    assert "is built for cu11" in finding.message


def test_pypis_torchvision_beside_an_older_cuda() -> None:
    vision = dist("torchvision 0.26.0", tags=LINUX)
    installed = env(dist("torch 2.11.0+cu128"), vision, torch="2.11.0+cu128")
    finding = one(cuda_mix, installed)
    assert finding.message.startswith("torchvision 0.26.0 is built for cu130")
    assert finding.fixes == (
        Install(
            requirements=("torchvision==0.26.0+cu128",),
            index="https://download.pytorch.org/whl/cu128",
        ),
    )
    own = dist("torchvision 0.26.0", tags=LINUX, installer="conda")
    assert found(cuda_mix, env(dist("torch 2.11.0+cu128"), own, torch="2.11.0+cu128")) == []


@pytest.mark.parametrize(
    "package",
    [
        "spconv-cu126 2.3.8",
        "jax-cuda12-plugin 0.6.0",
        "cupy-cuda11x 13.0",
        "cudf-cu12 25.2",
        "jaxlib 0.4.23+cuda11.cudnn86",
        "torch-scatter 2.1.2+pt27cu128",
        "apex 0.1+git",
    ],
)
def test_packages_with_a_cuda_of_their_own_are_no_mix(package: str) -> None:
    installed = env(dist("torch 2.7.0+cu128"), dist(package), torch="2.7.0+cu128")
    assert found(cuda_mix, installed) == []


# EB103 (cases CMP-H1 to H4)


@pytest.mark.parametrize(
    ("torch", "package", "requires", "fix"),
    [
        ("2.4.0+cu121", "torchvision 0.20.1+cu124", ("torch==2.5.1",), "torchvision==0.19.0+cu121"),
        ("2.11.0+cu130", "torchaudio 2.11.1", ("torch>=2.11",), "torchaudio==2.11.0"),
        ("1.13.1+cu117", "torchaudio 2.1.2", ("torch==2.1.2",), ""),
        ("2.10.0+cu128", "torchcodec 0.9.1", (), "torchcodec==0.10.0"),
        ("2.8.0+cu128", "xformers 0.0.31", ("torch==2.7.1",), "xformers==0.0.32.post2"),
        ("2.8.0+cu128", "torchtext 0.18.0", ("torch>=2.3.0",), ""),
        ("2.8.0+cu128", "torch-scatter 2.1.2+pt27cu128", (), "torch-scatter==2.1.2+pt28cu128"),
    ],
)
def test_a_release_for_another_torch(
    torch: str, package: str, requires: tuple[str, ...], fix: str
) -> None:
    metadata = torch if "+cu130" not in torch and "2.10" not in torch else torch.partition("+")[0]
    installed = env(dist(f"torch {metadata}"), dist(package, requires=requires), torch=torch)
    finding = one(wrong_companions, installed)
    assert finding.severity is Severity.ERROR
    assert f"found torch {torch}" in finding.message
    if fix:
        assert any(
            isinstance(one, Install) and one.requirements[0].startswith(fix)
            for one in finding.fixes
        )


def test_equal_versions_of_different_abi() -> None:
    installed = env(
        dist("torch 2.6.0+cu124"), dist("torchvision 0.21.0+cu126"), torch="2.6.0+cu124"
    )
    finding = one(wrong_companions, installed)
    assert finding.severity is Severity.ERROR
    assert "C++ ABI (new against old)" in finding.message


def test_pypis_torch_of_one_abi_with_its_torchvision() -> None:
    vision = dist("torchvision 0.21.0", tags=LINUX, requires=("torch==2.6.0",))
    assert found(wrong_companions, env(dist("torch 2.6.0"), vision, torch="2.6.0+cu124")) == []


def test_torchaudio_compares_the_minor_and_torchvision_does_not() -> None:
    torch = dist("torch 2.7.0+cu128")
    audio = one(wrong_companions, env(torch, dist("torchaudio 2.7.0+cu126"), torch="2.7.0+cu128"))
    vision = one(
        wrong_companions, env(torch, dist("torchvision 0.22.0+cu126"), torch="2.7.0+cu128")
    )
    assert (audio.severity, vision.severity) == (Severity.ERROR, Severity.NOTE)


@pytest.mark.parametrize(
    ("torch", "packages"),
    [
        ("2.7.0+cu128", ("torchvision 0.22.0+cu128", "torchaudio 2.7.0+cu128")),
        ("2.7.1+cu128", ("torchvision 0.22.0+cu128", "torch-scatter 2.1.2+pt27cu128")),
        ("2.11.0+cu130", ("torchvision 0.26.0", "torchaudio 2.11.0", "torchcodec 0.14.0")),
        ("2.3.1+cu121", ("torchtext 0.18.0", "torchvision 0.18.1+cu121")),
        ("2.7.0a0+79aa174.nv25.4", ("torchvision 0.22.0a0", "flash-attn 2.7.4")),
        ("2.8.0+cu128", ("flash-attn 2.8.3", "peft 0.19.0", "bitsandbytes 0.48.2")),
        ("2.16.0.dev20261101+cu132", ("xformers 0.0.35", "torchaudio 2.11.1")),
        ("2.17.0+cu140", ("xformers 0.0.35", "torchaudio 2.11.1")),
    ],
)
def test_companions_that_pair(torch: str, packages: tuple[str, ...]) -> None:
    installed = env(dist(f"torch {torch}"), *map(dist, packages), torch=torch)
    assert found(wrong_companions, installed) == []
    assert found(cuda_mix, installed) == []


def test_a_renamed_wheel_is_known_by_its_address() -> None:
    where = "https://github.com/x/releases/download/v2.8.3/flash_attn-2.8.3%2Bcu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"
    flash = dist(
        "flash-attn 2.8.3", "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so", origin=where
    )
    finding = one(wrong_companions, env(dist("torch 2.8.0+cu128"), flash, torch="2.8.0+cu128"))
    assert "made for torch 2.7" in finding.message
    assert found(wrong_companions, env(dist("torch 2.7.1+cu128"), flash, torch="2.7.1+cu128")) == []


# EB104 (cases ARM-H1, ARM-H2, LOC-H2)


def locked(version: str) -> Layers:
    lock = LockFile(
        path="lockfiles/pylock.t.toml",
        target="t",
        packages=(LockedVersion(name="torch", version=version),),
    )
    return Layers(directory="/app", managed=False, pylocks=(lock,), has_pyproject=True)


def test_pypis_aarch64_torch_on_a_gpu_machine() -> None:
    installed = env(dist("torch 2.10.0"), torch="2.10.0+cpu", machine="aarch64")
    there = host(machine="aarch64", gpus=(gpu("NVIDIA GB200", "10.0"),))
    finding = one(wrong_torch, installed, there, no_layers())
    assert finding.severity is Severity.ERROR
    assert "is the CPU build, this machine has 1 GPU (NVIDIA GB200)" in finding.message
    assert any("aarch64 wheel" in line for line in finding.evidence)
    assert isinstance(finding.fixes[0], Install)
    assert finding.fixes[0].requirements[0].startswith("torch==2.10.0+cu13")


def test_a_cpu_build_where_nobody_has_a_gpu_or_all_asked_for_it() -> None:
    cpu = env(dist("torch 2.10.0+cpu"), torch="2.10.0+cpu")
    assert found(wrong_torch, cpu, host(), no_layers()) == []
    there = host(gpus=(gpu("NVIDIA L4", "8.9"),))
    assert found(wrong_torch, cpu, there, locked("2.10.0+cpu")) == []
    assert one(wrong_torch, cpu, there, no_layers()).severity is Severity.WARNING
    assert one(wrong_torch, cpu, host(), locked("2.10.0+cu128")).severity is Severity.ERROR


def test_gpus_that_somebody_names_where_there_are_none() -> None:
    cpu = env(dist("torch 2.8.0+cpu"), torch="2.8.0+cpu")
    finding = one(wrong_torch, cpu, host(), no_layers(), aim("10.0", "12.0"))
    assert finding.message == "torch 2.8.0+cpu is the CPU build, --gpu names sm_100 and sm_120"
    assert found(wrong_torch, cpu, host(), locked("2.8.0+cpu"), aim("10.0")) == []


def test_a_fact_that_may_be_absent_and_one_that_may_not() -> None:
    (skipped,) = judge((wrong_torch,), {Host: host()})
    assert isinstance(skipped, Skipped)
    assert skipped.reason == "not read: Installed, Layers, Facts"
    assert wrong_torch.optional == ("aim",)
    assert dict(wrong_torch.needs)["aim"] is Aim


def test_pypis_build_where_the_lock_names_another_cuda() -> None:
    finding = one(wrong_torch, env(dist("torch 2.0.1"), torch="2.0.1+cu117"), locked("2.0.1+cu118"))
    assert finding.message == (
        "torch 2.0.1+cu117 (PyPI's build) is installed, the lock says 2.0.1+cu118"
    )
    same = env(dist("torch 2.8.0"), torch="2.8.0+cu128")
    assert finding.because == ("lock:lockfiles/pylock.t.toml",)
    assert found(wrong_torch, same, locked("2.8.0+cu128")) == []
    assert found(wrong_torch, same, locked("2.8.0")) == []


def test_a_wheel_for_arm_servers_on_a_jetson() -> None:
    server = dist("torch 2.11.0", requires=("nvidia-nccl-cu13==2.28.9",))
    installed = env(server, torch="2.11.0+cu130", machine="aarch64")
    finding = one(wrong_torch, installed, host(tegra="35.4.1"), no_layers())
    assert isinstance(finding.fixes[0], Manual)
    assert "JetPack 5 under Python 3.8" in finding.fixes[0].text
    assert found(wrong_torch, installed, host(tegra="38.2"), no_layers()) == []
    assert found(wrong_torch, installed, host(tegra="35.4.1", is_image=True), no_layers()) == []
    cpu = env(dist("torch 2.10.0"), torch="2.10.0+cpu", machine="aarch64")
    thor = host(tegra="38.2", gpus=(gpu("NVIDIA Thor", "11.0"),))
    assert "is the CPU build, this machine" in one(wrong_torch, cpu, thor, no_layers()).message
    own = env(dist("torch 2.3.0a0+6ddf5cf85e.nv24.4"), torch="2.3.0a0+6ddf5cf85e.nv24.4")
    assert found(wrong_torch, own, host(tegra="36.4.3"), no_layers()) == []


# EB106 (case MIS-H1)


def test_a_missing_library_of_torch_is_an_error_that_explains_the_loader() -> None:
    torch = dist(
        "torch 2.9.1", requires=("nvidia-nvshmem-cu12==3.3.20; platform_system == 'Linux'",)
    )
    finding = one(unmet_requirements, env(torch, torch="2.9.1+cu128"))
    assert finding.severity is Severity.ERROR
    assert finding.message == ("torch 2.9.1 requires `nvidia-nvshmem-cu12==3.3.20`, found none")
    assert "library:libnvshmem_host.so.3" in finding.brings
    assert finding.fixes == (Install(requirements=("nvidia-nvshmem-cu12==3.3.20",)),)


def test_what_others_miss_of_the_same_library_follows_from_it() -> None:
    torch = dist("torch 2.8.0", requires=("nvidia-cublas-cu12==12.8.4.1",))
    cudnn = dist("nvidia-cudnn-cu12 9.10.2.21", requires=("nvidia-cublas-cu12",))
    findings = found(unmet_requirements, env(torch, cudnn, torch="2.8.0+cu128"))
    (problem,) = sort_findings(findings).problems
    assert problem.cause.subject == "torch 2.8.0"
    assert [one_.subject for one_ in problem.explains] == ["nvidia-cudnn-cu12 9.10.2.21"]


@pytest.mark.parametrize("package", ["triton==3.4.0", "nvidia-cudnn-cu12==9.10.2.21"])
def test_another_version_than_torch_pins_is_put_back(package: str) -> None:
    name = package.partition("==")[0]
    torch = dist("torch 2.8.0", requires=(package,))
    finding = one(unmet_requirements, env(torch, dist(f"{name} 3.3.1"), torch="2.8.0+cu128"))
    assert finding.severity is Severity.WARNING
    assert finding.fixes == (Install(requirements=(package,)),)
    assert ("cuDNN version incompatibility" in (finding.hint or "")) is ("cudnn" in package)
    newer = one(unmet_requirements, env(torch, dist(f"{name} 10.1"), torch="2.8.0+cu128"))
    assert "cuDNN" not in (newer.hint or "")


@pytest.mark.parametrize(
    ("plugin", "wrong"), [("jax-cuda12-plugin 0.5.3", True), ("jax-cuda12-plugin 0.10.2", False)]
)
def test_a_part_of_a_package_is_judged_though_nobody_asked_for_the_extra(
    plugin: str,
    wrong: bool,  # noqa: FBT001
) -> None:
    """Such a plugin is left aside, and jax computes on the CPU; `uv pip check` is content."""
    jax = dist(
        "jax 0.10.2",
        requires=(
            'jax-cuda12-plugin[with-cuda]<=0.10.2,>=0.10.1; extra == "cuda12"',
            'jax-cuda12-plugin<=0.10.2,>=0.10.1; extra == "cuda12-local"',
            'jax-cuda13-plugin<=0.10.2,>=0.10.1; extra == "cuda13"',
            'kubernetes<3; extra == "k8s"',
        ),
    )
    findings = found(unmet_requirements, env(jax, dist(plugin), dist("kubernetes 9")))
    assert [one_.severity for one_ in findings] == [Severity.WARNING] * wrong
    if wrong:
        (install,) = findings[0].fixes
        assert isinstance(install, Install)
        assert install.requirements[0].startswith("jax-cuda12-plugin[with-cuda]<=0.10.2")


def test_a_jaxlib_that_jax_does_not_want_is_put_right() -> None:
    jax = dist("jax 0.10.2", requires=("jaxlib<=0.10.2,>=0.10.1", "numpy>=3"))
    finding = one(unmet_requirements, env(jax, dist("jaxlib 0.5.3"), dist("numpy 2.0")))
    assert finding.fixes == (Install(requirements=("jaxlib<=0.10.2,>=0.10.1",)),)


def test_a_wrong_version_is_a_consequence_of_what_is_wrong_with_either() -> None:
    torch, vision = dist("torch 2.11.0"), dist("torchvision 0.22.0", requires=("torch==2.7.0",))
    finding = one(unmet_requirements, env(torch, vision, torch="2.11.0+cu130"))
    assert finding.severity is Severity.WARNING
    assert set(finding.because) == {
        *("dist:torchvision", "dist:torch"),
        *("drift:torchvision", "drift:torch"),
    }
    assert finding.fixes == ()
    assert "found 2.11.0" in finding.message


@pytest.mark.parametrize(
    "requires",
    [
        "absent; extra == 'dev'",
        "absent; python_version < '3.9'",
        "absent; platform_machine == 'aarch64' and sys_platform == 'linux'",
        "absent; sys_platform == 'win32' and extra == 'gui'",
        "torch==2.11.0+cu130",
        "torch>=2.7,<2.12",
        "Torch",
        "numpy @ https://example.org/numpy-2.0.0-py3-none-any.whl",
        "absent; platform_release >= '5' and extra == 'x'",
        "not a requirement !!",
    ],
)
def test_requirements_that_ask_for_nothing_here(requires: str) -> None:
    one_ = dist("user 1.0", requires=(requires,))
    installed = env(dist("torch 2.11.0"), dist("numpy 2.0.0"), one_, torch="2.11.0+cu130")
    assert found(unmet_requirements, installed) == []


def test_an_extra_counts_only_where_somebody_asks_for_it() -> None:
    toolkit = dist("cuda-toolkit 13.0.2", requires=("nvidia-cublas==13.1.0.3; extra == 'cublas'",))
    torch = dist("torch 2.11.0", requires=("cuda-toolkit[cublas]==13.0.2",))
    finding = one(unmet_requirements, env(torch, toolkit, torch="2.11.0+cu130"))
    assert finding.subject == "cuda-toolkit 13.0.2"
    assert found(unmet_requirements, env(dist("torch 2.11.0"), toolkit)) == []


def test_an_extra_that_asks_for_itself_ends() -> None:
    loop = dist("loop 1", requires=("loop[a]", "loop[b]; extra == 'a'", "loop[a]; extra == 'b'"))
    assert found(unmet_requirements, env(loop)) == []
    assert len(needs_of(env(loop))) == 3


def test_condas_own_and_other_peoples_folders_are_left_alone() -> None:
    conda = dist("pytorch-lightning 2.0", requires=("torch",), installer="conda")
    debian = dist("cups 1.0", requires=("absent",), site="/usr/lib/python3/dist-packages")
    egg = dist("egg 1.0", requires=("absent",), record=None)
    assert found(unmet_requirements, env(conda, debian, egg)) == []


def test_an_unknown_python_is_told_by_the_wheels_or_judges_no_marker() -> None:
    wheel = dist("torch 2.7.0", tags=LINUX)
    asks = dist("user 1", requires=("absent; python_version >= '3.11'",))
    assert python_of(env(wheel, python="")) == "3.11"
    assert len(found(unmet_requirements, env(wheel, asks, python=""))) == 1
    assert found(unmet_requirements, env(asks, python="")) == []


# EB108, EB109, EB110, EB112 (cases NPY, CPU, DRF-H3, LEK-H1)


@pytest.mark.parametrize("package", ["torch 2.2.2", "opencv-python 4.9.0.80", "pandas 2.2.1"])
def test_compiled_against_numpy_1(package: str) -> None:
    finding = one(numpy_abi, env(dist(package), dist("numpy 2.0.0")))
    assert finding.fixes == (Install(requirements=("numpy<2",)),)
    assert "found numpy 2.0.0" in finding.message


@pytest.mark.parametrize(
    ("package", "numpy"),
    [
        ("torch 2.3.0+cu121", "2.1.0"),
        ("torch 2.2.2", "1.26.4"),
        ("opencv-python 4.10.0.84", "2.2"),
        ("pandas 2.2.2", "2.0.0"),
        ("torch unknown", "2.0.0"),
    ],
)
def test_numpy_that_fits(package: str, numpy: str) -> None:
    assert found(numpy_abi, env(dist(package), dist(f"numpy {numpy}"))) == []


def test_hollow_packages() -> None:
    flash = dist("flash-attn 2.8.3", "flash_attn/__init__.py", tags=("py3-none-any",))
    cluster = dist(
        "torch-cluster 1.6.3", "torch_cluster/_version_cpu.so", "torch_cluster/_knn_cpu.so"
    )
    mmcv = dist("mmcv 2.2.0", "mmcv/ops/__init__.py", "mmcv/version.py")
    installed = env(dist("torch 2.7.0+cu128"), flash, cluster, mmcv, torch="2.7.0+cu128")
    by = {finding.subject: finding for finding in found(hollow, installed)}
    assert set(by) == {flash.label, cluster.label, mmcv.label}
    assert "(wheel tag py3-none-any)" in by[flash.label].message
    assert "has only *_cpu.so" in by[cluster.label].message
    assert by[cluster.label].fixes == (
        Install(
            requirements=("torch-cluster==1.6.3+pt27cu128",),
            find_links="https://data.pyg.org/whl/torch-2.7.0+cu128.html",
        ),
    )


def test_packages_that_are_whole_or_meant_to_have_no_compiled_part() -> None:
    whole = (
        dist("flash-attn 2.8.3", "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"),
        dist(
            "torch-cluster 1.6.3+pt27cu128",
            "torch_cluster/_knn_cpu.so",
            "torch_cluster/_knn_cuda.so",
        ),
        dist("mmcv 1.7.2", "mmcv/__init__.py"),
        dist("flash-attn-4 4.0.0", "flash_attn/cute/__init__.py"),
        dist("xformers 0.0.30", "xformers/_C.so"),
        dist("detectron2 0.6", "detectron2.pth", editable=True),
        dist("pytorch3d 0.7.8", record=None),
    )
    assert found(hollow, env(dist("torch 2.7.0"), *whole, torch="2.7.0+cu126")) == []
    cpu = dist("torch-scatter 2.1.2+pt27cpu", "torch_scatter/_scatter_cpu.so")
    assert found(hollow, env(dist("torch 2.7.0+cpu"), cpu, torch="2.7.0+cpu")) == []


def test_pip_over_condas_torch() -> None:
    conda = dist("pytorch 1.13.1", record=None, installer="conda", site="/opt/conda/conda-meta")
    torch = dist("torch 2.6.0", installer="pip")
    finding = one(two_installers, env(torch, conda, kind=EnvironmentKind.CONDA))
    assert "over conda's pytorch 1.13.1" in finding.message
    own = dist("torch 1.13.1", installer="conda")
    assert found(two_installers, env(own, conda, kind=EnvironmentKind.CONDA)) == []


def test_condas_torch_with_a_new_mkl(tmp_path: Path) -> None:
    def conda(folder: str, torch: str, mkl: str) -> Installed:
        made = EnvMaker(tmp_path / folder).conda()
        made.conda_package("pytorch", torch).conda_package("mkl", mkl)
        return made.read()

    finding = one(conda_mkl, conda("a", "2.2.2", "2024.1.0"))
    assert finding.fixes == (Manual(text="conda install 'mkl<2024.1'"),)
    assert found(conda_mkl, conda("b", "2.2.2", "2023.1.0")) == []
    assert found(conda_mkl, conda("c", "2.5.1", "2024.2.2")) == []
    wheel = env(dist("torch 2.2.2"), dist("mkl 2024.1.0"))
    assert found(conda_mkl, wheel) == []


# all together


def test_the_incident_has_one_root_cause(tmp_path: Path) -> None:
    made = EnvMaker(tmp_path).venv()
    made.torch("2.11.0+cu130", metadata="2.11.0", requires=["nvidia-nccl-cu13==2.28.9"])
    made.install("nvidia-nccl-cu13", "2.28.9", files={NCCL: b"thirteen"})
    made.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: b"twelve"})
    vision = {"torchvision/_C.so": b"x"}
    made.install("torchvision", "0.22.0+cu128", files=vision, requires=["torch==2.7.0"])
    findings = everything(made.read(), made.ownership())
    problems = sort_findings(findings).problems
    codes = [(one.cause.code, sorted({f.code for f in one.explains})) for one in problems]
    assert codes == [("EB103", ["EB102", "EB106"]), ("EB101", ["EB201"])]


def test_a_healthy_environment_is_silent(tmp_path: Path) -> None:
    made = EnvMaker(tmp_path).venv()
    made.torch("2.7.0+cu128", requires=["nvidia-nccl-cu12==2.26.2", "numpy; extra == 'opt'"])
    made.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: b"x", "nvidia/__init__.py": b""})
    made.install("nvidia-cudnn-cu12", "9.7.1.26", files={CUDNN: b"y", "nvidia/__init__.py": b""})
    made.install(
        "torchvision", "0.22.0+cu128", files={"torchvision/_C.so": b"z"}, requires=["torch==2.7.0"]
    )
    made.install("certifi", "2026.1.1", files={"certifi/cacert.pem": "one"})
    made.write("certifi/cacert.pem", "one and the site's own")
    assert everything(made.read(), made.ownership()) == []


def test_a_thousand_distributions_are_judged_at_once() -> None:
    many = [dist(f"p{n} 1.0", f"p{n}/a.py", requires=(f"p{n + 1}>=1",)) for n in range(999)]
    started = time.perf_counter()
    assert everything(env(*many, dist("p999 1.0"))) == []
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("package", ["torchtext 0.18.0", "vllm-flash-attn 2.6.2"])
def test_a_package_that_is_released_no_more_is_not_looked_for(package: str) -> None:
    one_of_old = dist(package, requires=("torch==2.4.0",))
    installed = env(dist("torch 2.8.0"), one_of_old, torch="2.8.0+cu128")
    finding = one(wrong_companions, installed)
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert "no-binary" not in fix.text
    assert f"{one_of_old.version}, the last release, is for torch 2." in fix.text
    assert finding.hint is None


def test_the_tables_have_sources_and_no_name_twice() -> None:
    names = [part.name for part in compiled_parts()]
    assert len(names) == len(set(names))
    assert all(part.source and part.how and part.parts for part in compiled_parts())
    assert all(source for _, _, source in numpy2_releases())
    assert all(one.source for one in ended().values())
    assert all(group.source and len(group.names) > 1 for group in same_imports())


def test_every_rule_has_a_page_with_the_four_parts() -> None:
    for rule in RULES:
        for part in ("**What it finds.**", "**Why it matters.**", "**Example.**", "**Fix.**"):
            assert part in rule.page, rule.code
    codes = [rule.code for rule in RULES]
    assert len(codes) == len(set(codes))
