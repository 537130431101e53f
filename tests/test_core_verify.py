"""What speaks against a locked set: each code found, and not found where all is well."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from fakes import FakeFacts, candidate, capability, code, cuda, linux, pinned, target, wheel

from envbuild.core.lockview import parse_local
from envbuild.core.verify.proof import refuses, verify
from envbuild.model.facts import Pairing, TorchBuild
from envbuild.model.finding import Severity
from envbuild.model.lock import Artifact, Pinned, TargetLock
from envbuild.model.stack import Candidate, IndexPin, PypiPin, SourceBuild, Stack
from envbuild.model.target import Platform

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.target import Target

CU128 = "https://download.pytorch.org/whl/cu128"
TORCH = pinned("torch==2.7.0+cu128", index=CU128)
VISION = pinned("torchvision==0.22.0+cu128", index=CU128)
NCCL = pinned(
    "nvidia-nccl-cu12==2.26.2", "nvidia_nccl_cu12-2.26.2-py3-none-manylinux2014_x86_64.whl"
)
SPCONV = pinned("spconv-cu126==2.3.8")
HERE = target("12.0")
FACTS = FakeFacts(
    builds=(
        TorchBuild(
            torch="2.7.0",
            cuda=cuda("12.8"),
            on_pypi=False,
            cxx11_abi=True,
            code_x86_64=code("sm_90 sm_120"),
        ),
        TorchBuild(torch="2.7.0", cuda=cuda("12.6"), on_pypi=True, code_x86_64=code("sm_80 sm_90")),
        TorchBuild(torch="2.7.0", cuda=None, on_pypi=False, on_pypi_aarch64=True),
        TorchBuild(
            torch="2.11.0", cuda=cuda("13.0"), on_pypi=True, code_x86_64=code("sm_90 sm_120")
        ),
    ),
    codes={
        NCCL.artifacts[0].filename: code("sm_90 sm_120"),
        VISION.artifacts[0].filename: code("sm_90 sm_120"),
        SPCONV.artifacts[0].filename: code("sm_90 sm_120"),
        linux("spconv_cu120-2.3.6"): code("sm_89 compute_52"),
        linux("spconv_cu124-2.3.8"): code("sm_90 compute_90"),
        linux("cumm_cu126-0.7.11"): code(""),
    },
    pairs=(
        Pairing(project="torchvision", version="0.22.0", torch="==2.7.0"),
        Pairing(project="torchaudio", version="2.11.1", torch=">=2.13", source="symbols"),
    ),
    needs={"2.7.0": ("ncclAllReduce", "ncclCommInitRankScalable"), "2.11.0": ("ncclDevComm",)},
    nccl={
        "ncclAllReduce": "2.16.2",
        "ncclCommInitRankScalable": "2.23.4",
        "ncclDevComm": "2.28.3",
    },
    shared={("nvidia-nccl-cu12", "nvidia-nccl-cu13"): ("nvidia/nccl/lib/libnccl.so.2",)},
)
STACK = Stack(
    candidate=candidate("cu128", "2.7.0+cu128"),
    pins=(IndexPin(wheel=candidate("cu128", "2.7.0+cu128").torch),),
)


def findings(
    *packages: Pinned,
    where: Target = HERE,
    stack: Stack = STACK,
    cuda: str | None = "12.8",
    builds: tuple[SourceBuild, ...] = (),
    coupled: frozenset[str] = frozenset(),
    facts: FakeFacts = FACTS,
) -> tuple[Finding, ...]:
    lock = TargetLock(
        target="t",
        python=where.python,
        platform=where.platform.value,
        packages=packages,
        cuda=cuda,
        builds=builds,
    )
    return verify(stack, lock, where, facts, coupled=coupled)


def found(code: str, *packages: Pinned, **options: object) -> list[tuple[str, str]]:
    every = findings(*packages, **options)  # type: ignore[arg-type]
    return [(f.severity.value, f.message) for f in every if f.code == code]


def test_a_clean_set_has_no_findings() -> None:
    assert findings(TORCH, VISION, NCCL, SPCONV, pinned("numpy==2.2.0")) == ()


def test_a_set_without_torch_is_not_judged_by_it() -> None:
    assert findings(pinned("numpy==2.2.0"), SPCONV) == ()


def test_eb101_twins_share_paths() -> None:
    twin = pinned("nvidia-nccl-cu13==2.28.9")
    (finding,) = [f for f in findings(TORCH, NCCL, twin) if f.code == "EB101"]
    assert finding.subject == "nvidia-nccl-cu13 2.28.9"
    assert finding.evidence == ("nvidia/nccl/lib/libnccl.so.2",)
    assert finding.hint is not None
    assert "only nvidia-nccl-cu12 2.26.2 belongs to torch" in finding.hint
    assert found("EB102", TORCH, NCCL, twin) == []


def test_eb101_is_silent_about_twins_that_share_nothing() -> None:
    pair = (pinned("nvidia-cublas-cu12==12.8.4.1"), pinned("nvidia-cublas==13.1.0.3"))
    assert found("EB101", TORCH, *pair) == []
    assert found("EB102", TORCH, *pair) == [
        ("error", "nvidia-cublas belongs to CUDA 13, torch 2.7.0+cu128 to CUDA 12")
    ]


def test_eb102_counts_every_package_of_the_other_major_once() -> None:
    others = (
        pinned("spconv-cu118==2.3.8"),
        pinned("torch-scatter==2.1.2+pt27cu118"),
        pinned("nvidia-cudnn-cu11==9.0"),
        pinned("nvidia-ml-py==13.0"),
    )
    assert found("EB102", TORCH, *others) == [
        (
            "error",
            (
                "spconv-cu118, torch-scatter, nvidia-cudnn-cu11 belong to CUDA 11, "
                "torch 2.7.0+cu128 to CUDA 12"
            ),
        )
    ]


@pytest.mark.parametrize(
    ("package", "message"),
    [
        (
            pinned("torchvision==0.22.0+cu126"),
            "torchvision 0.22.0+cu126 is built for cu126, torch 2.7.0+cu128 for cu128",
        ),
        (
            pinned("torch-scatter==2.1.2+pt27cpu"),
            "torch-scatter 2.1.2+pt27cpu is built for cpu, torch 2.7.0+cu128 for cu128",
        ),
        (
            pinned("torchvision==0.22.0"),
            "torchvision 0.22.0 is built for cu126, torch 2.7.0+cu128 for cu128",
        ),
    ],
)
def test_eb102_builds_of_one_major_do_not_mix_either(package: Pinned, message: str) -> None:
    assert found("EB102", TORCH, package) == [("error", message)]


def test_eb102_accepts_what_belongs() -> None:
    flash = pinned(
        "flash-attn==2.8.3", linux("flash_attn-2.8.3+cu123torch2.7cxx11abiTRUE"), index="x"
    )
    from_page = pinned("torchvision==0.22.0", index=CU128)
    assert found("EB102", TORCH, flash, from_page, SPCONV) == []


def test_eb103_a_fact_against_the_metadata() -> None:
    torch = pinned("torch==2.11.0")
    audio = pinned("torchaudio==2.11.1")
    assert found("EB103", torch, audio, cuda="13.0") == [
        ("error", "torchaudio 2.11.1 works with torch >=2.13, locked is 2.11.0")
    ]
    assert found("EB103", TORCH, VISION) == []


def test_eb103_file_names_that_say_another_torch() -> None:
    scatter = pinned("torch-scatter==2.1.2+pt210cu128")
    assert found("EB103", TORCH, scatter) == [
        ("error", "torch-scatter 2.1.2+pt210cu128 is built for torch 2.10, locked is torch 2.7")
    ]
    flash = pinned("flash-attn==2.8.3", linux("flash_attn-2.8.3+cu12torch2.7cxx11abiFALSE"))
    assert found("EB103", TORCH, flash) == [
        ("error", "flash-attn 2.8.3 is built for the other C++ ABI than torch 2.7.0+cu128")
    ]
    assert found("EB103", TORCH, pinned("torch-scatter==2.1.2+pt27cu128")) == []


def test_eb104_the_cpu_build_on_a_gpu_target() -> None:
    torch = pinned("torch==2.7.0+cpu")
    messages = [message for _, message in found("EB104", torch)]
    assert "torch 2.7.0+cpu is the CPU build, the target has GPUs" in messages
    assert found("EB104", torch, where=target(), cuda=None, stack=cpu_stack()) == []


def cpu_stack() -> Stack:
    return Stack(candidate=candidate("cpu", "2.7.0+cpu"), pins=())


def test_eb104_torch_of_pypi_with_another_cuda() -> None:
    (_, first), *_ = found("EB104", pinned("torch==2.7.0"))
    assert first == (
        "torch 2.7.0 from PyPI is built for CUDA 12.6, the target takes torch 2.7.0+cu128"
    )


def test_eb104_torch_of_pypi_on_aarch64_is_a_cpu_build() -> None:
    where = target("9.0", platform=Platform.LINUX_AARCH64)
    (_, first), *_ = found("EB104", pinned("torch==2.7.0"), where=where)
    assert first == "torch 2.7.0 from PyPI is a CPU build on linux-aarch64"


def test_eb104_an_aarch64_wheel_of_the_index_without_local_version_is_fine() -> None:
    where = target("9.0", platform=Platform.LINUX_AARCH64)
    chosen = wheel("cu124", "torch-2.7.0-cp311-cp311-linux_aarch64.whl")
    stack = Stack(candidate=Candidate(torch=chosen, cuda=cuda("12.4")), pins=())
    torch = pinned("torch==2.7.0", chosen.filename, index="https://mirror.example/cu124")
    assert found("EB104", torch, where=where, stack=stack, cuda="12.4") == []


def test_eb104_another_cuda_than_the_lock_says() -> None:
    assert found("EB104", TORCH, cuda="12.6") == [
        ("error", "torch 2.7.0+cu128 is built for CUDA 12.8, the lock says 12.6")
    ]


def test_eb104_the_set_is_not_the_stack() -> None:
    stack = Stack(
        candidate=STACK.candidate,
        pins=(*STACK.pins, PypiPin(project="spconv-cu126", specifier="==2.3.8")),
    )
    other = pinned("torch==2.7.1+cu128", index=CU128)
    assert found("EB104", other, pinned("spconv-cu126==2.3.6"), stack=stack) == [
        ("error", "spconv-cu126 2.3.6 is locked, the solver chose `spconv-cu126==2.3.8`"),
        ("error", "torch 2.7.1+cu128 is locked, the solver chose 2.7.0+cu128"),
    ]
    assert found("EB104", TORCH, SPCONV, stack=stack) == []


def test_eb105_a_coupled_package_that_nobody_asked_to_compile() -> None:
    sdist = Artifact(filename="flash_attn-2.8.3.tar.gz", url="https://x", sha256="0" * 64)
    flash = Pinned(name="flash-attn", version="2.8.3", index="x", artifacts=(sdist,))
    coupled = frozenset({"flash-attn"})
    assert found("EB105", TORCH, flash, coupled=coupled) == [
        (
            "error",
            "flash-attn 2.8.3 has no wheel for the target and no entry in the build table",
        )
    ]
    asked = (SourceBuild(project="flash-attn", version="2.8.3"),)
    assert found("EB105", TORCH, flash, coupled=coupled, builds=asked) == []
    assert found("EB105", TORCH, dataclasses.replace(flash, name="antlr4"), coupled=coupled) == []


def test_eb301_symbols_that_the_locked_nccl_lacks() -> None:
    old = pinned("nvidia-nccl-cu12==2.21.5")
    (finding,) = [f for f in findings(TORCH, old) if f.code == "EB301"]
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "torch 2.7.0+cu128 needs 1 NCCL symbol that `nvidia-nccl-cu12` 2.21.5 lacks, "
        "the newest came with 2.23.4"
    )
    assert finding.evidence == ("ncclCommInitRankScalable (since 2.23.4)",)
    assert found("EB301", TORCH, NCCL) == []
    assert found("EB301", TORCH, pinned("nvidia-nccl-cu12==2.23.4")) == []


def test_eb301_a_torch_that_was_not_examined_is_said_to_be_unknown() -> None:
    torch = pinned("torch==2.99.0+cu128", index=CU128)
    (severity, message) = found("EB301", torch, NCCL)[0]
    assert severity == "unknown"
    assert message == "it is not known which NCCL symbols torch 2.99.0+cu128 needs"


def test_eb401_no_code_for_a_gpu() -> None:
    torch = pinned("torch==2.7.0+cu126")
    assert found("EB401", torch, cuda="12.6") == [
        ("error", "torch 2.7.0+cu126 has no code for sm_120")
    ]
    assert found("EB401", TORCH, SPCONV, where=target("9.0")) == []


def test_eb401_nccl_matters_on_several_gpus_only() -> None:
    where = target("8.0", "12.0")
    severities = {
        f.subject: f.severity for f in findings(TORCH, NCCL, where=where) if f.code == "EB401"
    }
    assert severities == {
        "nvidia-nccl-cu12 2.26.2": Severity.WARNING,
        "torch 2.7.0+cu128": Severity.ERROR,
    }


def test_eb401_what_is_not_known_is_said_once() -> None:
    unknown = (pinned("torch-scatter==2.1.2+pt27cu128"), pinned("bitsandbytes==0.50.2"))
    assert found("EB401", TORCH, *unknown, pinned("nvidia-cublas-cu12==12.8.4.1")) == [
        (
            "unknown",
            "the GPU code is not known of torch-scatter 2.1.2+pt27cu128, bitsandbytes 0.50.2",
        )
    ]


def test_eb401_one_package_is_named_once() -> None:
    unknown = pinned("torch-scatter==2.1.2+pt27cu128")
    [finding] = [f for f in findings(TORCH, unknown) if f.code == "EB401"]
    assert (finding.subject, finding.message) == (
        "torch-scatter 2.1.2+pt27cu128",
        "the GPU code is not known",
    )


def test_eb401_a_wheel_without_device_code_is_fine() -> None:
    assert found("EB401", TORCH, pinned("cumm-cu126==0.7.11")) == []


def test_eb402_jit_is_a_note_and_a_known_risk_a_warning() -> None:
    assert found("EB402", TORCH, pinned("spconv-cu124==2.3.8")) == [
        (
            "note",
            (
                "sm_120 runs spconv-cu124 2.3.8 only by compiling its compute_90 code "
                "when it is loaded"
            ),
        )
    ]
    ((severity, message),) = found("EB402", TORCH, pinned("spconv-cu120==2.3.6"))
    assert severity == "warning"
    assert message.endswith("it also bundles NVRTC 12.0, which knows no GPU newer than sm_90")
    assert found("EB402", TORCH, SPCONV) == []


def test_eb401_ptx_that_the_target_s_driver_cannot_compile() -> None:
    code = dataclasses.replace(
        FACTS.codes[linux("spconv_cu124-2.3.8")], isa=((capability("9.0"), (8, 8)),)
    )
    facts = dataclasses.replace(FACTS, codes={**FACTS.codes, linux("spconv_cu126-2.3.8"): code})
    older, fitting = target("12.0", driver=">=570"), target("12.0", driver=">=575")
    assert found("EB401", TORCH, SPCONV, where=older, facts=facts) == [
        (
            "error",
            (
                "spconv-cu126 2.3.8 has only PTX for sm_120, of CUDA 12.9, which driver 570"
                " (CUDA 12.8) cannot compile"
            ),
        )
    ]
    assert found("EB401", TORCH, SPCONV, where=fitting, facts=facts) == []
    assert found("EB402", TORCH, SPCONV, where=fitting, facts=facts)[0][0] == "note"
    assert found("EB402", TORCH, SPCONV, where=target("12.0"), facts=facts)[0][0] == "note"


def test_a_bound_for_the_driver_is_none_for_a_gpu_that_is_newer_than_it() -> None:
    code = dataclasses.replace(
        FACTS.codes[linux("spconv_cu124-2.3.8")], isa=((capability("9.0"), (8, 5)),)
    )
    facts = dataclasses.replace(FACTS, codes={**FACTS.codes, linux("spconv_cu126-2.3.8"): code})
    where = target("8.9", "12.0", driver=">=525")  # a machine with sm_120 has 570 or newer
    assert found("EB402", TORCH, SPCONV, where=where, facts=facts)[0][0] == "note"
    errors = [text for _, text in found("EB401", TORCH, SPCONV, where=where, facts=facts)]
    assert [text for text in errors if "spconv" in text] == [
        "spconv-cu126 2.3.8 has no code for sm_89"
    ]


def test_gpu_code_is_not_judged_without_gpus() -> None:
    assert findings(TORCH, pinned("vllm==0.10.0"), where=target(cuda="==12.8")) == ()


def test_the_worst_comes_first_and_only_errors_refuse() -> None:
    every = findings(TORCH, pinned("spconv-cu124==2.3.8"), pinned("nvidia-nccl-cu12==2.21.5"))
    assert [f.severity.value for f in every] == ["error", "note", "unknown"]
    assert refuses(every)
    assert not refuses(every[1:])


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("cu128", ("cu128", 12, None, None)),
        ("cpu", ("cpu", None, None, None)),
        ("pt27cu128", ("cu128", 12, "2.7", None)),
        ("pt210cpu", ("cpu", None, "2.10", None)),
        ("cu12torch2.10cxx11abitrue", ("cu12", 12, "2.10", True)),
        ("cu123torch2.4cxx11abiFALSE", ("cu12", 12, "2.4", False)),
        ("git.abc", None),
        ("", None),
    ],
)
def test_local_versions_are_read(local: str, expected: tuple[object, ...] | None) -> None:
    built = parse_local(local)
    assert (dataclasses.astuple(built) if built else None) == expected
