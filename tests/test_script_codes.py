"""Each exit code of the install script, met for real; and that the script and docs name them."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from buildworld import CPP, KERNEL, write_compiler, write_source, write_toolkit
from lockworld import PYTHON, UV, World, pyproject
from scriptworld import SCRIPT, SHELL, bare, make_script, run_script

from envbuild.core.script.install import EXIT_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from index import LocalIndex

    from envbuild.catalog.reader import Catalog

LOCK = "lockfiles/pylock.cu128.toml"
GPUS = ("B200", "RTX PRO 2000 Blackwell")
COMMIT = "0" * 40
NOBODYS = "0" * 64
MORE = '[tool.envbuild.build]\nmyext = { path = "ext", requires = [] }'

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs Python 3.11")


@pytest.fixture(scope="module")
def template(
    shared_index: LocalIndex,
    shared_cache: Path,
    catalog: Catalog,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return a project whose lock has an extension with a kernel."""
    root = tmp_path_factory.mktemp("codes")
    one = World(index=shared_index, root=root, cache=shared_cache, catalog=catalog)
    one.write(pyproject("six", layer="pip", gpus=GPUS, more=MORE))
    write_source(root / "ext", "myext", kernel_cu=KERNEL)
    one.lock()
    make_script(one)
    return root


def program(world: World, name: str, text: str) -> str:
    """Write a program that goes before those of its name; return PATH with it."""
    folder = world.root.parent / "programs"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{bare(world)['PATH']}"


def edited(world: World, old: str, new: str) -> None:
    text = world.read(LOCK)
    assert old in text
    world.write(text.replace(old, new), LOCK)
    make_script(world)


def toolkit(world: World, version: str) -> dict[str, str]:
    return {"CUDA_HOME": str(write_toolkit(world.root.parent / "cuda", version))}


def without_compiling(world: World) -> None:
    shutil.rmtree(world.root / "ext")
    write_source(world.root / "ext", "myext", hollow="")


def done(world: World) -> Mapping[str, str]:
    without_compiling(world)
    return {}


def folder_of_the_users(world: World) -> Mapping[str, str]:
    world.write("mine", ".venv/mine")
    without_compiling(world)
    return {}


def no_uv(_: World) -> Mapping[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


def old_uv(world: World) -> Mapping[str, str]:
    return {"PATH": program(world, "uv", "echo 'uv 0.9.30 (abc 2025)'")}


def no_version_of_uv(world: World) -> Mapping[str, str]:
    return {"PATH": program(world, "uv", r"printf 'a\\033[31mb\\0c\\n'")}


def failing_uv(world: World) -> Mapping[str, str]:
    return {"PATH": program(world, "uv", "echo 99999999999999999999.1; exit 1")}


def no_interpreter_of_uv(world: World) -> Mapping[str, str]:
    return {"PATH": program(world, "uv", "[ $1 = --version ] && echo 'uv 99999999999999999999.1'")}


def word_of_uv(world: World) -> Mapping[str, str]:
    return {"PATH": program(world, "uv", "[ $1 = --version ] && echo 'uv 0.13.9' || echo hello")}


def no_python(_: World) -> Mapping[str, str]:
    managed = {"UV_PYTHON_PREFERENCE": "only-managed", "UV_PYTHON_INSTALL_DIR": "/nonexistent"}
    return {**managed, "UV_PYTHON_DOWNLOADS": "never"}


def no_temporary_folder(_: World) -> Mapping[str, str]:
    return {"TMPDIR": "/nonexistent"}


def full_temporary_folder(world: World) -> Mapping[str, str]:
    return {"PATH": program(world, "cat", "echo 'cat: no space left' >&2; exit 1")}


def small_disk(world: World) -> Mapping[str, str]:
    edited(world, "size = ", "size = 9999999999999")
    return {}


def no_network(_: World) -> Mapping[str, str]:
    return {"http_proxy": "http://127.0.0.1:9", "UV_HTTP_TIMEOUT": "2"}


def no_nvcc(world: World) -> Mapping[str, str]:
    return {"CUDA_HOME": str(world.root)}


def other_nvcc(world: World) -> Mapping[str, str]:
    return toolkit(world, "13.0")


def new_compiler(world: World) -> Mapping[str, str]:
    new = write_compiler(world.root.parent / "g++-77", "77")
    return {**toolkit(world, "12.8"), "CXX": str(new)}


def failing_build(world: World) -> Mapping[str, str]:
    write_source(world.root / "ext", "myext", fail="")
    return toolkit(world, "12.8")


def hollow_build(world: World) -> Mapping[str, str]:
    shutil.rmtree(world.root / "ext")
    write_source(world.root / "ext", "myext", module_cpp=CPP, hollow="")
    return {}


def changed_lock(world: World) -> Mapping[str, str]:
    world.write(world.read(LOCK) + "\n", LOCK)
    return {}


def other_machine(world: World) -> Mapping[str, str]:
    return {"PATH": program(world, "uname", "[ $1 = -s ] && echo Linux || echo riscv64")}


def no_git(world: World) -> Mapping[str, str]:
    edited(world, 'path = "ext"', f'git = "https://h.invalid/x@{COMMIT}"')
    folder = world.root.parent / "without"
    folder.mkdir()
    for one in Path("/usr/bin").iterdir():
        if one.name != "git":
            (folder / one.name).symlink_to(one)
    (folder / "uv").unlink(missing_ok=True)
    (folder / "uv").symlink_to(UV)
    return {"PATH": str(folder)}


def other_bytes(world: World) -> Mapping[str, str]:
    (world.root / "myext-1.0.tar.gz").write_bytes(b"x")
    url = f"file://{world.root}/myext-1.0.tar.gz"
    edited(world, 'path = "ext"', f'version = "1.0"\nurl = "{url}"\nsha256 = "{NOBODYS}"')
    return {}


def other_base(world: World) -> Mapping[str, str]:
    base = 'base = "image:1"\nbase-python = "/x"\nfrozen = []\nfrozen-torch = "2.7.0"\n'
    edited(world, "[tool.envbuild]\n", f"[tool.envbuild]\n{base}")
    return {"ENVBUILD_BASE_PYTHON": str(PYTHON)}


def other_run(world: World) -> Mapping[str, str]:
    world.write("", ".venv/.envbuild-lock")
    lock = os.open(world.root / ".venv/.envbuild-lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)  # held until the tests end
    return {"ENVBUILD_LOCK_TIMEOUT": "0"}


CASES: Mapping[int, tuple[Callable[[World], Mapping[str, str]], ...]] = {
    0: (done,),
    2: (folder_of_the_users,),
    10: (no_uv,),
    11: (old_uv, no_version_of_uv, failing_uv),
    12: (no_python, no_interpreter_of_uv, word_of_uv),
    13: (no_temporary_folder, full_temporary_folder, small_disk),
    14: (no_network,),
    15: (no_nvcc,),
    16: (other_nvcc,),
    17: (new_compiler,),
    18: (failing_build,),
    19: (hollow_build,),
    20: (changed_lock,),
    21: (other_machine,),
    22: (no_git,),
    23: (other_bytes,),
    24: (other_base,),
    25: (other_run,),
}


@pytest.mark.parametrize(
    ("code", "arrange"),
    [
        pytest.param(code, arrange, id=f"{code}-{arrange.__name__}")
        for code, arranges in CASES.items()
        for arrange in arranges
    ],
)
def test_each_exit_code(
    world: World, template: Path, code: int, arrange: Callable[[World], Mapping[str, str]]
) -> None:
    shutil.copytree(template, world.root, dirs_exist_ok=True)
    own = {"ENVBUILD_CACHE_DIR": str(world.root.parent / "built")}
    ended = run_script(world, **{**own, **arrange(world)})
    assert ended.returncode == code, ended.stderr
    assert ended.stdout == ""
    if code:
        assert re.match(r"(?:envbuild: .*\n|.*\n)*error: .+", ended.stderr)
    else:
        assert "done: " in ended.stderr


@pytest.mark.parametrize(("name", "code"), [("SIGHUP", 129), ("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt(world: World, template: Path, name: str, code: int) -> None:
    shutil.copytree(template, world.root, dirs_exist_ok=True)
    without_compiling(world)
    path = program(world, "uv", f'case $1 in venv) exec sleep 60 ;; *) exec {UV} "$@" ;; esac')
    process = subprocess.Popen(
        [SHELL, str(world.root / SCRIPT)],
        env=bare(world, PATH=path, TMPDIR=str(world.root.parent)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for _ in range(600):
        if (world.root / ".venv/.envbuild-unfinished").exists():
            break
        time.sleep(0.05)
    time.sleep(0.2)
    os.killpg(process.pid, getattr(signal, name))
    assert process.wait(timeout=30) == code
    assert not list(world.root.parent.glob("envbuild.*")), "its temporary folder is gone"
    own = {"ENVBUILD_CACHE_DIR": str(world.root.parent / "built")}
    assert run_script(world, **own).returncode == 0


def test_an_interrupt_of_a_program_is_silent(world: World, template: Path) -> None:
    shutil.copytree(template, world.root, dirs_exist_ok=True)
    without_compiling(world)
    other_run(world)
    process = subprocess.Popen(
        [SHELL, str(world.root / SCRIPT)],
        env=bare(world, TMPDIR=str(world.root.parent)),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("envbuild: wait for another run")
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 130
    assert not list(world.root.parent.glob("envbuild.*"))


def test_every_code_is_listed_and_met() -> None:
    listed = {int(code) for code in re.findall(r"^  (\d+) ", EXIT_CODES, re.MULTILINE)}
    assert listed == set(CASES)
    page = Path(__file__).parent.parent.joinpath("docs/script.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d, ]+) \| ", page, re.MULTILINE)
    assert {int(code) for row in rows for code in row.split(",")} - {129, 130, 143} == listed
