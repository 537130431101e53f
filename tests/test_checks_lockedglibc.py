"""EB509: locks for a newer glibc than the system's, and all that is no sign of one."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from checkvalues import dist, env, found, host, one
from index import LocalIndex, local_wheel
from lockworld import UV
from uvplace import Place

from envbuild.checks.layers import RULES
from envbuild.checks.lockedglibc import newer_glibc
from envbuild.model.finding import Severity
from envbuild.model.fix import Manual
from envbuild.model.layers import Layers, LockedVersion, LockFile, Taken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from index import LocalWheel

    from envbuild.model.host import Host
    from envbuild.model.installed import Installed

OLD, NEW = host(glibc="2.31"), host(glibc="2.39")
NEWER = "demo-1.0-cp311-cp311-manylinux_2_34_x86_64.whl"
OLDER = "demo-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"


def locked(*wheels: str, label: str = "demo 1.0", **changes: object) -> LockedVersion:
    name, _, version = label.partition(" ")
    base = LockedVersion(
        name=name,
        version=version,
        taken=Taken.INDEX,
        wheels=tuple((wheel, None) for wheel in wheels),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def pylock(
    *packages: LockedVersion, glibc: str = "", target: str = "gpu", **changes: object
) -> LockFile:
    base = LockFile(
        path=f"lockfiles/pylock.{target}.toml", target=target, packages=packages, glibc=glibc
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def project(*pylocks: LockFile, **changes: object) -> Layers:
    base = Layers(directory="/app", managed=False, uses_envbuild=True, pylocks=pylocks)
    return replace(base, **changes)  # type: ignore[arg-type]


def under_uv(*packages: LockedVersion, **changes: object) -> Layers:
    lock = LockFile(path="uv.lock", packages=packages, **changes)  # type: ignore[arg-type]
    return Layers(directory="/app", uv_lock=lock)


def silent(layers: Layers, where: Host = OLD, installed: Installed | None = None) -> bool:
    return found(newer_glibc, installed or env(), layers, where) == []


# by the target's own `glibc`


def test_every_target_is_for_a_newer_glibc() -> None:
    layers = project(pylock(glibc="2.39", target="b"), pylock(glibc="2.35", target="a"))
    finding = one(newer_glibc, env(), layers, OLD)
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "lockfiles/pylock.a.toml is for glibc 2.35 or newer, this machine has 2.31"
    )
    assert finding.evidence == ("lockfiles/pylock.b.toml is for glibc 2.39 or newer",)
    assert finding.fixes == (
        Manual(
            text="use a system with glibc 2.35 (Ubuntu 22.04 or later), or set"
            ' `glibc = "2.31"` in the target and run `envbuild lock`'
        ),
    )


def test_an_image_is_called_an_image() -> None:
    image = replace(OLD, is_image=True)
    assert (
        "the image has 2.31"
        in one(newer_glibc, env(), project(pylock(glibc="2.35")), image).message
    )


@pytest.mark.parametrize("other", ["2.31", "2.9", "", "musl", "2"])
def test_one_target_that_fits_is_enough(other: str) -> None:
    assert silent(project(pylock(glibc="2.35"), pylock(glibc=other, target="old")))


def test_versions_are_compared_as_numbers() -> None:
    assert silent(project(pylock(glibc="2.4")))
    assert not silent(project(pylock(glibc="2.4")), host(glibc="2.3"))


@pytest.mark.parametrize("glibc", [None, "unknown"])
def test_another_libc_is_not_compared(glibc: str | None) -> None:
    layers = project(pylock(locked(NEWER), glibc="2.35"))
    assert silent(layers, host(glibc=glibc))


def test_a_lock_for_another_python_says_nothing() -> None:
    assert silent(project(pylock(locked(NEWER), glibc="2.35", fits=False)))
    assert silent(under_uv(locked(NEWER), fits=False))
    assert silent(project())


def test_an_environment_of_tools_beside_the_lock_is_left_alone() -> None:
    layers = project(pylock(locked(NEWER), glibc="2.35"), owned=False)
    assert silent(layers, installed=env(dist("ruff 0.14.0")))
    assert not silent(layers, installed=env(dist("demo 1.0")))


# by the names of the wheels


def test_a_package_that_cannot_be_installed_here() -> None:
    finding = one(newer_glibc, env(), under_uv(locked(NEWER), locked(label="x 1")), OLD)
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "demo 1.0 of uv.lock cannot be installed here: its wheels are for glibc 2.34 or newer,"
        " this machine has 2.31"
    )
    assert finding.evidence == (NEWER,)
    assert finding.brings == ("dist:demo",)
    (fix,) = finding.fixes
    assert isinstance(fix, Manual)
    assert fix.text.endswith("or lock an older release of demo")
    assert silent(under_uv(locked(NEWER)), NEW)


def test_the_targets_glibc_is_part_of_its_evidence_and_no_finding_of_its_own() -> None:
    finding = one(newer_glibc, env(), project(pylock(locked(NEWER), glibc="2.35")), OLD)
    assert finding.severity is Severity.ERROR
    assert finding.evidence == (NEWER, "lockfiles/pylock.gpu.toml is for glibc 2.35 or newer")
    assert isinstance(finding.fixes[0], Manual)
    assert '`glibc = "2.31"`' in finding.fixes[0].text


def test_several_packages_are_one_finding_about_the_newest() -> None:
    newest = locked(NEWER.replace("demo", "late").replace("2_34", "2_39"), label="late 2.0")
    finding = one(newer_glibc, env(), under_uv(locked(NEWER), newest), OLD)
    assert finding.message.startswith("late 2.0 of uv.lock cannot be installed here")
    assert finding.message.endswith("(and so for 1 more package)")
    assert finding.brings == ("dist:demo", "dist:late")


def test_what_is_installed_all_the_same_is_a_warning() -> None:
    finding = one(newer_glibc, env(dist("demo 1.0")), under_uv(locked(NEWER)), OLD)
    assert finding.severity is Severity.WARNING
    assert "cannot be installed again here" in finding.message
    assert finding.brings == ()
    other = one(newer_glibc, env(dist("demo 0.9")), under_uv(locked(NEWER)), OLD)
    assert other.severity is Severity.ERROR


@pytest.mark.parametrize(
    "wheels",
    [
        (NEWER, OLDER),
        (NEWER, "demo-1.0-py3-none-any.whl"),
        (NEWER, "demo-1.0-cp38-abi3-manylinux_2_28_x86_64.whl"),
        ("demo-1.0-cp311-cp311-linux_x86_64.whl",),
        ("demo-1.0-cp311-cp311-manylinux_2_34_x86_64.manylinux_2_28_x86_64.whl",),
        ("demo-1.0-cp311-cp311-manylinux_2_34_aarch64.whl",),
        ("demo-1.0-cp312-cp312-manylinux_2_34_x86_64.whl",),
        ("demo-1.0-cp311-cp311-musllinux_1_2_x86_64.whl",),
        ("no wheel at all",),
        (),
    ],
)
def test_wheels_that_prove_nothing(wheels: tuple[str, ...]) -> None:
    assert silent(under_uv(locked(*wheels)))


def test_an_sdist_may_be_built_here() -> None:
    assert silent(under_uv(locked(NEWER, built=True)))


def test_a_fork_that_fits_is_enough() -> None:
    assert silent(under_uv(locked(NEWER), locked(OLDER, label="demo 0.9")))


def test_one_lock_without_such_a_package_is_enough() -> None:
    assert silent(project(pylock(locked(NEWER)), pylock(locked(OLDER), target="old")))


@pytest.mark.parametrize("changes", [{"python": ""}, {"free_threaded": True}, {"machine": "arm"}])
def test_an_interpreter_that_is_not_known_well(changes: dict[str, object]) -> None:
    assert silent(under_uv(locked(NEWER)), installed=env(**changes))


def test_a_lock_that_uv_does_not_read_here_is_not_judged() -> None:
    layers = replace(under_uv(locked(NEWER)), managed=False)
    assert silent(layers)


# real uv, an index of this machine


@pytest.fixture(name="place")
def a_place(tmp_path: Path) -> Iterator[Place]:
    with LocalIndex() as index:
        yield Place(folder=tmp_path, index=index)


def tagged(minor: int) -> LocalWheel:
    return local_wheel("demo", "1.0", f"cp311-cp311-manylinux_2_{minor}_{os.uname().machine}")


def test_uv_refuses_what_is_called_an_error(place: Place) -> None:
    place.index.add_pypi(tagged(99))
    place.project('dependencies = ["demo"]')
    place.uv("lock", "--python", "3.11")
    place.uv("venv", "--python", "3.11")
    (finding,) = (one for one in place.judged(RULES) if one.code == "EB509")
    assert finding.severity is Severity.ERROR
    words = ("--directory", place.folder, "--cache-dir", place.folder / "cache")
    done = subprocess.run(
        [UV, "sync", "--frozen", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "manylinux_2_99" in done.stderr


def test_a_wheel_for_this_glibc_is_silent(place: Place) -> None:
    place.index.add_pypi(tagged(17))
    place.index.add_pypi(tagged(99))
    place.project('dependencies = ["demo"]')
    place.uv("sync", "--python", "3.11")
    assert place.judged(RULES) == []
