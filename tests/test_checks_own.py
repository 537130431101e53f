"""EB9: what envbuild's own commands left behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from checkvalues import env, found, one
from envmaker import EnvMaker
from lockworld import World, pyproject

from envbuild.checks.layers import unusable_locks
from envbuild.checks.own import (
    RULES,
    newer_locks,
    stale_scripts,
    unfinished_lock,
    unfinished_sync,
)
from envbuild.commands.dockerfile import DockerOptions, dockerfile
from envbuild.commands.script import ScriptOptions, script
from envbuild.errors import WorldError
from envbuild.model.finding import Severity
from envbuild.model.fix import Relock
from envbuild.model.installed import UNFINISHED
from envbuild.model.layers import Layers
from envbuild.model.ownfiles import Generated, OwnFiles
from envbuild.world.layers import read_layers
from envbuild.world.projectfiles import ProjectFiles

if TYPE_CHECKING:
    from pathlib import Path

    from index import LocalIndex

    from envbuild.catalog.reader import Catalog
    from envbuild.model.finding import Finding

PYLOCK = "lockfiles/pylock.cu128.toml"
SCRIPT = "scripts/install-cu128.sh"


def test_a_sync_that_was_broken_off_is_said(tmp_path: Path) -> None:
    made = EnvMaker(tmp_path).venv()
    installed = made.read()
    assert found(unfinished_sync, installed) == []
    prefix = installed.prefix
    (type(tmp_path)(prefix) / UNFINISHED).touch()
    finding = one(unfinished_sync, made.read())
    assert finding.message == "`envbuild sync` is at work here, or was broken off"
    assert finding.evidence == (f"{prefix}/{UNFINISHED}",)


def test_an_environment_that_no_sync_was_in_is_silent() -> None:
    assert found(unfinished_sync, env()) == []


def layers_at(folder: Path) -> Layers:
    """Read the project of a folder, around an environment that is made there."""
    made = EnvMaker(folder).venv() if not (folder / ".venv").exists() else None
    installed = made.read() if made else env(prefix=str(folder / ".venv"))
    return read_layers(installed, directory=str(folder))


def judged(folder: Path) -> list[Finding]:
    layers = layers_at(folder)
    return [finding for rule in RULES[1:] for finding in found(rule, layers)]


# EB902


def generated(**changes: object) -> Layers:
    base = Generated(path=SCRIPT, lock=PYLOCK, made_from="a" * 64, now="a" * 64, untouched=True)
    one = replace(base, **changes)  # type: ignore[arg-type]
    return Layers(directory="/app", own=OwnFiles(generated=(one,)))


def test_a_script_of_another_lock() -> None:
    finding = one(stale_scripts, generated(now="b" * 64))
    assert finding.severity is Severity.WARNING
    assert finding.message == f"{SCRIPT} was made from another {PYLOCK}"
    assert finding.evidence == ("made from: sha256 aaaaaaaaaaaa", f"{PYLOCK}: sha256 bbbbbbbbbbbb")
    gone = one(stale_scripts, generated(now=None, path="scripts/Dockerfile.cu128"))
    assert gone.message == f"scripts/Dockerfile.cu128 was made from {PYLOCK}, which is gone"
    assert "envbuild dockerfile" in str(gone.fixes)


def test_an_edited_script_is_a_note_and_one_of_this_lock_is_silent() -> None:
    assert one(stale_scripts, generated(untouched=False)).severity is Severity.NOTE
    assert found(stale_scripts, generated()) == []


def test_real_scripts_are_silent_until_the_lock_is_another(world: World) -> None:
    world.write(pyproject("torch", "six"))
    world.lock()
    files = ProjectFiles(world.root)
    script(ScriptOptions(), files=files)
    dockerfile(DockerOptions(script=ScriptOptions()), files=files)
    world.write("#!/bin/sh\n# somebody's own\n", path="scripts/install-other.sh")
    assert judged(world.root) == []
    crlf = (world.root / SCRIPT).read_bytes().replace(b"\n", b"\r\n")
    (world.root / SCRIPT).write_bytes(crlf)
    assert judged(world.root) == []
    world.write(world.read(SCRIPT) + "# more\n", path=SCRIPT)
    assert [one.severity for one in judged(world.root)] == [Severity.NOTE]
    world.write(pyproject("torch"))
    world.lock()
    found_ = judged(world.root)
    assert {one.code for one in found_} == {"EB902"}
    assert all(one.severity is Severity.WARNING for one in found_)
    script(ScriptOptions(), files=files)
    dockerfile(DockerOptions(script=ScriptOptions()), files=files)
    assert judged(world.root) == []


# EB903


@pytest.fixture(name="locked", scope="module")
def a_locked_project(
    shared_index: LocalIndex,
    shared_cache: Path,
    catalog: Catalog,
    tmp_path_factory: pytest.TempPathFactory,
) -> World:
    """Return a project with a fresh lock; who changes a file puts it back."""
    root = tmp_path_factory.mktemp("project")
    world = World(index=shared_index, root=root, cache=shared_cache, catalog=catalog)
    world.write(pyproject("torch", "six"))
    world.lock()
    return world


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"six"', '"six", "einops"', "`einops` is required, the lock has no einops"),
        ('gpus = ["B200"]', 'gpus = ["H100"]', "the lock is for 10.0, the target for 9.0"),
        (
            'torch = "2.7.0"',
            'torch = "2.8.*"',
            "the lock has torch 2.7.0+cu128, the target wants `==2.8.*`",
        ),
        (
            'gpus = ["B200"]',
            'gpus = ["B200"]\ncuda = "13.0"',
            "the lock is for CUDA 12.8, the target for CUDA `==13.0.*`",
        ),
        ('gpus = ["B200"]\n', "", "the lock is for CUDA 12.8, the target for the CPU"),
        ("targets.cu128]", "targets.new]", "pyproject.toml has no target `cu128` any more"),
        (
            '    "torch==2.7.0+cu128",\n',
            "",
            "`constraint-dependencies` in [tool.uv] does not hold torch at 2.7.0+cu128",
        ),
        (
            "torch = { index",
            "other = { index",
            "[tool.uv.sources] does not lead torch to its index",
        ),
        (
            "torch==2.7.0+cu128",
            "torch==2.8.0+cu128",
            "`torch==2.8.0+cu128` stands in [tool.uv], the lock has torch 2.7.0+cu128",
        ),
    ],
)
def test_a_lock_that_the_project_has_left(
    locked: World, before: str, after: str, said: str
) -> None:
    text = locked.read("pyproject.toml")
    assert before in text
    locked.write(text.replace(before, after, 1))
    try:
        (finding,) = judged(locked.root)
    finally:
        locked.write(text)
    assert finding.code == "EB903"
    assert finding.message == f"{PYLOCK} is stale: {said}"
    assert isinstance(finding.fixes[0], Relock)


def test_a_version_that_was_edited_into_the_lock_is_said_elsewhere(locked: World) -> None:
    text = locked.read(PYLOCK)
    locked.write(text.replace('version = "1.17.0"', 'version = "1.16.0"'), path=PYLOCK)
    try:
        assert judged(locked.root) == []
        (finding,) = found(unusable_locks, env(), layers_at(locked.root))
    finally:
        locked.write(text, path=PYLOCK)
    assert "is not consistent with package version '1.16.0'" in finding.message


@pytest.mark.parametrize("layer", ["project", "pip"])
def test_a_fresh_lock_is_silent(world: World, layer: str) -> None:
    world.write(pyproject("torch", "peft", "torch-scatter", "flash-attn", layer=layer))
    world.lock()
    assert judged(world.root) == []
    text = world.read("pyproject.toml")
    for torch, cuda in (("2.7.0+cu128", "12.8"), (">=2.6,<2.8", ">=12.6,<13"), ("2.7", "cu128")):
        same = text.replace('torch = "2.7.0"\n', f'torch = "{torch}"\ncuda = "{cuda}"\n')
        assert same != text
        world.write(same)
        assert judged(world.root) == []
    world.write(world.read("pyproject.toml") + '\n[project.urls]\nhome = "https://example.org"\n')
    assert judged(world.root) == []


def test_a_project_that_cannot_be_read_says_nothing_here(locked: World) -> None:
    text = locked.read("pyproject.toml")
    for broken in (text.replace('python = "3.11"', "python = 3"), text + "[", ""):
        locked.write(broken)
        try:
            assert judged(locked.root) == []
        finally:
            locked.write(text)


# EB904


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("uv.lock", 'version = 2\nrevision = 1\n[[package]]\nname = "a"\n', "version 2"),
        ("pylock.toml", 'lock-version = "2.0"\ncreated-by = "x"\n', "lock-version 2.0"),
    ],
)
def test_a_lock_of_a_newer_format_is_not_known(
    tmp_path: Path, path: str, text: str, said: str
) -> None:
    (tmp_path / path).write_text(text, encoding="utf-8")
    layers = layers_at(tmp_path)
    finding = one(newer_locks, layers)
    assert finding.severity is Severity.UNKNOWN
    assert finding.message == f"{path} was not judged: it says `{said}`, known is 1"
    assert found(unusable_locks, env(), layers) == []


@pytest.mark.parametrize(
    "text",
    ['version = 1\nrevision = 9\n[[package]]\nname = "a"\nversion = "26.1"\nsource = {}\n', "x"],
)
def test_a_lock_of_a_known_format_or_of_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "uv.lock").write_text(text, encoding="utf-8")
    assert found(newer_locks, layers_at(tmp_path)) == []


# EB905


def test_a_lock_that_was_broken_off(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(pyproject("torch"), encoding="utf-8")
    assert found(unfinished_lock, layers_at(tmp_path)) == []
    stage = tmp_path / ".envbuild-stage"
    stage.mkdir()
    assert one(unfinished_lock, layers_at(tmp_path)).severity is Severity.NOTE
    (stage / "ready.json").touch()
    finding = one(unfinished_lock, layers_at(tmp_path))
    assert finding.severity is Severity.WARNING
    assert finding.message.endswith("was broken off while its files were put in place")


def test_it_is_what_a_write_that_failed_half_way_leaves(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(pyproject("torch"), encoding="utf-8")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").write_text("old", encoding="utf-8")
    files = ProjectFiles(tmp_path)
    with pytest.raises(WorldError):
        files.write_all({"b": "new", "a": "a folder is in its way"})
    assert one(unfinished_lock, layers_at(tmp_path)).severity is Severity.WARNING
    (tmp_path / "a").rmdir()
    files.recover()
    assert found(unfinished_lock, layers_at(tmp_path)) == []
