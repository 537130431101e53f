"""`envbuild sync` for real: uv, environments, builds, and runs that are broken off."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from artefacts import installed, pylocked, versions
from lockrun import environ_of, processes_with, snapshot
from lockworld import PYTHON, pyproject

from envbuild.cli.syncwiring import sync_really
from envbuild.commands.sync import SyncOptions
from envbuild.errors import InputError, RefusedError, WorldError
from envbuild.model.installed import UNFINISHED as MARKER
from envbuild.render.progress import Silent

if TYPE_CHECKING:
    from pathlib import Path

    from lockworld import World

    from envbuild.model.syncreport import SyncReport

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs Python 3.11")

BUILD = '[tool.envbuild.build]\npointops = { path = "libs/pointops" }'
LOCK = "lockfiles/pylock.cu128.toml"
BACKEND = """\
import base64, hashlib, os, pathlib, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    with open(os.environ["COUNT"], "a") as file:
        file.write("built\\n")
    info = "pointops-1.0.dist-info"
    files = {"pointops/__init__.py": os.environ.get("TORCH_CUDA_ARCH_LIST", "") + "\\n",
             "pointops/more.py": pathlib.Path("more.py").read_text(),
             f"{info}/METADATA": "Metadata-Version: 2.1\\nName: pointops\\nVersion: 1.0\\n",
             f"{info}/WHEEL":
                 "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    rows = [f"{info}/RECORD,,"]
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.append(f"{path},sha256={digest.decode()},{len(text)}")
    name = "pointops-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": "\\n".join(rows)}.items():
            archive.writestr(path, text)
    return name
"""


def lay_out(world: World, layer: str = "project", *, build: bool = True) -> None:
    """Lock a project with torch, and perhaps one package that is built."""
    world.write(pyproject("torch", "tqdm", layer=layer, more=BUILD if build else ""))
    if build:
        world.write(
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            '[project]\nname = "pointops"\nversion = "1.0"\n',
            "libs/pointops/pyproject.toml",
        )
        world.write(BACKEND, "libs/pointops/backend.py")
        world.write("x = 1\n", "libs/pointops/more.py")
    world.changes["COUNT"] = str(world.root.parent / "builds.txt")
    world.changes["ENVBUILD_CACHE_DIR"] = str(world.root.parent / "envbuild-cache")
    world.lock()


def sync(world: World, *, online: bool = True, **options: object) -> SyncReport:
    """Sync in this process."""
    given = {"venv": world.root / ".venv", "environ": world.environ, **options}
    return sync_really(SyncOptions(**given), world.root, online, Silent())  # type: ignore[arg-type]


def builds(world: World) -> int:
    """Return how often the package was built."""
    path = world.root.parent / "builds.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


def wanted(world: World, *, build: bool = True) -> dict[str, str]:
    """Return the lock's versions and that of the package that is built."""
    pins = versions(pylocked(world.read(LOCK)))
    return {**pins, "pointops": "1.0"} if build else pins


def assert_exact(world: World, *, build: bool = True) -> None:
    """Assert that the environment holds the lock, each file of it, and nothing else."""
    venv = world.root / ".venv"
    assert installed(venv) == wanted(world, build=build)
    site = venv / "lib/python3.11/site-packages"
    recorded = set()
    for record in site.glob("*.dist-info/RECORD"):
        for line in record.read_text().splitlines():
            path = line.split(",")[0]
            recorded.add(path)
            assert (site / path).is_file(), path
    found = {
        str(path.relative_to(site))
        for path in site.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {one for one in found - recorded if not one.startswith("_virtualenv")} == set()
    assert not (venv / MARKER).exists()


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_a_fresh_environment_holds_the_lock_and_the_builds(world: World, layer: str) -> None:
    lay_out(world, layer)
    report = sync(world)
    assert report.made
    assert [(one.project, one.outcome) for one in report.builds] == [("pointops", "built")]
    assert_exact(world)
    site = world.root / ".venv/lib/python3.11/site-packages"
    assert (site / "pointops/__init__.py").read_text() == "10.0\n"
    again = sync(world)
    assert again.unchanged
    assert builds(world) == 1


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_a_drifted_environment_comes_back_to_exactly_the_lock(world: World, layer: str) -> None:
    lay_out(world, layer)
    sync(world)
    pypi = str(world.index.urls.pypi)
    other = ("torch==2.8.0", "einops", "typing-extensions", "six==1.16.0")
    world.uv("pip", "install", "--no-config", "--index-url", pypi, "--no-deps", *other)
    world.uv("pip", "uninstall", "tqdm", "pointops")
    report = sync(world)
    assert {"- torch==2.8.0", "+ torch==2.7.0+cu128", "- six==1.16.0"} <= set(report.changes)
    assert_exact(world)
    assert builds(world) == 1, "the built wheel was at hand"


def test_uv_run_changes_nothing_afterwards(world: World) -> None:
    lay_out(world)
    sync(world)
    before = snapshot(world.root / ".venv")
    show = "import importlib.metadata as m; print(m.version('torch'), m.version('pointops'))"
    done = world.uv("run", "--no-progress", "python", "-B", "-c", show)
    assert done.stdout == "2.7.0+cu128 1.0\n"
    assert snapshot(world.root / ".venv") == before
    assert sync(world).unchanged


def test_files_that_are_gone_are_put_back(world: World) -> None:
    lay_out(world)
    sync(world)
    site = world.root / ".venv/lib/python3.11/site-packages"
    shutil.rmtree(site / "torch")
    (site / "pointops" / "more.py").write_text("")
    shutil.rmtree(site / "tqdm-4.67.1.dist-info")
    (site / "numpy-1.0.dist-info").mkdir()
    report = sync(world, online=False)
    assert report.mended == ("pointops", "torch")
    assert_exact(world)
    assert builds(world) == 1


def test_an_environment_of_another_python_is_made_anew(world: World) -> None:
    lay_out(world, build=False)
    venv = world.root / ".venv"
    world.uv("venv", "--python", "3.11", str(venv))
    config = venv / "pyvenv.cfg"
    config.write_text(config.read_text().replace("3.11.", "3.10."))
    assert sync(world).made
    assert_exact(world, build=False)
    (venv / "bin" / "python").unlink()
    assert sync(world).made
    assert_exact(world, build=False)


def test_a_folder_that_is_no_environment_is_left_alone(world: World) -> None:
    lay_out(world, build=False)
    folder = world.root / "data"
    folder.mkdir()
    (folder / "precious.txt").write_text("x")
    with pytest.raises(InputError, match="no virtual environment and not empty"):
        sync(world, venv=folder)
    assert (folder / "precious.txt").read_text() == "x"


def test_another_place_by_its_name(world: World) -> None:
    lay_out(world)
    venv = world.root.parent / "else where"
    sync(world, venv=venv)
    assert installed(venv) == wanted(world)
    assert not (world.root / ".venv").exists()


def test_offline_with_what_is_at_hand(world: World) -> None:
    lay_out(world)
    sync(world)
    shutil.rmtree(world.root / ".venv")
    report = sync(world, online=False)
    assert [one.outcome for one in report.builds] == ["cached"]
    assert_exact(world)


def test_offline_with_nothing_at_hand_says_so(world: World) -> None:
    lay_out(world, "pip", build=False)
    world.changes["UV_CACHE_DIR"] = str(world.root.parent / "empty")
    with pytest.raises(WorldError, match="`uv pip sync` failed") as caught:
        sync(world, online=False)
    assert caught.value.hint == "leave out `--offline`"


def test_without_building_it_is_left_out_and_said(world: World) -> None:
    lay_out(world)
    report = sync(world, build=False)
    assert [one.outcome for one in report.builds] == ["left out"]
    assert builds(world) == 0
    assert_exact(world, build=False)


def test_a_source_that_was_changed_is_built_again(world: World) -> None:
    lay_out(world)
    sync(world)
    world.write("x = 2\n", "libs/pointops/more.py")
    assert [one.outcome for one in sync(world).builds] == ["built"]
    site = world.root / ".venv/lib/python3.11/site-packages"
    assert (site / "pointops/more.py").read_text() == "x = 2\n"


@pytest.mark.parametrize("there", [False, True])
def test_a_dry_run_changes_nothing(world: World, *, there: bool) -> None:
    lay_out(world)
    if there:
        sync(world)
        world.uv("pip", "uninstall", "tqdm")
    before = snapshot(world.root.parent)
    report = sync(world, dry_run=True)
    assert "+ tqdm==4.67.1" in report.changes
    assert report.made is not there
    assert snapshot(world.root.parent) == before


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"tqdm"', '"tqdm", "einops"', "`einops` is required, the lock has no einops"),
        ('"tqdm"', '"tqdm<4"', "`tqdm<4` is required, the lock has tqdm 4.67.1"),
        ('gpus = ["B200"]', 'gpus = ["H100"]', "the lock is for 10.0, the target for 9.0"),
        (
            '"torch==2.7.0+cu128"',
            '"torch==2.8.0+cu128"',
            "`torch==2.8.0+cu128` stands in [tool.uv], the lock has torch 2.7.0+cu128",
        ),
        ("libs/pointops", "libs/other", "`pointops` is to be built from `libs/other`"),
    ],
)
def test_a_stale_lock_is_refused(world: World, old: str, new: str, reason: str) -> None:
    lay_out(world)
    world.write(world.read("pyproject.toml").replace(old, new))
    with pytest.raises(RefusedError) as caught:
        sync(world)
    assert reason in caught.value.message
    assert "envbuild lock" in (caught.value.hint or "")
    assert not (world.root / ".venv").exists()


def test_locks_that_disagree_are_refused(world: World) -> None:
    lay_out(world)
    world.write(world.read("uv.lock").replace("4.67.1", "4.67.2"), "uv.lock")
    with pytest.raises(RefusedError, match=r"has tqdm 4\.67\.1, uv\.lock has 4\.67\.2"):
        sync(world)
    (world.root / "uv.lock").unlink()
    with pytest.raises(RefusedError, match=r"there is no uv\.lock"):
        sync(world)


def test_an_incomplete_lock_is_refused_unless_that_is_allowed(world: World) -> None:
    lay_out(world, "pip", build=False)
    lock = world.read(LOCK)
    world.write(
        lock.replace("[tool.envbuild]\n", '[tool.envbuild]\nincomplete = ["odd==1.0"]\n'), LOCK
    )
    with pytest.raises(RefusedError, match=r"incomplete: it has no hash of odd 1\.0"):
        sync(world)
    sync(world, allow_unhashed=True)
    assert "torch" in installed(world.root / ".venv")


def test_a_lock_around_a_base_makes_no_environment_of_its_own(world: World) -> None:
    lay_out(world, "pip", build=False)
    lock = world.read(LOCK)
    world.write(lock.replace("[tool.envbuild]\n", '[tool.envbuild]\nbase = "nvcr.io/x:1"\n'), LOCK)
    with pytest.raises(RefusedError, match=r"locked around `nvcr\.io/x:1`"):
        sync(world)


def test_a_wheel_with_other_bytes_is_not_installed(world: World) -> None:
    lay_out(world, "pip", build=False)
    lock = world.read(LOCK)
    hashes = sorted({pin for one in pylocked(lock).values() for pin in one.hashes})
    world.write(lock.replace(hashes[0], "0" * 64), LOCK)
    world.changes["UV_CACHE_DIR"] = str(world.root.parent / "fresh")
    with pytest.raises(WorldError, match="Hash mismatch"):
        sync(world)


@pytest.mark.parametrize("name", ["cu130", ""])
def test_a_target_or_lock_that_is_not_there(world: World, name: str) -> None:
    lay_out(world, build=False)
    if name:
        with pytest.raises(InputError, match=r"no target `cu130`"):
            sync(world, target=name)
    else:
        (world.root / LOCK).unlink()
        with pytest.raises(
            InputError, match=r"`lockfiles/pylock\.cu128\.toml` is not there"
        ) as caught:
            sync(world)
        assert caught.value.hint == "envbuild lock --target cu128"


def test_two_at_once_do_not_meet(world: World) -> None:
    lay_out(world, build=False)
    sync(world)
    world.changes["ENVBUILD_LOCK_TIMEOUT"] = "0.2"
    for lock in (".envbuild-lock", ".lock"):
        with (world.root / ".venv" / lock).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with pytest.raises(WorldError, match="another run, or a uv that one left behind"):
                sync(world)
    assert sync(world).unchanged
    world.changes["ENVBUILD_LOCK_TIMEOUT"] = "soon"
    with pytest.raises(InputError, match="wanted a number of seconds"):
        sync(world)


def test_the_user_s_settings_of_uv_lead_nowhere_else(world: World) -> None:
    lay_out(world)
    world.changes |= {
        "UV_NO_SYNC": "1",
        "UV_FROZEN": "1",
        "UV_PYTHON": "/nowhere",
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/",
        "UV_TORCH_BACKEND": "cpu",
        "VIRTUAL_ENV": "/nowhere",
        "PYTHONPATH": "/nowhere",
        "UV_PROJECT_ENVIRONMENT": "/nowhere",
    }
    sync(world)
    assert_exact(world)


def start(world: World, *arguments: str) -> subprocess.Popen[str]:
    """Start the command line in a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "envbuild", "sync", *arguments],
        cwd=world.root,
        env=environ_of(world),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_the_command_line_ends_with_the_doctor(world: World) -> None:
    lay_out(world)
    done = start(world, "--format", "json")
    out, err = done.communicate(timeout=60)
    document = json.loads(out)
    assert done.returncode == 0, err
    assert document["sync"]["builds"] == [{"name": "pointops", "outcome": "built"}]
    assert document["doctor"]["environment"]["distributions"] == len(wanted(world))
    text = start(world)
    out, err = text.communicate(timeout=60)
    assert "nothing to do" in out, err
    assert "healthy" in out


def kill(world: World, moment: float, *, all_of_it: bool) -> None:
    """Start a sync and end it by force after some seconds, with all that it started or alone."""
    process = start(world)
    time.sleep(moment)
    process.kill()
    process.communicate()
    if all_of_it:
        for pid in processes_with(f"TMPDIR={world.root.parent / 'tmp'}"):
            with_pid(pid)


def with_pid(pid: int) -> None:
    """End a process that may have ended already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def killed_often(world: World, layer: str, rounds: int) -> None:
    """Kill syncs of fresh and of drifted environments; each time the next one puts it right."""
    lay_out(world, layer)
    begun = time.monotonic()
    sync(world)
    longest = time.monotonic() - begun + 1.0  # a process takes longer to start
    rolled = random.Random(7)  # noqa: S311
    pypi = str(world.index.urls.pypi)
    for number in range(rounds):
        if number % 3 == 0:
            shutil.rmtree(world.root / ".venv", ignore_errors=True)
        elif number % 3 == 1:
            other = ("torch==2.8.0", "einops", "six==1.16.0")
            world.uv("pip", "install", "--no-config", "--index-url", pypi, "--no-deps", *other)
        if number % 4 == 0:
            shutil.rmtree(world.root.parent / "envbuild-cache", ignore_errors=True)
        kill(world, rolled.uniform(0.2, longest), all_of_it=number % 2 == 0)
        sync(world)
        assert_exact(world)


def test_killed_at_any_moment_it_is_put_right(world: World) -> None:
    killed_often(world, "project", 8)


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["project", "pip"])
def test_killed_at_fifty_moments_it_is_put_right(world: World, layer: str) -> None:
    killed_often(world, layer, 50)


def test_interrupted_it_says_how_to_go_on(world: World) -> None:
    lay_out(world)
    world.write(
        BACKEND.replace("    with open", "    import time; time.sleep(30)\n    with open", 1),
        "libs/pointops/backend.py",
    )
    process = start(world)
    marker = world.root / ".venv" / MARKER
    site = world.root / ".venv/lib/python3.11/site-packages"
    for _ in range(600):
        if marker.exists() and (site / "wheel-0.45.1.dist-info").exists():
            break
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run `envbuild sync` again" in err
    assert out == ""
    assert not processes_with(f"TMPDIR={world.root.parent / 'tmp'}")
    world.write(BACKEND, "libs/pointops/backend.py")
    sync(world)
    assert_exact(world)


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("runuser") is None, reason="needs a user")
def test_an_environment_that_cannot_be_written_is_said(world: World, tmp_path: Path) -> None:
    lay_out(world, build=False)
    sync(world)
    (world.root / ".venv" / MARKER).mkdir()
    with pytest.raises(WorldError, match="cannot be written"):
        sync(world)
    assert tmp_path.exists()
