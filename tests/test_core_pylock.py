"""The lock files of a target: rendered, read back, and accepted by independent parsers."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.pylock import Pylock
from packaging.requirements import Requirement

from envbuild.core.compare import compare_locks
from envbuild.core.pylock import exported_packages, read_target_lock, render_pylock
from envbuild.core.requirementstxt import parse_requirements, render_requirements
from envbuild.core.uvlock import preferences_lock
from envbuild.errors import InputError, RefusedError, WorldError
from envbuild.model.lock import Artifact, Pinned, TargetLock
from envbuild.model.stack import SourceBuild
from envbuild.model.target import Platform, Target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TARGET = Target(name="cu128", python="3.11", platform=Platform.LINUX_X86_64)


def pinned(name: str, version: str, **more: object) -> Pinned:
    stem = f"{name.replace('-', '_')}-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"
    url = f"https://download.pytorch.org/whl/cu128/{stem.replace('+', '%2B')}"
    artifact = Artifact(filename=stem, url=url, sha256="ab" * 32, size=12)
    values = {"index": "https://download.pytorch.org/whl/cu128", "artifacts": (artifact,), **more}
    return Pinned(name=name, version=version, **values)  # type: ignore[arg-type]


TORCH = pinned("torch", "2.7.0+cu128")
FLASH = pinned("flash-attn", "2.8.3+cu12torch2.7cxx11abitrue", index="", direct=True)
NUMPY = pinned("numpy", "2.3.1", index="https://pypi.org/simple")
SCATTER = pinned(
    "torch-scatter",
    "2.1.2+pt27cu128",
    index="https://data.pyg.org/whl/torch-2.7.0%2Bcu128.html",
    flat=True,
)
LOCK = TargetLock(
    target="cu128",
    python="3.11",
    platform="linux-x86_64",
    packages=(FLASH, NUMPY, TORCH, SCATTER),
    gpus=("B200",),
    capabilities=("10.0",),
    cuda="12.8",
    builds=(SourceBuild(project="pointops", path="libs/pointops"),),
)


def unhashed(package: Pinned) -> Pinned:
    return replace(package, artifacts=(replace(package.artifacts[0], sha256=None),))


def test_what_is_rendered_is_a_valid_lock_and_reads_back() -> None:
    text = render_pylock(LOCK, TARGET)
    valid = Pylock.from_dict(tomllib.loads(text))
    assert [package.name for package in valid.packages] == [p.name for p in LOCK.packages]
    back = read_target_lock(text, path="pylock.cu128.toml")
    assert back == replace(
        LOCK, packages=tuple(replace(package, flat=False) for package in LOCK.packages)
    )


def test_rendering_is_the_same_twice() -> None:
    assert render_pylock(LOCK, TARGET) == render_pylock(LOCK, TARGET)


def test_a_renamed_wheel_is_an_archive_without_a_version_to_contradict() -> None:
    table = tomllib.loads(render_pylock(LOCK, TARGET))["packages"][0]
    assert "version" not in table
    assert "%2Bcu12torch2.7" in table["archive"]["url"]
    assert "wheels" not in table


def test_a_package_without_hash_leaves_no_entry_and_is_named() -> None:
    lock = replace(LOCK, packages=(NUMPY, unhashed(SCATTER)))
    text = render_pylock(lock, TARGET)
    document = tomllib.loads(text)
    assert [package["name"] for package in document["packages"]] == ["numpy"]
    assert document["tool"]["envbuild"]["incomplete"] == ["torch-scatter==2.1.2+pt27cu128"]
    assert [p.name for p in read_target_lock(text, path="x").unhashed] == ["torch-scatter"]


def test_requirements_are_strict_hashed_and_know_their_pages() -> None:
    text = render_requirements(LOCK)
    assert "torch==2.7.0+cu128 \\\n    --hash=sha256:" + "ab" * 32 in text
    assert "--index-url https://pypi.org/simple\n" in text
    assert "--find-links https://data.pyg.org/whl/torch-2.7.0%2Bcu128.html\n" in text
    assert "--find-links https://download.pytorch.org/whl/cu128/torch/\n" in text
    assert "flash-attn @ https://" in text
    assert "numpy/\n" not in text


def test_requirements_mark_what_has_no_hash() -> None:
    text = render_requirements(replace(LOCK, packages=(unhashed(SCATTER),)))
    assert "torch-scatter==2.1.2+pt27cu128  # unhashed: the lock is incomplete" in text
    assert "--hash" not in text


def test_requirements_read_back_as_the_same_set() -> None:
    pins = parse_requirements(render_requirements(LOCK))
    assert pins["torch"] == "2.7.0+cu128"
    assert pins["flash-attn"].startswith("https://")
    assert set(pins) == {package.name for package in LOCK.packages}


@pytest.mark.parametrize(
    "text",
    ["", "lock-version = ", 'lock-version = "1.0"', 'lock-version = "9.0"\ncreated-by = "x"'],
)
def test_a_broken_lock_names_its_path(text: str) -> None:
    with pytest.raises(InputError, match=r"pylock\.cu128\.toml"):
        read_target_lock(text, path="pylock.cu128.toml")


def export(*entries: str) -> str:
    head = 'lock-version = "1.0"\ncreated-by = "uv"\n'
    return head + "".join(f"[[packages]]\n{entry}\n" for entry in entries)


def wheel(filename: str) -> str:
    return f'{{ url = "https://x.example/{filename}", hashes = {{ sha256 = "{"0" * 64}" }} }}'


ASYNC_TIMEOUT = (
    'name = "async-timeout"\nversion = "5.0"\nindex = "https://pypi.org/simple"\n'
    "marker = \"python_full_version < '3.11.3'\"\n"
    f"wheels = [{wheel('async_timeout-5.0-py3-none-any.whl')}]"
)


def test_a_marker_on_the_patch_release_is_kept() -> None:
    (package,) = exported_packages(export(ASYNC_TIMEOUT), TARGET)
    assert package.marker == 'python_full_version < "3.11.3"'
    lock = replace(LOCK, packages=(package,))
    assert Requirement(next(iter(render_requirements(lock).splitlines()[-2:])).rstrip(" \\"))
    text = render_pylock(lock, TARGET)
    assert read_target_lock(text, path="x").packages == (package,)


def test_a_marker_of_another_platform_drops_the_package() -> None:
    other = ASYNC_TIMEOUT.replace("python_full_version < '3.11.3'", "sys_platform == 'win32'")
    assert exported_packages(export(other), TARGET) == ()


def test_only_files_that_fit_are_kept_and_the_sdist_only_without_a_wheel() -> None:
    entry = 'name = "numpy"\nversion = "2.3.1"\n'
    sdist = f"sdist = {wheel('numpy-2.3.1.tar.gz')}\n"
    fits, other = "numpy-2.3.1-cp311-cp311-manylinux_2_28_x86_64.whl", "numpy-2.3.1-cp312-cp312-"
    wheels = f"wheels = [{wheel(fits)}, {wheel(other + 'manylinux_2_28_x86_64.whl')}]"
    (package,) = exported_packages(export(entry + sdist + wheels), TARGET)
    assert [artifact.filename for artifact in package.artifacts] == [fits]
    only_other = f"wheels = [{wheel(other + 'manylinux_2_28_x86_64.whl')}]"
    (package,) = exported_packages(export(entry + sdist + only_other), TARGET)
    assert [artifact.filename for artifact in package.artifacts] == ["numpy-2.3.1.tar.gz"]
    with pytest.raises(WorldError, match=r"no file for Python 3\.11"):
        exported_packages(export(entry + only_other), TARGET)


def test_git_cannot_be_pinned_by_a_hash() -> None:
    entry = (
        'name = "clip"\nvcs = { type = "git", url = "https://x.example/clip", '
        f'commit-id = "{"a" * 40}" }}'
    )
    with pytest.raises(RefusedError, match="git checkout") as refusal:
        exported_packages(export(entry), TARGET)
    assert refusal.value.hint is not None
    assert "[tool.envbuild.build]" in refusal.value.hint


def test_the_project_itself_is_no_package_of_the_set() -> None:
    assert exported_packages(export('name = "p"\ndirectory = { path = "." }'), TARGET) == ()


def test_differences_are_said_in_plain_words() -> None:
    cudnn = pinned("nvidia-cudnn-cu12", "9.7.1.26")
    old = replace(LOCK, packages=(cudnn, NUMPY, TORCH))
    new = replace(
        LOCK,
        packages=(pinned("nvidia-cudnn-cu12", "9.10.2.21"), SCATTER, TORCH),
        cuda="12.9",
        builds=(),
    )
    assert list(compare_locks(old, new)) == [
        "CUDA 12.8 -> 12.9",
        "numpy 2.3.1 removed",
        "cuDNN 9.7.1.26 -> 9.10.2.21",
        "torch-scatter 2.1.2+pt27cu128 added",
        "compiled on install: pointops -> nothing",
    ]
    assert list(compare_locks(old, old)) == []


def test_another_hash_of_the_same_file_is_said() -> None:
    other = replace(TORCH, artifacts=(replace(TORCH.artifacts[0], sha256="cd" * 32),))
    (line,) = compare_locks(replace(LOCK, packages=(TORCH,)), replace(LOCK, packages=(other,)))
    assert "cd" * 32 in line
    assert "ab" * 32 in line


def test_preferences_hold_every_version_but_those_to_upgrade() -> None:
    packages = tomllib.loads(preferences_lock(LOCK, without={"NumPy"}))["package"]
    assert {p["name"]: p["version"] for p in packages} == {
        "torch": "2.7.0+cu128",
        "torch-scatter": "2.1.2+pt27cu128",
    }


VERSIONS = st.builds(
    "{}.{}{}".format,
    st.integers(0, 99),
    st.integers(0, 99),
    st.sampled_from(["", "+cu128", "+pt210cu130", ".post1"]),
)
PACKAGES = st.builds(
    pinned,
    st.sampled_from(["torch", "numpy", "torch-scatter", "x-y", "a0"]),
    VERSIONS,
)


@given(st.lists(PACKAGES, max_size=5, unique_by=lambda package: package.name))
def test_any_lock_reads_back(packages: list[Pinned]) -> None:
    lock = replace(LOCK, packages=tuple(sorted(packages, key=lambda package: package.name)))
    assert read_target_lock(render_pylock(lock, TARGET), path="x") == lock
