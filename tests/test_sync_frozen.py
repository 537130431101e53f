"""`envbuild sync` on top of a base: nothing of it is touched, and all of it is seen."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from envmaker import MadeEnv
from lockrun import snapshot
from lockworld import PYTHON, pyproject
from scriptworld import make_script, run_script

from envbuild.checks.registry import all_rules
from envbuild.cli.doctorcommand import Where
from envbuild.cli.doctorwiring import DiskExaminer
from envbuild.cli.syncwiring import sync_really
from envbuild.commands.dockerfile import DockerOptions, dockerfile
from envbuild.commands.doctor import DoctorOptions, doctor
from envbuild.commands.script import ScriptOptions
from envbuild.commands.sync import SyncOptions
from envbuild.errors import RefusedError, WorldError
from envbuild.render.progress import Silent
from envbuild.world.projectfiles import ProjectFiles

if TYPE_CHECKING:
    from pathlib import Path

    from lockworld import World

    from envbuild.model.syncreport import SyncReport

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs Python 3.11")


def base(world: World, tmp_path: Path) -> MadeEnv:
    """Make a real environment with a torch of its own, and a project that is locked around it."""
    prefix = tmp_path / "base"
    world.uv("venv", "--no-project", "--python", str(PYTHON), str(prefix))
    made = MadeEnv(prefix=prefix, site=prefix / "lib/python3.11/site-packages")
    made.torch("2.8.0a0+nv25.05", cuda="12.9", requires=["filelock"])
    made.install("filelock", "3.18.0")
    made.install("numpy", "1.26.4")
    text = pyproject("torch", "peft", layer="pip", more=f'base-python = "{prefix}/bin/python"')
    world.write(text.replace('torch = "2.7.0"', ""))
    world.lock()
    return made


def sync(world: World, **changes: str) -> SyncReport:
    environ = {**world.environ, **changes}
    options = SyncOptions(venv=world.root / ".venv", environ=environ)
    return sync_really(options, world.root, True, Silent())  # noqa: FBT003


def names(site: Path) -> set[str]:
    return {path.name.partition("-")[0] for path in site.glob("*.dist-info")}


def test_the_base_is_seen_and_nothing_of_it_is_touched(world: World, tmp_path: Path) -> None:
    made = base(world, tmp_path)
    before = snapshot(made.prefix)
    sync(world)
    venv = world.root / ".venv"
    assert names(venv / "lib/python3.11/site-packages") == {"peft", "pyyaml", "tqdm"}
    code = "import torch, peft, numpy; print(torch.__file__)"
    said = subprocess.run(
        [venv / "bin/python", "-B", "-c", code], check=True, capture_output=True, text=True
    )
    assert said.stdout.strip() == str(made.site / "torch/__init__.py")
    assert snapshot(made.prefix) == before
    assert sync(world).changes == ()
    assert not sync(world).made


def test_doctor_has_nothing_to_say_about_the_base(world: World, tmp_path: Path) -> None:
    base(world, tmp_path)
    sync(world)
    examiner = DiskExaminer(Where(path=str(world.root / ".venv"), project=str(world.root)), {})
    found = doctor(DoctorOptions(), examiner=examiner, facts=world.catalog, rules=all_rules())
    assert [(one.code, one.message) for one in found.findings] == []


def test_another_base_than_the_locked_one_is_refused(world: World, tmp_path: Path) -> None:
    made = base(world, tmp_path)
    made.uninstall("numpy", "1.26.4")
    made.install("numpy", "2.2.5")
    with pytest.raises(RefusedError, match=r"numpy is 2\.2\.5, locked was 1\.26\.4"):
        sync(world)


def test_a_base_that_is_not_there_is_said(world: World, tmp_path: Path) -> None:
    base(world, tmp_path)
    with pytest.raises(WorldError, match="the interpreter of the base, `/nonexistent/python`"):
        sync(world, ENVBUILD_BASE_PYTHON="/nonexistent/python")


def test_the_script_does_the_same(world: World, tmp_path: Path) -> None:
    made = base(world, tmp_path)
    before = snapshot(made.prefix)
    make_script(world)
    ended = run_script(world)
    assert ended.returncode == 0, ended.stderr
    venv = world.root / ".venv"
    code = "import torch, peft; print(torch.__file__)"
    said = subprocess.run(
        [venv / "bin/python", "-B", "-c", code], check=True, capture_output=True, text=True
    )
    assert said.stdout.strip() == str(made.site / "torch/__init__.py")
    assert snapshot(made.prefix) == before
    assert "nothing to do" in run_script(world).stderr
    assert sync(world).changes == ()


def test_an_interpreter_of_a_machine_is_in_no_image(world: World, tmp_path: Path) -> None:
    base(world, tmp_path)
    files = ProjectFiles(world.root)
    with pytest.raises(RefusedError, match="of a machine, which is in no image"):
        dockerfile(DockerOptions(script=ScriptOptions()), files=files)
