"""Small twins of the real broken environments of test_doctor_real.py, through the command line.

The same packages, versions, file names and symbols in libraries of a few hundred bytes. The
incident itself and its project are in test_cli_doctor.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import incident
import pytest
from elfmaker import SASS, fat_binary, make_elf
from envmaker import EnvMaker

from envbuild.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from envmaker import MadeEnv

NCCL = incident.LIBRARY
CUDA = "torch/lib/libtorch_cuda.so"
JITLINK = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
SPARSE = "nvidia/cusparse/lib/libcusparse.so.12"
CUDNN = "nvidia/cudnn/lib"
PARTS = ("libcudnn.so.9", "libcudnn_ops.so.9", "libcudnn_graph.so.9")
WINDOW = ("ncclCommWindowDeregister", "ncclCommWindowRegister")
ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD_ERROR = "_ZN3c105ErrorC2ENS_14SourceLocationESs"
SET_DEVICE, OLD_SET_DEVICE = "_ZN3c104cuda9SetDeviceEab", "_ZN3c104cuda9SetDeviceEa"
SLEEP = "_ZN2at4cuda5sleepEl"
LOCK = """\
version = 1
revision = 3
requires-python = ">=3.11"

[[package]]
name = "x"
version = "0"
source = { virtual = "." }
dependencies = [{ name = "torch" }]

[[package]]
name = "torch"
version = "2.11.0"
source = { registry = "https://pypi.org/simple" }
dependencies = [{ name = "nvidia-nccl-cu13" }]

[[package]]
name = "nvidia-nccl-cu13"
version = "2.28.9"
source = { registry = "https://pypi.org/simple" }
"""


def library(name: str, *needed: str, **parts: tuple[str, ...]) -> bytes:
    """Return a library that finds its neighbours and what lies beside torch."""
    folders = ("nccl", "cusparse", "cudnn", "nvjitlink")
    rpath = ":".join(("$ORIGIN", *(f"$ORIGIN/../../nvidia/{one}/lib" for one in folders)))
    return make_elf(soname=name, needed=needed, rpath=f"{rpath}:$ORIGIN/lib", **parts)


def torch_files() -> dict[str, bytes]:
    """Return torch 2.8.0 as seven functions."""
    needed = ("libc10_cuda.so", "libtorch_cpu.so", "libnccl.so.2", "libcusparse.so.12")
    return {
        "torch/lib/libc10.so": library("libc10.so", defines=(ERROR,)),
        "torch/lib/libc10_cuda.so": library("libc10_cuda.so", defines=(SET_DEVICE,)),
        "torch/lib/libtorch_cpu.so": library("libtorch_cpu.so", "libc10.so", wants=(ERROR,)),
        CUDA: library(
            "libtorch_cuda.so",
            *needed,
            "libcudnn.so.9",
            wants=(*incident.OLD, *WINDOW, SET_DEVICE),
            defines=(SLEEP,),
        ),
        "torch/lib/libtorch_python.so": library(
            "libtorch_python.so", "libtorch_cuda.so", "libtorch_cpu.so", wants=(SLEEP, ERROR)
        ),
        "torch/_C.cpython-311-x86_64-linux-gnu.so": library("_C", "libtorch_python.so"),
    }


def torch280(folder: Path) -> MadeEnv:
    """Make torch 2.8.0 of PyPI, for CUDA 12.8, as the code above wants it."""
    nvidia = {
        "nvidia-nccl-cu12==2.27.3": {NCCL: incident.nccl(*incident.OLD, *WINDOW)},
        "nvidia-nvjitlink-cu12==12.8.93": {JITLINK: library("libnvJitLink.so.12")},
        "nvidia-cusparse-cu12==12.5.8.93": {SPARSE: library("libcusparse.so.12")},
        "nvidia-cudnn-cu12==9.10.2.21": {f"{CUDNN}/{one}": library(one) for one in PARTS},
    }
    nvidia["nvidia-cusparse-cu12==12.5.8.93"][SPARSE] = make_elf(
        soname="libcusparse.so.12",
        needed=("libnvJitLink.so.12",),
        runpath="$ORIGIN/../../nvjitlink/lib",
    )
    env = EnvMaker(folder).venv()
    env.torch("2.8.0+cu128", metadata="2.8.0", requires=nvidia, files=torch_files())
    for requirement, files in nvidia.items():
        name, _, version = requirement.partition("==")
        env.install(name, version, files=files, tag=incident.ANY_LINUX)
    return env


def extension(path: str, *wants: str) -> dict[str, bytes]:
    """Return a compiled module that asks torch for functions."""
    needed = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so")
    return {path: make_elf(needed=needed, rpath="$ORIGIN/torch/lib", wants=wants)}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What doctor printed."""

    code: int
    out: str

    @property
    def first(self) -> str:
        return self.out.partition("\n")[0]

    @property
    def effects(self) -> str:
        return self.out.partition("\nrepair:\n")[0]

    @property
    def repair(self) -> list[str]:
        section = self.out.partition("\nrepair:\n")[2].partition("\n\n")[0]
        return [line.strip() for line in section.splitlines() if line.startswith("  uv ")]


@pytest.fixture(name="doctor")
def a_doctor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Answer]:
    """Run `envbuild doctor` in this process, in an empty folder."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def doctor(*words: object) -> Answer:
        code = main(["doctor", "--quiet", *map(str, words)])
        answer = Answer(code=code, out=capsys.readouterr().out)
        assert code in (0, 1), answer
        return answer

    return doctor


def test_the_sound_twin_is_one_line(doctor: Callable[..., Answer], tmp_path: Path) -> None:
    answer = doctor(torch280(tmp_path).prefix, "--fail-on", "note")
    assert answer.first.startswith("healthy: 5 distributions, "), answer.out
    assert (answer.code, answer.out.count("\n")) == (0, 1)


def test_the_wrong_nccl_has_no_code_for_the_gpu_either(
    doctor: Callable[..., Answer], tmp_path: Path
) -> None:
    env = incident.healthy(tmp_path)
    code = fat_binary((SASS, 80, 0), (SASS, 90, 0))
    functions = tuple(f"?{name}" for name in incident.OLD)
    data = make_elf(soname="libnccl.so.2", defines=functions, sections={".nv_fatbin": code})
    env.install("nvidia-nccl-cu12", "2.26.2", files={NCCL: data}, tag=incident.ANY_LINUX)
    answer = doctor(env.prefix, "--gpu", "12.0")
    assert answer.first == (
        "error EB101: `nvidia-nccl-cu13 2.28.9` and `nvidia-nccl-cu12 2.26.2` both own 1 path, on"
        " disk is nvidia-nccl-cu12 2.26.2's"
    )
    assert "nvidia-nccl-cu12 2.26.2 has no code for sm_120" in answer.effects
    assert "hint: torch pins `nvidia-nccl-cu13==2.28.9`, another one than this" in answer.out


def test_uv_sync_takes_the_library_of_both_away(
    doctor: Callable[..., Answer], tmp_path: Path
) -> None:
    env = incident.broken(tmp_path)
    manifest = '[project]\nname = "x"\nversion = "0"\ndependencies = ["torch==2.11.0"]\n'
    (tmp_path / "pyproject.toml").write_text(manifest, "utf-8")
    (tmp_path / "uv.lock").write_text(LOCK, "utf-8")
    for name, version in (
        ("nvidia-nccl-cu12", "2.26.2"),
        ("torchvision", "0.22.0"),
        ("torchaudio", "2.7.0"),
    ):
        env.uninstall(name, version)
    answer = doctor(tmp_path)
    assert answer.first == (
        f"error EB202: nvidia-nccl-cu13 2.28.9: {NCCL} is gone, as nvidia-nccl-cu12 was removed"
    )
    assert "torch 2.11.0 needs `libnccl.so.2`" in answer.effects
    python = env.prefix / "bin" / "python"
    assert answer.repair == [
        f"uv sync --directory {tmp_path} --python {python} --reinstall-package nvidia-nccl-cu13"
    ]


def test_a_torchaudio_that_admits_a_torch_that_it_cannot_run_with(
    doctor: Callable[..., Answer], tmp_path: Path
) -> None:
    env = incident.healthy(tmp_path)
    wants = ("torch_exception_get_what", "torch_exception_get_what_without_backtrace")
    files = {
        "torchaudio/lib/libtorchaudio.so": make_elf(
            soname="libtorchaudio.so",
            needed=("libtorch_cuda.so",),
            rpath="$ORIGIN/../../torch/lib",
            wants=wants,
        )
    }
    tag = "py3-none-manylinux_2_28_x86_64"
    env.install("torchaudio", "2.11.1", files=files, requires=["torch>=2.11"], tag=tag)
    answer = doctor(env.prefix)
    assert answer.first == (
        "error EB103: torchaudio 2.11.1 is made for torch >=2.13,<2.16, found torch 2.11.0+cu130"
    )
    assert "torchaudio 2.11.1 is built for torch 2.13 or newer: 2 symbols" in answer.effects
    assert wants[1] in answer.effects
    assert [words.split()[-1] for words in answer.repair] == ["torchaudio==2.11.0"]


@pytest.mark.parametrize(
    ("name", "version", "path", "requires", "made_for"),
    [
        (
            "vllm-flash-attn",
            "2.6.2",
            "vllm_flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so",
            "torch==2.4.0",
            "==2.4.0",
        ),
        ("torchtext", "0.18.0", "torchtext/_torchtext.so", "torch>=2.3.0", "2.3"),
    ],
)
def test_the_old_abi_of_what_is_released_no_more(
    doctor: Callable[..., Answer],
    tmp_path: Path,
    *,
    name: str,
    version: str,
    path: str,
    requires: str,
    made_for: str,
) -> None:
    env = torch280(tmp_path)
    files = extension(path, OLD_ERROR, OLD_SET_DEVICE)
    env.install(name, version, files=files, requires=[requires], tag=incident.CP311)
    answer = doctor(env.prefix)
    assert answer.first == (
        f"error EB103: {name} {version} is made for torch {made_for}, found torch 2.8.0+cu128"
    )
    assert "is built for the old C++ ABI (before cxx11), torch has the new" in answer.effects
    assert f"{OLD_ERROR} (c10::Error::Error)" in answer.effects
    assert answer.repair == []
    assert f"# no {name} is made for torch 2.8.0+cu128: {version}, the last" in answer.out


def test_an_xformers_of_another_torch(doctor: Callable[..., Answer], tmp_path: Path) -> None:
    env = torch280(tmp_path)
    files = extension("xformers/_C.so", OLD_SET_DEVICE)
    env.install("xformers", "0.0.31", files=files, requires=["torch==2.7.1"], tag=incident.CP311)
    answer = doctor(env.prefix)
    assert answer.first == (
        "error EB103: xformers 0.0.31 is made for torch ==2.7.1, found torch 2.8.0+cu128"
    )
    assert ": 1 symbol of torch missing in torch 2.8.0+cu128" in answer.effects
    assert [words.split()[-1] for words in answer.repair] == ["xformers==0.0.32.post2"]


def test_an_older_nccl_of_the_same_name(doctor: Callable[..., Answer], tmp_path: Path) -> None:
    env = torch280(tmp_path).uninstall("nvidia-nccl-cu12", "2.27.3")
    files = {NCCL: incident.nccl(*incident.OLD)}
    env.install("nvidia-nccl-cu12", "2.26.2", files=files, tag=incident.ANY_LINUX)
    answer = doctor(env.prefix)
    assert answer.first == (
        "error EB301: torch 2.8.0 needs 2 symbols that `libnccl.so.2` does not define, the newest"
        " needs NCCL 2.27.3 or later; torch pins `nvidia-nccl-cu12==2.27.3`"
    )
    assert [words.split()[-1] for words in answer.repair] == ["nvidia-nccl-cu12==2.27.3"]


@pytest.mark.parametrize(
    ("path", "owner", "effect"),
    [
        (JITLINK, "nvidia-nvjitlink-cu12 12.8.93", "12.5.8.93 needs `libnvJitLink.so.12`"),
        (f"{CUDNN}/{PARTS[1]}", "nvidia-cudnn-cu12 9.10.2.21", ""),
    ],
)
def test_a_library_that_is_gone(
    path: str, owner: str, effect: str, doctor: Callable[..., Answer], tmp_path: Path
) -> None:
    answer = doctor(torch280(tmp_path).remove(path).prefix)
    assert answer.first == f"error EB202: {owner}: {path} is gone"
    assert effect in answer.effects
    assert [words.split()[-1] for words in answer.repair] == [owner.replace(" ", "==")]


@pytest.mark.parametrize(
    ("path", "owner"),
    [(CUDA, "torch 2.8.0"), (f"{CUDNN}/{PARTS[2]}", "nvidia-cudnn-cu12 9.10.2.21")],
)
def test_a_library_that_was_cut_short(
    path: str, owner: str, doctor: Callable[..., Answer], tmp_path: Path
) -> None:
    env = torch280(tmp_path)
    env.write(path, (env.site / path).read_bytes()[:300])
    answer = doctor(env.prefix)
    assert answer.first == f"error EB203: {owner}: {path} is of another size than RECORD says"
    assert "EB301" not in answer.out, "symbols of a cut library are no finding of their own"
    assert [words.split()[-1] for words in answer.repair] == [owner.replace(" ", "==")]


def test_the_wheel_of_another_platform(doctor: Callable[..., Answer], tmp_path: Path) -> None:
    env = torch280(tmp_path).uninstall("torch", "2.8.0")
    files = {"torch/lib/libtorch.so": make_elf(soname="libtorch.so", machine=183)}
    env.torch("2.8.0+cpu", metadata="2.8.0", files=files, tag="cp311-cp311-manylinux_2_28_aarch64")
    answer = doctor(env.prefix)
    assert answer.first == (
        "error EB308: torch 2.8.0 is made for aarch64, the environment is x86_64"
    )
    assert [words.split()[-1] for words in answer.repair] == ["torch==2.8.0"]
