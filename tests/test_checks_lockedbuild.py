"""EB508: the locked version in another build, and everything that is no sign of one."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from checkvalues import SITE, dist, env, found, one
from index import CP311, LocalIndex, local_wheel
from uvplace import Place

from envbuild.checks.layers import RULES
from envbuild.checks.lockedbuild import another_build
from envbuild.model.finding import Severity
from envbuild.model.fix import Install, Manual
from envbuild.model.installed import RecordEntry, TorchText
from envbuild.model.layers import Layers, LockedVersion, LockFile, Taken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from index import LocalWheel

    from envbuild.model.installed import Distribution

GOOD, BAD = "a" * 64, "b" * 64
PYPI = "https://pypi.org/simple"
WHEEL = "demo-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"


def locked(label: str = "demo 1.0", **changes: object) -> LockedVersion:
    name, _, version = label.partition(" ")
    base = LockedVersion(
        name=name,
        version=version,
        index=PYPI,
        sha256=(GOOD,),
        taken=Taken.INDEX,
        wheels=((WHEEL, None),),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def under(*packages: LockedVersion, managed: bool = False, **changes: object) -> Layers:
    """Return the layers of a project whose uv.lock, or whose pylock, holds these."""
    if managed:
        lock = LockFile(path="uv.lock", packages=packages, **changes)  # type: ignore[arg-type]
        return Layers(directory="/app", has_pyproject=True, uv_lock=lock)
    lock = LockFile(path="pylock.toml", packages=packages, **changes)  # type: ignore[arg-type]
    return Layers(directory="/app", has_pyproject=True, managed=False, pylocks=(lock,))


def archived(label: str, digest: str = "", url: str = f"file:///w/{WHEEL}") -> Distribution:
    return dist(label, origin=url, origin_kind="archive", origin_sha256=digest)


# by what direct_url.json says


def test_a_file_of_another_hash_is_another_build() -> None:
    finding = one(another_build, env(archived("demo 1.0", BAD)), under(locked()))
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "demo 1.0 is not the build that pylock.toml names: it was installed from a file that the"
        " lock does not name"
    )
    assert BAD[:12] in finding.evidence[0]
    assert finding.fixes == (Install(requirements=("demo==1.0",)),)


def test_for_what_belongs_to_torch_it_is_an_error() -> None:
    made = archived("torchvision 0.22.0+cu128", BAD)
    finding = one(another_build, env(made), under(locked("torchvision 0.22.0+cu128")))
    assert finding.severity is Severity.ERROR
    assert finding.brings == ("dist:torchvision",)
    (fix,) = finding.fixes
    assert isinstance(fix, Install)
    assert fix.index == PYPI


def test_the_locked_file_installed_by_its_path_is_the_locked_one() -> None:
    assert found(another_build, env(archived("demo 1.0", GOOD)), under(locked())) == []


def test_a_renamed_file_whose_hash_nobody_noted_proves_nothing() -> None:
    renamed = archived("demo 1.0", url="file:///w/demo-1.0-cp311-cp311-linux_x86_64.whl")
    assert found(another_build, env(renamed), under(locked())) == []


@pytest.mark.parametrize("kind", ["folder", "checkout"])
def test_a_build_of_a_folder_or_a_checkout(kind: str) -> None:
    built = dist("flash-attn 2.8.3", origin="file:///src/flash", origin_kind=kind)
    finding = one(another_build, env(built), under(locked("flash-attn 2.8.3")))
    assert finding.severity is Severity.ERROR
    assert f"it was built from a {kind}" in finding.message
    assert finding.hint is None


def test_in_a_managed_project_uv_puts_the_locked_build_back() -> None:
    built = dist("demo 1.0", origin="file:///src", origin_kind="folder")
    finding = one(another_build, env(built), under(locked(), managed=True))
    assert finding.hint == "the next `uv run` puts the locked build back"
    note = one(another_build, env(archived("demo 1.0")), under(locked(), managed=True))
    assert note.severity is Severity.NOTE
    assert note.message == "the next `uv run` installs demo 1.0 again from its index"


@pytest.mark.parametrize(
    "changes",
    [
        {"editable": True},
        {"installer": "conda"},
        {"site": "/usr/lib/python3/dist-packages"},
        {"version": "1.1"},
        {"name": "other"},
    ],
)
def test_what_is_left_alone(changes: dict[str, object]) -> None:
    built = dist("demo 1.0", origin="file:///src", origin_kind="folder")
    assert found(another_build, env(replace(built, **changes)), under(locked())) == []  # type: ignore[arg-type]


def test_what_is_locked_as_a_folder_or_without_a_version_is_left_alone() -> None:
    built = dist("demo 1.0", origin="file:///src", origin_kind="folder")
    for changes in ({"taken": Taken.OTHER}, {"version": ""}):
        assert found(another_build, env(built), under(locked(**changes))) == []


def test_one_of_several_locked_forks_is_enough() -> None:
    made = archived("demo 1.0", BAD)
    fork = locked(sha256=(BAD,))
    assert found(another_build, env(made), under(locked(), fork)) == []
    extra = under(locked(), optional=(("--extra cu128", fork),))
    assert found(another_build, env(made), extra) == []


def test_a_renamed_wheel_is_told_from_a_build_of_the_same_release() -> None:
    name = "flash-attn 2.8.3+cu12torch2.7cxx11abitrue"
    layers = under(locked(name, taken=Taken.ADDRESS, wheels=()))
    url = "https://github.com/x/flash_attn-2.8.3%2Bcu12torch2.7cxx11abitrue-cp311-cp311-linux.whl"
    assert found(another_build, env(archived("flash-attn 2.8.3", url=url)), layers) == []
    finding = one(another_build, env(dist("flash-attn 2.8.3")), layers)
    assert "not installed from the file that the lock names" in finding.message
    assert finding.fixes == (Manual(text="uv pip sync pylock.toml --reinstall-package flash-attn"),)


# by the wheel's kind and size


def test_a_wheel_for_any_platform_is_not_the_locked_one() -> None:
    hollow = dist("demo 1.0", tags=("py3-none-any",))
    finding = one(another_build, env(hollow), under(locked()))
    assert "it is a wheel for any platform, the locked one is for one" in finding.message
    other = locked(wheels=(("demo-1.0-py3-none-any.whl", None),))
    assert found(another_build, env(hollow), under(other)) == []
    assert one(
        another_build, env(dist("demo 1.0", tags=("cp311-cp311-linux_x86_64",))), under(other)
    )


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("py3-none-linux_x86_64", "torchvision-0.29.2-py3-none-manylinux_2_28_x86_64.whl"),
        ("cp39-cp39-manylinux_2_28_x86_64", "bpy-5.0.1-cp311-cp311-manylinux_2_28_x86_64.whl"),
        ("cp36-cp36m-manylinux2010_x86_64", "decord-0.6.0-py3-none-manylinux2010_x86_64.whl"),
        ("cp311-cp311-linux_x86_64", "demo-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"),
    ],
)
def test_tags_as_real_wheels_have_them_prove_nothing(tag: str, name: str) -> None:
    label = " ".join(name.split("-")[:2])
    layers = under(locked(label, wheels=((name, None),)))
    assert found(another_build, env(dist(label, tags=(tag,))), layers) == []


def test_what_may_have_been_built_of_the_locked_sdist_is_left_alone() -> None:
    pure = dist("markupsafe 3.0.2", tags=("py3-none-any",))
    assert found(another_build, env(pure), under(locked("markupsafe 3.0.2", built=True))) == []


def test_wheels_of_both_kinds_in_a_universal_lock_prove_nothing() -> None:
    both = locked(wheels=((WHEEL, 9 << 30), ("demo-1.0-py3-none-any.whl", 10)))
    for tag in ("py3-none-any", "cp311-cp311-linux_x86_64"):
        assert found(another_build, env(dist("demo 1.0", tags=(tag,))), under(both)) == []


def sized(size: int | None, label: str = "demo 1.0") -> Distribution:
    return dist(label, record=(RecordEntry(path="demo/a.so", sha256=GOOD, size=size),))


def test_an_archive_is_not_larger_than_what_is_in_it() -> None:
    large = under(locked(wheels=((WHEEL, 9_000_000),)))
    finding = one(another_build, env(sized(1_000)), large)
    assert finding.evidence[0].endswith("RECORD: 1,000 bytes in 1 files, locked: 9,000,000 bytes")
    assert found(another_build, env(sized(8_500_000)), large) == []
    assert found(another_build, env(sized(None)), large) == []
    assert found(another_build, env(replace(sized(1), record=None)), large) == []


def test_only_the_wheels_for_this_machine_are_compared() -> None:
    arm = WHEEL.replace("x86_64", "aarch64")
    layers = under(locked(wheels=((WHEEL, 1_000), (arm, 9_000_000))))
    assert found(another_build, env(sized(2_000)), layers) == []
    unknown = under(locked(wheels=((WHEEL, 9_000_000), (WHEEL, None))))
    assert found(another_build, env(sized(2_000)), unknown) == []


# torch/version.py


def test_another_cuda_than_pypis_or_the_targets() -> None:
    torch = dist("torch 2.8.0")
    layers = under(locked("torch 2.8.0", wheels=()))
    assert found(another_build, env(torch, torch="2.8.0+cu128"), layers) == []
    finding = one(another_build, env(torch, torch="2.8.0+cu126"), layers)
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith("it is built for CUDA 12.6, the locked one for CUDA 12.8")
    assert "dist:torch" in finding.because
    target = under(
        locked("torch 2.8.0", index="https://mirror.example/simple", wheels=()), cuda="12.9"
    )
    assert "CUDA 12.9" in one(another_build, env(torch, torch="2.8.0+cu128"), target).message


@pytest.mark.parametrize(
    "text",
    [
        None,
        TorchText(version="2.8.0", cuda="12.8"),
        TorchText(version="2.8.0+cu128", cuda="12.8"),
    ],
)
def test_pypis_own_torch_is_the_locked_one(text: TorchText | None) -> None:
    installed = replace(env(dist("torch 2.8.0")), torch=text)
    assert found(another_build, installed, under(locked("torch 2.8.0", wheels=()))) == []


def test_a_lock_that_names_the_build_is_judged_by_another_rule() -> None:
    torch = dist("torch 2.8.0+cu128")
    layers = under(locked("torch 2.8.0+cu128", wheels=()), cuda="12.8")
    assert found(another_build, env(torch, torch="2.8.0+cu126"), layers) == []


def test_a_mirrors_torch_is_not_compared_with_pypis() -> None:
    mirror = under(locked("torch 2.8.0", index="https://mirror.example/simple", wheels=()))
    assert found(another_build, env(dist("torch 2.8.0"), torch="2.8.0+cu126"), mirror) == []


# real packages: uv, an index of this machine, other bytes under one version


@pytest.fixture(name="place")
def a_place(tmp_path: Path) -> Iterator[Place]:
    with LocalIndex() as index:
        yield Place(folder=tmp_path, index=index)


def noise(size: int) -> bytes:
    """Return bytes that no archive makes smaller."""
    return Random(1).randbytes(size)  # noqa: S311


DEMO = 'dependencies = ["demo"]'
LARGE = local_wheel("demo", "1.0", CP311, files={"demo/_C.so": noise(3 << 20)})
SMALL = local_wheel("demo", "1.0", CP311, files={"demo/_C.so": b"\x7fELF"})
HOLLOW = local_wheel("demo", "1.0", files={"demo/__init__.py": b"from demo import _C\n"})


@pytest.mark.parametrize("wheel", [LARGE, SMALL])
def test_what_uv_sync_installs_is_silent(place: Place, wheel: LocalWheel) -> None:
    place.index.add_pypi(wheel)
    place.project(DEMO)
    place.uv("sync", "--python", "3.11")
    assert place.judged(RULES) == []


@pytest.mark.parametrize("wheel", [SMALL, HOLLOW])
def test_other_bytes_of_an_index_under_the_locked_version(place: Place, wheel: LocalWheel) -> None:
    place.index.add_pypi(LARGE)
    place.project(DEMO)
    place.uv("sync", "--python", "3.11")
    path = place.wheel(wheel)
    place.uv(
        "pip", "install", "--reinstall", "--no-index", "--find-links", str(path).rpartition("/")[0],
        "demo==1.0",
    )  # fmt: skip
    (finding,) = place.judged(RULES)
    assert finding.code == "EB508"
    assert finding.subject == "demo 1.0"
    place.uv("sync", "--reinstall-package", "demo")
    assert place.judged(RULES) == []


def test_a_wheel_by_its_path_in_a_managed_project_is_a_note(place: Place) -> None:
    place.index.add_pypi(LARGE)
    place.project(DEMO)
    place.uv("sync", "--python", "3.11")
    place.uv("pip", "install", "--reinstall", place.wheel(LARGE))
    (finding,) = place.judged(RULES)
    assert (finding.code, finding.severity) == ("EB508", Severity.NOTE)


def test_a_locked_path_and_a_flat_index_are_silent(place: Place) -> None:
    path = place.wheel(SMALL)
    for source in (
        f'[tool.uv.sources]\ndemo = {{ path = "{path}" }}',
        (
            '[tool.uv.sources]\ndemo = { index = "flat" }\n'
            '[[tool.uv.index]]\nname = "flat"\nurl = "./w"\nformat = "flat"'
        ),
    ):
        place.project(DEMO, source)
        place.uv("sync", "--python", "3.11")
        assert place.judged(RULES) == []


def test_the_site_of_these_tests_is_the_environments() -> None:
    assert dist("demo 1.0").site == SITE
