"""Kind companion-mismatch, as doctor finds it in an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from casedoctor import NEW_ERROR, OLD_ERROR, extension, image, torch_env

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

GUARD = "_ZNK3c107SymBool10guard_boolEPKcl"


def vision(env: MadeEnv, version: str, *wants: str, torch: str, tag: str = "311") -> MadeEnv:
    files = {"torchvision/__init__.py": "", **extension("torchvision/_C.so", *wants)}
    where = f"cp{tag}-cp{tag}-linux_x86_64"
    return env.install("torchvision", version, files=files, requires=[f"torch=={torch}"], tag=where)


def test_cmp_h1_torch_was_taken_back_alone(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "2.4.0+cu121", new_abi=False, python="3.10")
    answer = doctor(vision(env, "0.20.1+cu124", GUARD, torch="2.5.1", tag="310"))
    assert answer.code == 1
    assert answer.first == (
        "error EB103: torchvision 0.20.1+cu124 is made for torch >=2.5,<2.6, found torch"
        " 2.4.0+cu121 (also cu124 against cu121)"
    )
    assert "requires `torch==2.5.1`, found 2.4.0+cu121" in answer.effects
    assert "torchvision==0.19.0+cu121" in answer.repair
    assert answer.repair.endswith("--index https://download.pytorch.org/whl/cu121")


@pytest.mark.parametrize(
    ("torch", "companion", "theirs"),
    [("cu124", "0.21.0+cu126", NEW_ERROR), ("cu126", "0.21.0+cu124", OLD_ERROR)],
)
def test_cmp_h2_equal_versions_of_two_builds(
    doctor: Doctor, tmp_path: Path, *, torch: str, companion: str, theirs: str
) -> None:
    env = torch_env(tmp_path, f"2.6.0+{torch}", new_abi=torch == "cu126")
    answer = doctor(vision(env, companion, theirs, torch="2.6.0"))
    assert answer.code == 1
    built = companion.partition("+")[2]
    assert answer.first.startswith(
        f"error EB103: torchvision {companion} is the {built} build, torch 2.6.0+{torch} the"
        f" {torch} build, with another C++ ABI ("
    )
    assert f"torchvision==0.21.0+{torch}" in answer.repair
    assert answer.repair.endswith(f"--index https://download.pytorch.org/whl/{torch}")


def test_cmp_h2_the_plain_build_of_pypi_says_it_by_its_symbols(
    doctor: Doctor, tmp_path: Path
) -> None:
    env = torch_env(tmp_path, "2.6.0+cu126")
    answer = doctor(vision(env, "0.21.0", OLD_ERROR, torch="2.6.0"))
    assert "torchvision 0.21.0 is built for the old C++ ABI" in answer.first
    assert "torchvision==0.21.0+cu126" in answer.repair


def test_cmp_h2_trap_both_of_one_build(doctor: Doctor, tmp_path: Path) -> None:
    """PyPI's torch has no local version in its metadata, whatever its own version.py says."""
    env = torch_env(tmp_path, "2.6.0+cu124", metadata="2.6.0", new_abi=False)
    answer = doctor(vision(env, "0.21.0+cu124", OLD_ERROR, torch="2.6.0"), "--fail-on", "note")
    assert answer.code == 0, answer.out


def test_cmp_h3_a_torchaudio_after_torch(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(tmp_path, "1.13.1+cu117", metadata="1.13.1", new_abi=False, python="3.8")
    library = extension("torchaudio/lib/libtorchaudio.so", GUARD)
    files = {"torchaudio/__init__.py": "", **library}
    tag = "cp38-cp38-manylinux1_x86_64"
    env.install("torchaudio", "2.1.0", files=files, requires=["torch==2.1.0"], tag=tag)
    answer = doctor(env)
    assert answer.code == 1
    assert answer.first == (
        "error EB103: torchaudio 2.1.0 is made for torch ==2.1.0, found torch 1.13.1+cu117"
    )
    assert "(c10::SymBool::guard_bool)" in answer.effects
    assert answer.repair.endswith(" torchaudio==0.13.1"), "older than what the catalog holds"


def codec(folder: Path, version: str) -> MadeEnv:
    env = image(folder).venv(python="3.13")
    torch_env(env, "2.10.0+cu128", metadata="2.10.0", python="3.13")
    path = "torchcodec/libtorchcodec_core7.so"
    files = extension(path, NEW_ERROR, needed=("libavutil.so.59",))
    tag = "cp313-cp313-manylinux_2_28_x86_64"
    return env.install(
        "torchcodec", version, files={"torchcodec/__init__.py": "", **files}, tag=tag
    )


def test_cmp_h4_a_torchcodec_that_declares_no_torch(doctor: Doctor, tmp_path: Path) -> None:
    answer = doctor(codec(tmp_path, "0.9.1").inside(), "--root", tmp_path)
    assert answer.code == 1
    assert answer.first == (
        "error EB103: torchcodec 0.9.1 is made for torch >=2.8,<2.10, found torch 2.10.0+cu128"
    )
    assert "metadata names no torch" in answer.effects
    assert "torchcodec==0.10.0" in answer.repair


def test_cmp_h4_trap_no_ffmpeg_is_no_mismatch(doctor: Doctor, tmp_path: Path) -> None:
    answer = doctor(codec(tmp_path, "0.10.0").inside(), "--root", tmp_path)
    assert answer.code == 0
    assert answer.first.startswith("warning EB304: torchcodec 0.10.0: no FFmpeg was found")
    assert "EB103" not in answer.out
    assert "ffmpeg" in answer.repair
    assert "torchcodec==" not in answer.repair


def test_loc_h2_the_companion_shows_which_build_was_asked_for(
    doctor: Doctor, tmp_path: Path
) -> None:
    env = torch_env(tmp_path, "2.0.1+cu117", metadata="2.0.1", new_abi=False, python="3.8")
    library = extension("torchaudio/lib/libtorchaudio.so", OLD_ERROR)
    files = {"torchaudio/__init__.py": "", **library}
    tag = "cp38-cp38-linux_x86_64"
    env.install("torchaudio", "2.0.2+cu118", files=files, requires=["torch==2.0.1"], tag=tag)
    answer = doctor(env)
    assert answer.code == 1
    assert answer.first == (
        "error EB103: torchaudio 2.0.2+cu118 is the cu118 build, torch 2.0.1+cu117 the cu117 build"
    )
    assert "install `torch==2.0.1+cu118` with `--index https://" in answer.effects
    manifest = '[project]\nname = "x"\nversion = "0"\ndependencies = ["torch==2.0.1+cu118"]\n'
    (tmp_path / "pyproject.toml").write_text(manifest, "utf-8")
    (tmp_path / "requirements.txt").write_text("torch==2.0.1+cu118\n", "utf-8")
    told = doctor(tmp_path)
    assert "EB104: torch 2.0.1+cu117 (PyPI's build) is installed" in told.effects
    assert "torch==2.0.1+cu118 --index https://download.pytorch.org/whl/cu118" in told.repair
    assert "torchaudio==" not in told.repair, "it is right once torch is"
