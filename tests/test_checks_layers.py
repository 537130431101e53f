"""EB5: what is installed against what the locks say, and the settings that undo a lock."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from checkvalues import dist, env, found, one
from envmaker import EnvMaker
from lockworld import pyproject

from envbuild.checks.drift import drift, sync_removes
from envbuild.checks.layers import RULES, both_layers, incomplete, loose_settings, unusable_locks
from envbuild.checks.locksets import different_sets
from envbuild.core.lockdrift import drift_from, is_locked, lock_for
from envbuild.model.finding import Severity
from envbuild.model.fix import Manual, Relock
from envbuild.model.layers import Layers, LockedVersion, LockFile
from envbuild.world.environment import read_environment
from envbuild.world.layers import read_layers

if TYPE_CHECKING:
    from pathlib import Path

    from lockworld import World

    from envbuild.checks.rule import Rule
    from envbuild.model.finding import Finding

PYPI = "https://pypi.org/simple"


def lock(*labels: str, path: str = "uv.lock", **changes: object) -> LockFile:
    packages = tuple(
        LockedVersion(name=label.partition(" ")[0], version=label.partition(" ")[2], index=PYPI)
        for label in labels
    )
    return replace(LockFile(path=path, packages=packages), **changes)  # type: ignore[arg-type]


def pylock(*labels: str, target: str = "gpu", **changes: object) -> LockFile:
    return lock(*labels, path=f"lockfiles/pylock.{target}.toml", target=target, **changes)


def project(uv_lock: LockFile | None = None, **changes: object) -> Layers:
    base = Layers(directory="/app", uv_lock=uv_lock, has_pyproject=True)
    return replace(base, **changes)  # type: ignore[arg-type]


def pip_layer(*pylocks: LockFile, **changes: object) -> Layers:
    return project(managed=False, pylocks=pylocks, uses_envbuild=True, **changes)


# EB501 (cases DRF-H1, LOC)


def test_uv_run_would_replace_torch() -> None:
    installed = env(dist("torch 2.7.0+cu128"), dist("peft 0.18.0"), torch="2.7.0+cu128")
    finding = one(drift, installed, project(lock("torch 2.11.0", "peft 0.19.0")))
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "the next `uv run` will replace torch 2.7.0+cu128 by 2.11.0, and 1 more package"
    )
    assert finding.evidence[0] == f"torch 2.7.0+cu128 -> 2.11.0 from {PYPI}"
    assert finding.brings == ("lock:uv.lock", "drift:torch", "drift:peft")
    assert isinstance(finding.fixes[0], Manual)


def test_torch_comes_first_among_what_belongs_to_it() -> None:
    installed = env(dist("nvidia-nccl-cu12 2.26.2"), dist("numpy 1.0"), dist("torch 2.7.0+cu128"))
    finding = one(
        drift, installed, project(lock("numpy 2.0", "nvidia-nccl-cu12 2.27.3", "torch 2.8.0"))
    )
    assert finding.subject == "torch 2.7.0+cu128"


def test_pypis_torch_is_the_public_version() -> None:
    installed = env(dist("torch 2.11.0"), torch="2.11.0+cu130")
    assert found(drift, installed, project(lock("torch 2.11.0"))) == []
    finding = one(drift, installed, project(lock("torch 2.11.0+cu130")))
    assert "(torch 2.11.0+cu130 by its own version.py)" in finding.evidence[0]


def test_a_renamed_wheel_is_no_drift_and_another_release_is() -> None:
    installed = env(dist("flash-attn 2.8.3"), dist("torch 2.7.0+cu128"))
    name = "flash-attn 2.8.3+cu12torch2.7cxx11abitrue"
    assert found(drift, installed, project(lock(name, "torch 2.7.0+cu128"))) == []
    older = one(drift, installed, project(lock(name.replace("2.8.3", "2.7.4"))))
    assert older.subject == "flash-attn 2.8.3"


def test_the_version_of_an_extra_is_a_warning_with_its_flag() -> None:
    extra = LockedVersion(name="torch", version="2.9.1+cu128")
    layers = project(lock("torch 2.9.1", optional=(("--extra cu128", extra),)))
    finding = one(drift, env(dist("torch 2.9.1+cu128")), layers)
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "a plain `uv run` will replace torch 2.9.1+cu128 by 2.9.1, `uv run --extra cu128` keeps it"
    )


def test_other_packages_are_a_warning_and_absent_ones_a_note() -> None:
    layers = project(lock("six 1.17.0", "tqdm 4.67.1"))
    changed = one(drift, env(dist("six 1.16.0"), dist("tqdm 4.67.1")), layers)
    assert changed.severity is Severity.WARNING
    absent = one(drift, env(dist("six 1.17.0"), dist("other 1")), layers)
    assert absent.severity is Severity.NOTE


@pytest.mark.parametrize(
    ("installed", "locked"),
    [
        ("six 1.17.0", "six 1.17"),
        ("torch 2.7.0+CU128", "torch 2.7.0+cu128"),
        ("pkg 1.0rc1", "pkg 1.0.rc1"),
        ("mine 0.1", "mine "),
        ("strange not-a-version", "strange not-a-version"),
    ],
)
def test_equal_versions_written_differently(installed: str, locked: str) -> None:
    (version,) = lock(locked).packages
    assert is_locked(dist(installed), version)


def test_what_is_editable_or_in_another_folder_is_not_compared() -> None:
    mine = dist("six 0.1", editable=True)
    system = dist("tqdm 1.0", site="/usr/lib/python3/dist-packages")
    assert found(drift, env(mine, system), project(lock("six 1.17.0"))) == []


def test_an_environment_that_is_not_the_projects_own_is_not_synced() -> None:
    layers = project(lock("torch 2.11.0"), owned=False)
    finding = one(drift, env(dist("torch 2.7.0+cu128")), layers)
    assert "uv run" not in finding.message


def test_of_several_targets_the_nearest_that_fits_applies() -> None:
    installed = env(dist("torch 2.7.0+cu126"), dist("six 1.17.0"))
    other = pylock("torch 2.7.0+cu126", target="arm", fits=False)
    layers = pip_layer(
        other, pylock("torch 2.7.0+cu128"), pylock("torch 2.7.0+cu126", "six 1.16.0", target="old")
    )
    chosen = lock_for(layers, installed)
    assert chosen is not None
    assert chosen.target == "old"
    finding = one(drift, installed, layers)
    assert finding.message == "six 1.17.0 is installed, lockfiles/pylock.old.toml says 1.16.0"


def test_an_environment_of_tools_beside_the_project_follows_no_lock() -> None:
    many = pylock("torch 2.7.0+cu128", "numpy 2.0", "six 1.17.0", "tqdm 4.67.1")
    tools = env(dist("six 1.16.0"), dist("ruff 0.14.0"))
    assert lock_for(pip_layer(many), tools) is None
    assert found(drift, tools, pip_layer(many)) == []
    assert lock_for(project(many, owned=False), tools) is None


def test_no_project_no_finding() -> None:
    nothing = Layers(directory="", owned=False)
    for rule in RULES:
        assert found(rule, env(dist("torch 2.7.0")), nothing) == []


# EB502


def test_locks_of_one_target_that_differ() -> None:
    requirements = lock(
        "torch 2.7.0+cu126", "six 1.17.0", path="requirements.gpu.txt", target="gpu"
    )
    layers = pip_layer(pylock("torch 2.7.0+cu128", "six 1.17.0"), requirements=(requirements,))
    finding = one(different_sets, layers)
    assert finding.severity is Severity.ERROR
    assert "torch: lockfiles/pylock.gpu.toml has 2.7.0+cu128" in finding.evidence[0]
    assert isinstance(finding.fixes[0], Relock)


def test_locks_of_one_version_with_other_files() -> None:
    mine = pylock("torch 2.7.0+cu128", "six 1.17.0")
    theirs = replace(mine, path="requirements.gpu.txt")

    def hashed(one: LockFile, *digests: str) -> LockFile:
        return replace(one, packages=tuple(replace(p, sha256=digests) for p in one.packages))

    first = hashed(mine, "a" * 64, "b" * 64)
    for second in (hashed(theirs, "b" * 64), hashed(theirs)):
        assert found(different_sets, pip_layer(first, requirements=(second,))) == []
    finding = one(different_sets, pip_layer(first, requirements=(hashed(theirs, "c" * 64),)))
    assert finding.severity is Severity.ERROR
    assert finding.evidence == (
        "torch 2.7.0+cu128: the files have other hashes",
        "six 1.17.0: the files have other hashes",
    )


def test_uv_lock_may_hold_more_than_the_target() -> None:
    extra = LockedVersion(name="scipy", version="1.15.2")
    uv_lock = lock("torch 2.7.0+cu128", "iniconfig 2.1", optional=(("--extra vis", extra),))
    layers = project(
        uv_lock,
        pylocks=(
            pylock("torch 2.7.0+cu128", "scipy 1.15.2"),
            pylock("torch 2.8.0", target="other"),
        ),
        uses_envbuild=True,
        default_target="gpu",
    )
    assert found(different_sets, layers) == []
    stale = replace(layers, pylocks=(pylock("torch 2.8.0+cu128"),))
    assert one(different_sets, stale).severity is Severity.ERROR


def test_an_unhashed_package_is_in_the_set_all_the_same() -> None:
    requirements = lock("torch 2.7", "pyg-lib 0.4", path="requirements.gpu.txt", target="gpu")
    layers = pip_layer(
        pylock("torch 2.7", incomplete=("pyg-lib==0.4",)), requirements=(requirements,)
    )
    assert found(different_sets, layers) == []


# EB503


def test_a_uv_lock_that_nothing_reads() -> None:
    finding = one(both_layers, env(), project(lock("torch 2.11.0"), managed=False))
    assert finding.severity is Severity.WARNING
    assert finding.fixes == (Manual(text="rm uv.lock"),)


def test_pip_in_a_managed_project() -> None:
    layers = project(lock("torch 2.11.0"))
    by_pip = dist("torch 2.7.0+cu128", installer="pip")
    finding = one(both_layers, env(by_pip), layers)
    assert finding.because == ("lock:uv.lock",)
    assert found(both_layers, env(dist("torch 2.7.0+cu128", requested=True)), layers) == []
    assert found(both_layers, env(dist("torch 2.11.0", installer="pip")), layers) == []


# EB504 (case DRF-H2)


def test_uv_sync_would_remove_what_torch_needs() -> None:
    torch = dist("torch 2.6.0", requires=("nvidia-cublas-cu12", "triton", "sympy"))
    cublas = dist("nvidia-cublas-cu12 12.4", requires=("nvidia-deep",))
    rest = dist("triton 3.2.0"), dist("sympy 1.14"), dist("nvidia-deep 1"), dist("pip 26")
    installed = env(torch, cublas, *rest)
    finding = one(sync_removes, installed, project(lock("torch 2.6.0", "sympy 1.14")))
    assert finding.severity is Severity.ERROR
    assert finding.evidence == ("nvidia-cublas-cu12", "nvidia-deep", "triton")
    assert isinstance(finding.fixes[0], Relock)


def test_what_uv_sync_may_remove() -> None:
    torch = dist("torch 2.6.0", requires=("sympy",))
    installed = env(torch, dist("sympy 1.14"), dist("pip 26"))
    assert found(sync_removes, installed, project(lock("torch 2.6.0", "sympy 1.14"))) == []
    assert found(sync_removes, installed, project(lock("torch 2.7.0"))) == []
    optional = (("--extra gpu", LockedVersion(name="torch", version="2.6.0")),)
    assert found(sync_removes, installed, project(lock("six 1", optional=optional))) == []
    assert one(sync_removes, installed, project(lock("six 1"))).severity is Severity.WARNING


# EB505, EB506, EB507


def test_loose_settings() -> None:
    layers = project(unrouted=("torchvision",), hazards=("`index-strategy = ...`", "torch-backend"))
    severities = [finding.severity for finding in found(loose_settings, layers)]
    assert severities == [Severity.WARNING, Severity.WARNING, Severity.NOTE]
    assert found(loose_settings, replace(layers, managed=False)) == []
    assert found(loose_settings, project()) == []


def test_incomplete_locks() -> None:
    finding = one(incomplete, pip_layer(pylock("torch 2.7", incomplete=("pyg-lib==0.4",))))
    assert finding.message == "lockfiles/pylock.gpu.toml has 1 package without a hash"
    assert found(incomplete, pip_layer(pylock("torch 2.7"))) == []


def test_unreadable_files() -> None:
    layers = project(unreadable=(("uv.lock", "no TOML"), ("pyproject.toml", "no TOML")))
    first, second = found(unusable_locks, env(), layers)
    assert (first.severity, second.severity) == (Severity.ERROR, Severity.WARNING)
    assert second.fixes == ()


def test_a_lock_that_is_larger_than_is_read_is_not_known(tmp_path: Path) -> None:
    made = EnvMaker(tmp_path).venv()
    (tmp_path / "uv.lock").touch()
    os.truncate(tmp_path / "uv.lock", (64 << 20) + 1)
    installed = made.read()
    finding = one(unusable_locks, installed, read_layers(installed))
    assert finding.severity is Severity.UNKNOWN
    assert finding.message == "uv.lock was not read: it has more than 67,108,864 bytes"


def test_a_lock_for_a_python_that_the_project_excludes() -> None:
    uv_lock = lock("torch 2.7", requires_python="==3.10.*")
    finding = one(unusable_locks, env(), project(uv_lock, requires_python="==3.11.*"))
    assert finding.severity is Severity.ERROR
    assert "uv ignores the lock" in finding.message
    other = one(unusable_locks, env(python="3.12.1"), project(uv_lock, requires_python=">=3.10"))
    assert other.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("locked", "wanted", "python"),
    [
        ("==3.11.*", ">=3.10", "3.11.7"),
        ("==3.11.*", "", "3.11"),
        ("", "==3.11.*", "3.11.7"),
        (">=3.11, <3.12", "==3.11.*", "3.11.7"),
        ("nonsense", "also", "3.11.7"),
        ("==3.11.*", ">=3.10", ""),
    ],
)
def test_a_lock_for_this_python(locked: str, wanted: str, python: str) -> None:
    layers = project(lock("torch 2.7", requires_python=locked), requires_python=wanted)
    assert found(unusable_locks, env(python=python), layers) == []


def test_no_target_for_this_python() -> None:
    layers = pip_layer(pylock("torch 2.7", fits=False, requires_python="==3.11.*"))
    finding = one(unusable_locks, env(python="3.12.1"), layers)
    assert "no lock file fits Python 3.12.1" in finding.message
    assert found(unusable_locks, env(), replace(layers, owned=False)) == []


# with real uv


def judged(world: World) -> list[Finding]:
    installed = read_environment(str(world.root / ".venv"), environ={})
    layers = read_layers(installed)
    return [finding for rule in RULES for finding in found(rule, installed, layers)]


def test_a_synced_project_is_silent_and_says_what_uv_run_would_do(world: World) -> None:
    world.write(pyproject("torch", "peft>=0.19", "six"))
    world.lock()
    world.uv("sync", "--locked", "--python", "3.11")
    assert judged(world) == []
    world.uv("pip", "install", "--index-url", world.environ["ENVBUILD_INDEX_PYPI"], "six==1.16.0")
    (finding,) = judged(world)
    assert finding.message == "the next `uv run` will replace six 1.16.0 by 1.17.0"
    checked = world.uv("sync", "--locked", "--check", "--python", "3.11", check=False)
    assert checked.returncode != 0
    assert "six==1.17.0" in checked.stderr


def test_the_pip_layer_is_silent_after_its_own_install(world: World) -> None:
    world.write(pyproject("torch", "six", layer="pip"))
    world.lock()
    world.uv("venv", "--python", "3.11")
    world.uv("pip", "sync", "lockfiles/requirements.cu128.txt", "--require-hashes")
    assert judged(world) == []


def test_every_rule_has_a_page_with_the_four_parts() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == [
        "EB501",
        "EB504",
        "EB502",
        "EB503",
        "EB505",
        "EB506",
        "EB507",
        "EB508",
        "EB509",
    ]
    for rule in RULES:
        assert _parts(rule) == 4, rule.code


def _parts(rule: Rule) -> int:
    parts = ("**What it finds.**", "**Why it matters.**", "**Example.**", "**Fix.**")
    return sum(part in rule.page for part in parts)


def test_drift_of_nothing() -> None:
    found_ = drift_from(lock(), env())
    assert (found_.changed, found_.absent, found_.extra) == ((), (), ())
