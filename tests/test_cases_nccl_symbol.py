"""Kind nccl-symbol: a libnccl.so.2 on disk that is not the one that torch was built with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casedoctor import ANY_LINUX, NCCL, NCCL_FILE, library, torch_env

if TYPE_CHECKING:
    from pathlib import Path

    from casedoctor import Doctor
    from envmaker import MadeEnv

REGISTER = ("ncclCommRegister", "ncclCommDeregister")


def nccl(env: MadeEnv, name: str, version: str, *more: str) -> MadeEnv:
    """Install a NCCL whose functions are those of its version, and its bytes its own."""
    padding = 8 * int(name[2:])
    files = {NCCL_FILE: library("libnccl.so.2", *NCCL, *more, padding=padding)}
    return env.install(f"nvidia-nccl-{name}", version, files=files, tag=ANY_LINUX)


def test_ncc_h1_an_older_release_of_the_same_name(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(
        tmp_path,
        "2.2.2+cu121",
        metadata="2.2.2",
        new_abi=False,
        python="3.10",
        nccl=(*NCCL, *REGISTER),
        requires=["nvidia-nccl-cu12==2.19.3"],
    )
    answer = doctor(nccl(env, "cu12", "2.18.1"))
    assert answer.code == 1
    assert answer.first == (
        "error EB301: torch 2.2.2 needs 2 symbols that `libnccl.so.2` does not define, the newest"
        " needs NCCL 2.19.3 or later; torch pins `nvidia-nccl-cu12==2.19.3`"
    )
    assert "ncclCommRegister (since NCCL 2.19.3)" in answer.effects
    assert "is nvidia-nccl-cu12 2.18.1's" in answer.effects
    assert answer.repair.endswith("--reinstall-package nvidia-nccl-cu12 nvidia-nccl-cu12==2.19.3")


def test_ncc_h2_the_copy_of_cuda_11_was_written_last(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(
        tmp_path,
        "2.8.0+cu128",
        metadata="2.8.0",
        python="3.10",
        nccl=(*NCCL, "ncclMemFree"),
        requires=["nvidia-nccl-cu12==2.27.3"],
    )
    answer = doctor(nccl(nccl(env, "cu12", "2.27.3", "ncclMemFree"), "cu11", "2.14.3"))
    assert answer.first == (
        "error EB101: `nvidia-nccl-cu12 2.27.3` and `nvidia-nccl-cu11 2.14.3` both own 1 path, on"
        " disk is nvidia-nccl-cu11 2.14.3's"
    )
    assert "ncclMemFree (since NCCL 2.19.3)" in answer.effects
    remove, back = [line for line in answer.repair.splitlines() if line.startswith("  uv ")]
    assert remove.endswith(" nvidia-nccl-cu11"), "and the file of both goes with it"
    assert back.endswith("--no-deps nvidia-nccl-cu12==2.27.3")


def test_ncc_h3_the_same_minor_of_another_cuda(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(
        tmp_path,
        "2.13.0+cu130",
        metadata="2.13.0",
        nccl=(*NCCL, "ncclCommResume"),
        requires=["nvidia-nccl-cu13==2.29.7"],
    )
    nccl(nccl(env, "cu13", "2.29.7", "ncclCommResume"), "cu12", "2.29.3")
    answer = doctor(env)
    assert "on disk is nvidia-nccl-cu12 2.29.3's" in answer.first
    assert "ncclCommResume (since NCCL 2.29.7)" in answer.effects
    assert "uninstall" in answer.repair
    assert answer.repair.endswith("--no-deps nvidia-nccl-cu13==2.29.7")


def test_ncc_h3_what_the_advice_to_uninstall_leaves_behind(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(
        tmp_path,
        "2.13.0+cu130",
        metadata="2.13.0",
        nccl=NCCL,
        requires=["nvidia-nccl-cu13==2.29.7"],
    )
    nccl(nccl(env, "cu13", "2.29.7"), "cu12", "2.29.3").uninstall("nvidia-nccl-cu12", "2.29.3")
    answer = doctor(env)
    assert answer.first == (
        f"error EB202: nvidia-nccl-cu13 2.29.7: {NCCL_FILE} is gone,"
        " as nvidia-nccl-cu12 was removed"
    )
    assert answer.repair.endswith("--no-deps nvidia-nccl-cu13==2.29.7")


def test_the_right_one_written_last_is_a_warning(doctor: Doctor, tmp_path: Path) -> None:
    env = torch_env(
        tmp_path,
        "2.11.0+cu130",
        metadata="2.11.0",
        nccl=NCCL,
        requires=["nvidia-nccl-cu13==2.28.9"],
    )
    answer = doctor(nccl(nccl(env, "cu12", "2.26.2"), "cu13", "2.28.9"))
    assert answer.code == 0, answer.out
    assert answer.first.startswith("warning EB101: ")
