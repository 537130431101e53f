"""doctor on real broken environments: the cause, its evidence, and a repair after which they work.

Each is made of PyPI's wheels of a day, in up to 6 GB of hard links into uv's cache. What is
imported fails before the repair and works after it.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from realvenv import make_base, make_project, run_uv

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from realvenv import RealVenv, Told

pytestmark = pytest.mark.online

NCCL = "nvidia/nccl/lib/libnccl.so.2"
CUDNN = "nvidia/cudnn/lib"
SIX = (
    "ncclAlltoAll (since NCCL 2.28.3)",
    "ncclDevCommCreate (since NCCL 2.28.3)",
    "ncclDevCommDestroy (since NCCL 2.28.3)",
    "ncclCommShrink (since NCCL 2.27.3)",
    "ncclCommWindowDeregister (since NCCL 2.27.3)",
    "ncclCommWindowRegister (since NCCL 2.27.3)",
)
ALL_THREE = "import torch, torchvision, torchaudio; torchvision.ops.nms"
LOAD = "import torch, ctypes; ctypes.CDLL(torch.__path__[0] + '/../{}')"


@pytest.fixture(scope="module")
def torch280(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealVenv]:
    """Return a venv with torch 2.8.0 (CUDA 12) that no test changes."""
    folder = tmp_path_factory.mktemp("base") / "venv"
    yield make_base(folder, "torch==2.8.0")
    shutil.rmtree(folder)


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that is gone after the test, since gigabytes may lie in it."""
    yield tmp_path / "made"
    shutil.rmtree(tmp_path / "made")


def assert_mended(told: Told) -> None:
    assert told.before.code != 0, "it was not broken"
    assert told.found.code == 1, told.found
    assert told.found.error == ""
    assert (told.fixed.code, told.fixed.first.partition(":")[0]) == (0, "healthy"), told.fixed
    assert told.after.code == 0, told.after.reason


def test_a_sound_environment_is_one_line(torch280: RealVenv) -> None:
    done = torch280.doctor("--gpu", "12.0", "--fail-on", "note")
    assert (done.code, done.out.count("\n"), done.error) == (0, 1, "")
    assert done.first.startswith("healthy: 25 distributions, "), done.first


def break_with_old_companions(venv: RealVenv) -> RealVenv:
    venv.install("nvidia-nccl-cu12==2.26.2")
    return venv.install("--no-deps", "torchvision==0.22.0", "torchaudio==2.7.0")


def assert_the_incident(told: Told) -> None:
    """NCCL for CUDA 12 over that of torch, and companions of torch 2.7."""
    assert told.before.reason.endswith("undefined symbol: ncclCommWindowDeregister")
    assert told.found.first.startswith("error EB101: `nvidia-nccl-cu13 2.28.9` and "), told.found
    assert told.found.first.endswith(", on disk is nvidia-nccl-cu12 2.26.2's")
    assert NCCL in told.cause
    effects, _, rest = told.found.out.partition("\nrepair:\n")
    for one in (*SIX, "6 symbols", "needs NCCL 2.28.3 or later", "`nvidia-nccl-cu13==2.28.9`"):
        assert one in effects
    for one in (
        "torchvision 0.22.0 is made for torch >=2.7,<2.8, found torch 2.11.0+cu130",
        "torchaudio 2.7.0 is made for torch ==2.7.0, found torch 2.11.0+cu130",
        "sm_120 runs torchvision 0.22.0 only by compiling",
    ):
        assert one in rest
    assert "nvidia-nccl-cu12 2.26.2 has no code for sm_120" in effects


def test_the_nccl_of_cuda_12_under_a_torch_of_cuda_13(folder: Path) -> None:
    venv = break_with_old_companions(make_base(folder, "torch==2.11.0"))
    told = venv.mend("--gpu", "12.0", trying="import torch", then=ALL_THREE)
    assert_the_incident(told)
    first, install, again = told.repair
    assert first == f"uv pip uninstall --python {venv.python} nvidia-nccl-cu12"
    assert install.endswith(" torchaudio==2.11.0 torchvision==0.26.0")
    assert again.endswith("--reinstall-package nvidia-nccl-cu13 --no-deps nvidia-nccl-cu13==2.28.9")
    assert_mended(told)


def test_the_same_in_a_project_and_after_uv_sync(folder: Path) -> None:
    """`uv sync` takes away what the lock does not hold, the library of both with it."""
    venv = break_with_old_companions(make_project(folder, "torch==2.11.0"))
    sync = f"uv sync --directory {folder} --python {venv.python}"
    sync += " --reinstall-package nvidia-nccl-cu13"
    told = venv.mend("--gpu", "12.0", trying="import torch")
    assert_the_incident(told)
    assert told.repair == (sync,)
    assert_mended(told)

    break_with_old_companions(venv)
    run_uv("sync", "--directory", str(folder))
    run_uv("sync", "--directory", str(folder), "--check")
    told = venv.mend(trying="import torch")
    assert told.before.reason.startswith("ImportError: libnccl.so.2: cannot open shared object")
    assert told.found.first == (
        f"error EB202: nvidia-nccl-cu13 2.28.9: {NCCL} is gone, as nvidia-nccl-cu12 was removed"
    )
    assert "torch 2.11.0 needs `libnccl.so.2`" in told.found.out
    assert told.repair == (sync,)
    assert_mended(told)


def test_two_commands_break_a_project(folder: Path) -> None:
    """`uv add torch xgboost; uv remove xgboost`, and every check of uv is content."""
    venv = make_project(folder, "torch==2.11.0", "xgboost==3.2.0")
    run_uv("remove", "--directory", str(folder), "xgboost")
    run_uv("sync", "--directory", str(folder), "--check")
    assert venv.is_content()
    lock = (folder / "uv.lock").read_bytes()
    told = venv.mend(trying="import torch")
    assert told.before.reason.startswith("ImportError: libnccl.so.2: cannot open shared object")
    assert told.found.first == (
        f"error EB202: nvidia-nccl-cu13 2.28.9: {NCCL} is gone, as nvidia-nccl-cu12 was removed"
    )
    assert told.repair == (
        f"uv sync --directory {folder} --python {venv.python} --reinstall-package nvidia-nccl-cu13",
    )
    assert_mended(told)
    assert (folder / "uv.lock").read_bytes() == lock


def test_a_torchaudio_that_admits_a_torch_that_it_cannot_run_with(folder: Path) -> None:
    venv = make_base(folder, "torch==2.11.0", "torchvision", "torchaudio")
    assert venv.is_content()
    told = venv.mend("--gpu", "12.0", trying="import torchaudio", then=ALL_THREE)
    assert told.found.first == (
        "error EB103: torchaudio 2.11.1 is made for torch >=2.13,<2.16, found torch 2.11.0+cu130"
    )
    assert "torchaudio 2.11.1 is built for torch 2.13 or newer: 3 symbols" in told.found.out
    assert "torch_exception_get_what_without_backtrace" in told.found.out
    assert [words.split()[-1] for words in told.repair] == ["torchaudio==2.11.0"]
    assert_mended(told)


@pytest.mark.parametrize(
    ("requirement", "module", "torch", "symbols"),
    [
        ("vllm-flash-attn==2.6.2", "vllm_flash_attn", "==2.4.0", 4),
        ("torchtext==0.18.0", "torchtext", "2.3", 15),
    ],
)
def test_the_old_abi_of_what_is_released_no_more(
    torch280: RealVenv, folder: Path, requirement: str, module: str, torch: str, symbols: int
) -> None:
    """Nothing can be installed in its place: what doctor says to do is done by hand."""
    name, _, version = requirement.partition("==")
    venv = torch280.copy(folder).install("--no-deps", requirement)
    trying = f"import torch, {module}"
    told = venv.mend(trying=trying)
    assert "undefined symbol: _ZN" in told.before.reason
    assert told.found.first == (
        f"error EB103: {name} {version} is made for torch {torch}, found torch 2.8.0+cu128"
    )
    assert (
        f"{name} {version} is built for the old C++ ABI (before cxx11), torch has the new C++ ABI:"
        f" {symbols} symbols of torch missing in torch 2.8.0+cu128"
    ) in told.found.out
    assert told.repair == ()
    assert f"# no {name} is made for torch 2.8.0+cu128: {version}, the last" in told.found.out
    assert (told.found.code, told.fixed.code, told.after.code) == (1, 1, 1)
    venv.uninstall(name)
    assert venv.doctor().first.startswith("healthy: ")


def test_an_xformers_of_another_torch(torch280: RealVenv, folder: Path) -> None:
    venv = torch280.copy(folder).install("--no-deps", "xformers==0.0.31")
    module = f"import torch, ctypes; ctypes.CDLL({str(venv.site / 'xformers/_C.so')!r})"
    told = venv.mend(trying=module)
    assert told.before.reason.endswith("undefined symbol: _ZN3c104cuda9SetDeviceEa")
    assert told.found.first == (
        "error EB103: xformers 0.0.31 is made for torch ==2.7.1, found torch 2.8.0+cu128"
    )
    assert "_ZN3c104cuda9SetDeviceEa (c10::cuda::SetDevice)" in told.found.out
    assert [words.split()[-1] for words in told.repair] == ["xformers==0.0.32.post2"]
    assert_mended(told)
    assert venv.tries("import xformers.ops").code == 0


def test_an_older_nccl_of_the_same_name(torch280: RealVenv, folder: Path) -> None:
    venv = torch280.copy(folder).install("--no-deps", "nvidia-nccl-cu12==2.26.2")
    told = venv.mend("--gpu", "12.0", trying="import torch")
    assert told.found.first == (
        "error EB301: torch 2.8.0 needs 2 symbols that `libnccl.so.2` does not define, the newest"
        " needs NCCL 2.27.3 or later; torch pins `nvidia-nccl-cu12==2.27.3`"
    )
    assert "libnccl.so.2 is nvidia-nccl-cu12 2.26.2's" in told.cause
    assert "hint: torch pins `nvidia-nccl-cu12==2.27.3`, another one than this" in told.found.out
    assert [words.split()[-1] for words in told.repair] == ["nvidia-nccl-cu12==2.27.3"]
    assert_mended(told)


@pytest.mark.parametrize(
    ("path", "owner", "trying"),
    [
        (
            "nvidia/nvjitlink/lib/libnvJitLink.so.12",
            "nvidia-nvjitlink-cu12 12.8.93",
            "import torch",
        ),
        (
            f"{CUDNN}/libcudnn_ops.so.9",
            "nvidia-cudnn-cu12 9.10.2.21",
            LOAD.format(f"{CUDNN}/libcudnn_ops.so.9"),
        ),
    ],
)
def test_a_library_that_is_gone(
    torch280: RealVenv, folder: Path, path: str, owner: str, trying: str
) -> None:
    venv = torch280.copy(folder).lose(path)
    assert venv.is_content()
    told = venv.mend(trying=trying)
    assert told.found.first == f"error EB202: {owner}: {path} is gone"
    assert f"{venv.site}/{path}" in told.cause
    assert [words.split()[-1] for words in told.repair] == [owner.replace(" ", "==")]
    assert_mended(told)


@pytest.mark.parametrize(
    ("path", "owner", "size", "trying"),
    [
        ("torch/lib/libtorch_cuda.so", "torch 2.8.0", 100_000_000, "import torch"),
        (
            f"{CUDNN}/libcudnn_graph.so.9",
            "nvidia-cudnn-cu12 9.10.2.21",
            1_000_000,
            LOAD.format(f"{CUDNN}/libcudnn_graph.so.9"),
        ),
    ],
)
def test_a_library_that_was_cut_short(
    torch280: RealVenv, folder: Path, path: str, owner: str, size: int, trying: str
) -> None:
    venv = torch280.copy(folder).cut(path, size)
    assert venv.is_content()
    told = venv.mend(trying=trying)
    assert told.found.first == f"error EB203: {owner}: {path} is of another size than RECORD says"
    assert "EB301" not in told.found.out, "symbols of a cut library are no finding of their own"
    assert [words.split()[-1] for words in told.repair] == [owner.replace(" ", "==")]
    assert_mended(told)


def test_the_wheel_of_another_platform(torch280: RealVenv, folder: Path) -> None:
    venv = torch280.copy(folder)
    venv.install(
        *("--no-deps", "--reinstall-package", "torch"),
        *("--python-platform", "aarch64-manylinux_2_28", "torch==2.8.0"),
    )
    told = venv.mend(trying="import torch")
    assert told.found.first == (
        "error EB308: torch 2.8.0 is made for aarch64, the environment is x86_64"
    )
    assert [words.split()[-1] for words in told.repair] == ["torch==2.8.0"]
    assert_mended(told)
