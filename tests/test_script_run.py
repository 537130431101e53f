"""The install script, run for real by dash and bash in bare environments."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
from envmaker import MadeEnv
from lockworld import PYTHON, UV, World, pyproject
from scriptworld import (
    SCRIPT,
    SHELL,
    SHELLS,
    bare,
    contents,
    is_root,
    make_script,
    run_script,
    shellchecked,
    versions,
)
from test_lock_frozen import IMAGE, NVIDIAS, image, write

from envbuild.model.report import Outcome

if TYPE_CHECKING:
    from index import LocalIndex

    from envbuild.catalog.reader import Catalog

SMALL = ("sympy", "numpy", "tqdm")


@pytest.fixture(scope="module")
def templates(
    shared_index: LocalIndex,
    shared_cache: Path,
    catalog: Catalog,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    """Return small projects with lock and script, one of each layer."""
    found = {}
    for layer in ("pip", "project"):
        root = tmp_path_factory.mktemp(layer)
        one = World(index=shared_index, root=root, cache=shared_cache, catalog=catalog)
        one.write(pyproject(*SMALL, layer=layer))
        one.lock()
        make_script(one)
        found[layer] = root
    return found


@pytest.fixture(name="made")
def a_script(world: World, templates: dict[str, Path]) -> World:
    """Return a small project of the layer "pip" with its lock and script."""
    shutil.copytree(templates["pip"], world.root, dirs_exist_ok=True)
    return world


@pytest.fixture(name="whole")
def a_script_with_torch(world: World) -> World:
    """Return a project with torch, with its lock and script."""
    world.write(pyproject("torch", "peft>=0.19", layer="project"))
    world.lock()
    make_script(world)
    return world


def test_a_lock_whose_lines_git_gave_other_ends(made: World) -> None:
    path = made.root / "lockfiles/pylock.cu128.toml"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    ended = run_script(made)
    assert ended.returncode == 0, ended.stderr
    assert make_script(made, check=True).outcome is Outcome.FRESH


def test_shellcheck_finds_nothing(made: World) -> None:
    assert shellchecked(made) == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_first_run_installs_and_a_second_has_nothing_to_do(made: World, shell: str) -> None:
    first = run_script(made, shell=shell)
    assert first.returncode == 0, first.stderr
    assert versions(made.root / ".venv")["numpy"] == "2.2.5"
    before = contents(made.root / ".venv")
    begun = time.monotonic()
    second = run_script(made, shell=shell)
    assert time.monotonic() - begun < 2
    assert (second.returncode, second.stdout) == (0, "")
    assert "nothing to do" in second.stderr
    assert contents(made.root / ".venv") == before


def test_the_layer_project_leaves_nothing_to_uv_run(whole: World) -> None:
    ended = run_script(whole)
    assert ended.returncode == 0, ended.stderr
    assert versions(whole.root / ".venv")["torch"] == "2.7.0+cu128"
    assert "Would make no changes" in whole.uv("sync", "--locked", "--dry-run").stderr
    before = contents(whole.root / ".venv")
    whole.uv("run", "python", "-c", "pass")
    assert contents(whole.root / ".venv") == before
    assert "nothing to do" in run_script(whole).stderr


@pytest.mark.parametrize("name", ["with space", "q'uote\"", "$(touch x);", "-n", "ü"])
def test_any_folder_will_do(made: World, name: str) -> None:
    ended = run_script(made, "--venv", f"envs/{name}")
    assert ended.returncode == 0, ended.stderr
    assert "numpy" in versions(made.root / "envs" / name)
    assert not (made.root / "x").exists()


def test_a_hostile_project_folder(world: World) -> None:
    root = world.root.parent / "it's $(touch x) a\nproject"
    root.mkdir()
    world.root = root
    world.write(pyproject("six", layer="pip"))
    world.lock()
    make_script(world)
    assert run_script(world).returncode == 0
    assert "six" in versions(root / ".venv")


def test_an_open_pipe_changes_nothing(made: World) -> None:
    ours, theirs = os.pipe()
    try:
        assert run_script(made, stdin=ours).returncode == 0
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_closed_stdin_changes_nothing(made: World) -> None:
    ended = subprocess.run(
        [SHELL, "-c", 'exec "$0" "$1" <&-', SHELL, str(made.root / SCRIPT)],
        env=bare(made),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.skipif(not is_root(), reason="needs root, to become somebody else")
def test_any_user_can_run_it(made: World, tmp_path: Path) -> None:
    """It is somebody without a home, who may read everything and write only here."""
    for folder in (made.root, tmp_path):
        os.chown(folder, 65534, 65534)
    above = tmp_path
    while above != above.parent and above.stat().st_uid == 0 and "pytest" in above.name:
        above.chmod(0o755)
        above = above.parent
    read = "+dac_read_search"
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    rights = ["--ambient-caps", read, "--inh-caps", read]
    ended = subprocess.run(
        [*become, *rights, SHELL, str(made.root / SCRIPT)],
        env=bare(made, UV_CACHE_DIR=str(tmp_path / "c"), ENVBUILD_CACHE_DIR=str(tmp_path / "e")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (made.root / ".venv").stat().st_uid == 65534


def test_what_changes_an_answer_of_uv_is_not_heeded(made: World) -> None:
    changes = {
        "UV_DEFAULT_INDEX": "http://127.0.0.1:1/simple",
        "UV_EXCLUDE_NEWER": "2001-01-01",
        "UV_NO_BINARY": "1",
        "UV_SYSTEM_PYTHON": "1",
        "UV_PYTHON": "/nowhere",
        "UV_REQUIRE_HASHES": "0",
        "VIRTUAL_ENV": "/nowhere",
        "PYTHONPATH": "/nowhere",
        "PYTHONHOME": "/nowhere",
        "CONDA_PREFIX": "/nowhere",
    }
    assert run_script(made, **changes).returncode == 0
    assert (made.root / ".venv/bin/python").exists()


def install(made: World, *requirements: str) -> None:
    index = str(made.index.urls.pypi)
    python = ("--python", ".venv/bin/python")
    made.uv("pip", "install", *python, "--default-index", index, *requirements)


def test_other_versions_go_back_and_strangers_go(made: World) -> None:
    run_script(made)
    install(made, "numpy==1.26.4", "iniconfig")
    ended = run_script(made)
    assert ended.returncode == 0, ended.stderr
    held = versions(made.root / ".venv")
    assert held["numpy"] == "2.2.5"
    assert "iniconfig" not in held


def test_check_only_changes_nothing(made: World) -> None:
    assert run_script(made, "--check-only").returncode == 19
    assert not (made.root / ".venv").exists()
    run_script(made)
    assert run_script(made, "--check-only").returncode == 0
    install(made, "numpy==1.26.4")
    before = contents(made.root / ".venv")
    ended = run_script(made, "--check-only")
    assert ended.returncode == 19
    assert "numpy is 1.26.4, the lock has 2.2.5" in ended.stderr
    assert contents(made.root / ".venv") == before


def test_offline_with_a_warm_cache(made: World) -> None:
    run_script(made)
    shutil.rmtree(made.root / ".venv")
    ended = run_script(made, "--offline", HTTP_PROXY="http://127.0.0.1:1")
    assert ended.returncode == 0, ended.stderr


def test_a_wheelhouse_and_no_network(made: World, tmp_path: Path) -> None:
    house = tmp_path / "wheel house"
    house.mkdir()
    served = {path.rpartition("/")[2]: one.body for path, one in made.index.resources.items()}
    for name, body in served.items():
        if name.endswith(".whl"):
            (house / name.replace("%2B", "+")).write_bytes(body)
    cache = str(tmp_path / "empty")
    refused = run_script(made, "--offline", UV_CACHE_DIR=cache)
    assert refused.returncode == 18
    link = tmp_path / "house"
    link.symlink_to(house)
    ended = run_script(made, "--offline", UV_CACHE_DIR=cache, UV_FIND_LINKS=str(link))
    assert ended.returncode == 0, ended.stderr
    assert versions(made.root / ".venv")["numpy"] == "2.2.5"


def test_a_wheelhouse_with_another_wheel_of_that_name_is_refused(
    made: World, tmp_path: Path
) -> None:
    (tmp_path / "tqdm-4.67.1-py3-none-any.whl").write_bytes(b"PK")
    ended = run_script(
        made, UV_FIND_LINKS=str(tmp_path), UV_CACHE_DIR=str(tmp_path / "c"), NO_PROXY="*"
    )
    assert ended.returncode == 18
    assert "tqdm" in ended.stderr


def test_a_mirror(made: World, tmp_path: Path) -> None:
    here = made.index.urls.pypi.rpartition("/simple")[0]  # type: ignore[union-attr]
    text = made.read("lockfiles/pylock.cu128.toml")
    made.write(text.replace(here, "https://gone.invalid/pypi"), "lockfiles/pylock.cu128.toml")
    make_script(made)
    cache = str(tmp_path / "c")
    assert run_script(made, UV_CACHE_DIR=cache).returncode == 14
    mirrors = f"https://gone.invalid/pypi={here}"
    ended = run_script(made, UV_CACHE_DIR=cache, ENVBUILD_MIRRORS=mirrors)
    assert ended.returncode == 0, ended.stderr


def test_no_network(made: World) -> None:
    proxy = {"http_proxy": "http://127.0.0.1:9", "UV_HTTP_TIMEOUT": "2"}
    ended = run_script(made, **proxy)
    assert ended.returncode == 14
    assert "is not reached" in ended.stderr
    assert not (made.root / ".venv").exists()


def test_no_uv(made: World) -> None:
    ended = run_script(made, PATH="/usr/bin:/bin", HOME="/nonexistent")
    assert ended.returncode == 10
    assert "wanted uv" in ended.stderr


def test_an_old_uv(made: World, tmp_path: Path) -> None:
    old = tmp_path / "uv"
    old.write_text("#!/bin/sh\necho 'uv 0.9.30 (abc 2025)'\n")
    old.chmod(0o755)
    ended = run_script(made, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert ended.returncode == 11
    assert "is `0.9.30`, wanted uv" in ended.stderr


def test_no_python(made: World) -> None:
    ended = run_script(
        made,
        PATH=f"{Path(UV).parent}:/usr/bin:/bin" if which("python3.11", path="/usr/bin") else "/bin",
        UV=UV,
        UV_PYTHON_DOWNLOADS="never",
        UV_PYTHON_PREFERENCE="only-managed",
        UV_PYTHON_INSTALL_DIR="/nonexistent",
    )
    assert ended.returncode == 12
    assert "no CPython 3.11" in ended.stderr


def distribution(folder: Path) -> dict[str, str]:
    """Make a Python for uv to install, which leads to the one of the tests; name it to uv."""
    top = folder / "python"
    (top / "bin").mkdir(parents=True)
    (top / "bin/python3.11").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
    (top / "bin/python3.11").chmod(0o755)
    data = top / "lib/python3.11/_sysconfigdata__linux_x86_64-linux-gnu.py"
    data.parent.mkdir(parents=True)
    data.write_text(
        "# system configuration generated and used by the sysconfig module\n"
        "build_time_vars = {'CC': 'cc'}\n"
    )
    packed = folder / "cpython.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(top, "python")
    release: dict[str, object] = {"name": "cpython", "os": "linux", "libc": "gnu"}
    release |= {"arch": {"family": "x86_64", "variant": None}, "variant": None}
    release |= {"major": 3, "minor": 11, "patch": 7, "prerelease": "", "build": "20240107"}
    release |= {
        "url": f"file://{packed}",
        "sha256": hashlib.sha256(packed.read_bytes()).hexdigest(),
    }
    known = folder / "known.json"
    known.write_text(json.dumps({"cpython-3.11.7-linux-x86_64-gnu": release}))
    return {
        "UV_PYTHON_PREFERENCE": "only-managed",
        "UV_PYTHON_INSTALL_DIR": str(folder / "installed"),
        "UV_PYTHON_DOWNLOADS_JSON_URL": f"file://{known}",
        "HOME": str(folder),
    }


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its Python is for x86_64")
def test_uv_brings_the_python(made: World, tmp_path: Path) -> None:
    told = distribution(tmp_path / "uv's")
    ended = run_script(made, "--offline", **told)
    assert ended.returncode == 12
    assert "no CPython 3.11 was found" in ended.stderr
    assert run_script(made, "--check-only", **told).returncode == 12
    ended = run_script(made, **told)
    assert ended.returncode == 0, ended.stderr
    assert "install CPython 3.11 with uv" in ended.stderr
    assert (tmp_path / "uv's/installed/cpython-3.11.7-linux-x86_64-gnu").is_dir()
    assert not (tmp_path / "uv's/.local/bin").exists(), "nothing is put on anybody's PATH"
    second = run_script(made, **told)
    assert "nothing to do" in second.stderr
    assert "install CPython" not in second.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its Python is for x86_64")
def test_a_python_that_uv_cannot_bring(made: World, tmp_path: Path) -> None:
    told = distribution(tmp_path)
    (tmp_path / "cpython.tar.gz").write_bytes(b"other")
    ended = run_script(made, **told)
    assert ended.returncode == 12
    assert "no CPython 3.11 was found, and uv could not install it" in ended.stderr
    assert not (made.root / ".venv").exists()


def test_a_disk_that_is_too_small(made: World) -> None:
    text = made.read("lockfiles/pylock.cu128.toml")
    grown = text.replace("size = ", "size = 9999999999999")
    made.write(grown, "lockfiles/pylock.cu128.toml")
    make_script(made)
    ended = run_script(made)
    assert ended.returncode == 13
    assert "MB free" in ended.stderr
    assert not (made.root / ".venv").exists()


def test_a_lock_that_changed_or_is_gone(made: World) -> None:
    path = made.root / "lockfiles/pylock.cu128.toml"
    path.write_text(path.read_text() + "\n")
    assert run_script(made).returncode == 20
    path.unlink()
    ended = run_script(made)
    assert ended.returncode == 20
    assert "hint: envbuild lock --target cu128" in ended.stderr


def test_a_folder_of_the_users_is_left_alone(made: World) -> None:
    made.write("mine", "data/file")
    ended = run_script(made, "--venv", "data")
    assert ended.returncode == 2
    assert made.read("data/file") == "mine"


@pytest.mark.parametrize("arguments", [("--what",), ("--venv",), ("extra",)])
def test_arguments_that_are_wrong(made: World, arguments: tuple[str, ...]) -> None:
    assert run_script(made, *arguments).returncode == 2


def test_help_names_every_exit_code(made: World) -> None:
    ended = run_script(made, "--help")
    assert ended.returncode == 0
    text = made.read(SCRIPT)
    codes = {word for line in text.splitlines() for word in line.split("fail ")[1:]}
    used = {code.split()[0] for code in codes} - {"{"}
    listed = {line.split()[0].rstrip(",") for line in ended.stdout.splitlines() if line.strip()}
    assert {code for code in used if code.isdigit()} <= listed


@pytest.mark.parametrize("layer", ["pip", "project"])
def test_a_broken_file_is_mended(world: World, templates: dict[str, Path], layer: str) -> None:
    shutil.copytree(templates[layer], world.root, dirs_exist_ok=True)
    run_script(world)
    site = world.root / ".venv/lib/python3.11/site-packages"
    good = contents(world.root / ".venv")
    (site / "sympy-1.14.0.dist-info/METADATA").unlink()
    (site / "numpy-2.2.5.dist-info/RECORD").write_text("")
    next(site.glob("tqdm*/*.py"), site / "tqdm-4.67.1.dist-info/WHEEL").unlink()
    ended = run_script(world)
    assert ended.returncode == 0, ended.stderr
    assert contents(world.root / ".venv") == good


def _kill_somewhere(world: World, seconds: float, *, all_of_it: bool) -> None:
    """End a run by force after some seconds, with all that it started or alone."""
    process = subprocess.Popen(
        [SHELL, str(world.root / SCRIPT)],
        env=bare(world),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(seconds)
    if all_of_it:
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


@pytest.mark.parametrize("layer", ["pip", "project"])
@pytest.mark.parametrize("times", [4, pytest.param(25, marks=pytest.mark.slow)])
def test_killed_anywhere_it_can_be_run_again(
    world: World,
    templates: dict[str, Path],
    layer: str,
    times: int,
) -> None:
    shutil.copytree(templates[layer], world.root, dirs_exist_ok=True)
    begun = time.monotonic()
    assert run_script(world).returncode == 0
    whole = time.monotonic() - begun
    good = contents(world.root / ".venv")
    chance = random.Random(times)  # noqa: S311 - moments, no secrets
    for number in range(times):
        if number % 2:
            shutil.rmtree(world.root / ".venv")
        else:
            (world.root / ".venv/.envbuild-stamp").unlink()
            site = world.root / ".venv/lib/python3.11/site-packages"
            for folder in chance.sample(sorted(site.glob("*.dist-info")), 2):
                shutil.rmtree(folder)
        _kill_somewhere(world, chance.uniform(0, whole), all_of_it=number % 4 < 2)
        ended = run_script(world)
        assert ended.returncode == 0, ended.stderr
        assert contents(world.root / ".venv") == good


def test_the_interpreter_is_kept(made: World) -> None:
    assert PYTHON is not None
    run_script(made)
    text = (made.root / ".venv/pyvenv.cfg").read_text()
    (made.root / ".venv/.envbuild-stamp").unlink()
    run_script(made)
    assert (made.root / ".venv/pyvenv.cfg").read_text() == text


def test_a_base_is_kept_and_seen(world: World, tmp_path: Path) -> None:
    assert PYTHON is not None
    write(world, "torch", "tqdm")
    world.lock(base_root=str(image(tmp_path).root))
    make_script(world)
    assert run_script(world, ENVBUILD_BASE_PYTHON="/nonexistent").returncode == 12
    python = str(real_base(world, tmp_path).prefix / "bin/python")
    ended = run_script(world, ENVBUILD_BASE_PYTHON=python)
    assert ended.returncode == 0, ended.stderr
    assert set(versions(world.root / ".venv")) == {"tqdm"}
    held = (world.root / ".venv/pyvenv.cfg").read_text()
    assert "include-system-site-packages = true" in held
    assert "nothing to do" in run_script(world, ENVBUILD_BASE_PYTHON=python).stderr


@pytest.mark.parametrize(
    ("torch", "said"), [(None, "(none)"), ("2.9.0a0+nv25.10", "2.9.0a0+nv25.10")]
)
def test_a_base_with_another_torch_is_refused(
    world: World, tmp_path: Path, torch: str | None, said: str
) -> None:
    """The tag of an image moved, or somebody changed what the interpreter sees."""
    write(world, "torch", "tqdm")
    world.lock(base_root=str(image(tmp_path).root))
    make_script(world)
    made = real_base(world, tmp_path)
    shutil.rmtree(made.site / "torch")
    if torch is not None:
        made.torch(torch, cuda="13.0")
    ended = run_script(world, ENVBUILD_BASE_PYTHON=str(made.prefix / "bin/python"))
    assert ended.returncode == 24
    assert f"`{IMAGE}` has torch {said}, the lock is for torch {NVIDIAS}" in ended.stderr
    assert not (world.root / ".venv").exists()


def real_base(world: World, tmp_path: Path) -> MadeEnv:
    """Make a real environment with the torch of the image."""
    prefix = tmp_path / "kept"
    world.uv("venv", "--no-project", "--python", str(PYTHON), str(prefix))
    made = MadeEnv(prefix=prefix, site=prefix / "lib/python3.11/site-packages")
    return made.torch(NVIDIAS, cuda="12.9")
