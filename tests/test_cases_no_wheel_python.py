"""Packages without a wheel for the Python or platform of a target."""

from __future__ import annotations

import hashlib
import io
import tarfile
from typing import TYPE_CHECKING

import pytest
from answers import best, pins, refused
from fakes import target
from index import local_wheel
from lockworld import PUBLIC, pyproject

from envbuild.core.indexpages import pytorch_page
from envbuild.core.missingwheels import requirements_without_wheels, shown_pythons
from envbuild.errors import RefusedError
from envbuild.model.finding import Severity

if TYPE_CHECKING:
    from lockworld import World

    from envbuild.model.finding import Finding


def tag(python: str, machine: str = "x86_64") -> str:
    return f"{python}-{python}-manylinux_2_28_{machine}"


def refusal(world: World) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        world.lock()
    return caught.value


def serve_torch(world: World, python: str) -> None:
    """Serve the wheels of another Python too."""
    page = pytorch_page(PUBLIC, "cu128")
    assert page is not None
    wanted = [
        wheel
        for project in ("torch", "torchvision", "torchaudio")
        for wheel in world.catalog.wheels(page, project)
        if f"-{python}-" in wheel.filename and "x86_64" in wheel.filename
    ]
    world.index.add_facts(wanted)


def sdist(name: str, version: str) -> bytes:
    metadata = f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n".encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo(f"{name}-{version}/PKG-INFO")
        info.size = len(metadata)
        archive.addfile(info, io.BytesIO(metadata))
        built = b'[build-system]\nrequires = ["setuptools"]\n[project]\nname = "x"\n'
        built += f'version = "{version}"\n'.encode()
        info = tarfile.TarInfo(f"{name}-{version}/pyproject.toml")
        info.size = len(built)
        archive.addfile(info, io.BytesIO(built))
    return buffer.getvalue()


def serve_with_sdist(world: World, name: str, *pythons: str) -> None:
    """Serve a package with wheels for these Pythons and a source distribution."""
    wheels = [local_wheel(name, "1.0", tag(python)) for python in pythons]
    world.index.add_pypi(*wheels)
    data = sdist(name, "1.0")
    world.index.put(f"/pypi/files/{name}-1.0.tar.gz", data)
    files = [(wheel.filename, wheel.sha256) for wheel in wheels]
    files.append((f"{name}-1.0.tar.gz", hashlib.sha256(data).hexdigest()))
    links = (
        f'<a href="{world.index.base}/pypi/files/{file}#sha256={digest}">{file}</a>'
        for file, digest in files
    )
    world.index.put(f"/pypi/simple/{name}/", "".join(links))


def test_pyv_h2_a_dependency_without_a_wheel_for_a_new_python_names_the_one_that_has_it(
    own_world: World,
) -> None:
    serve_torch(own_world, "cp310")
    tiles = [local_wheel("tiles", "1.0", tag(python)) for python in ("cp39", "cp310")]
    own_world.index.add_pypi(*tiles, local_wheel("infer", "0.6", requires=("tiles",)))
    own_world.write(pyproject("torch", "infer"))
    error = refusal(own_world)
    assert "`tiles` has no wheel for Python 3.11 on linux-x86_64" in error.message or (
        "`tiles==1.0` has no wheel for Python 3.11 on linux-x86_64" in error.message
    )
    assert "it has wheels for Python 3.9 to 3.10" in error.message
    assert error.hint is not None
    assert '`python = "3.10"` in [tool.envbuild.targets.cu128]' in error.hint
    assert "`requires-python` that allows it" in error.hint, "the project wants 3.11 alone"


def test_of_two_pythons_with_a_wheel_only_one_with_a_torch_is_named(own_world: World) -> None:
    serve_torch(own_world, "cp313")
    wheels = [local_wheel("tiles", "1.0", tag(python)) for python in ("cp310", "cp312", "cp313")]
    own_world.index.add_pypi(*wheels)
    text = pyproject("torch", "tiles").replace('"==3.11.*"', '">=3.10"')
    own_world.write(text)
    error = refusal(own_world)
    assert "it has wheels for Python 3.10, 3.12 and 3.13" in error.message
    assert error.hint == '`python = "3.13"` in [tool.envbuild.targets.cu128]'


def test_versions_without_a_wheel_are_passed_over_for_one_that_has_it(own_world: World) -> None:
    own_world.index.add_pypi(
        local_wheel("tiles", "2.0", tag("cp312")), local_wheel("tiles", "1.0", tag("cp311"))
    )
    own_world.write(pyproject("torch", "tiles"))
    own_world.lock()
    assert "tiles==1.0" in own_world.read("lockfiles/requirements.cu128.txt")


def test_wheels_for_another_platform_alone_are_named_as_such(own_world: World) -> None:
    own_world.index.add_pypi(local_wheel("onlyarm", "1.0", tag("cp311", "aarch64")))
    own_world.write(pyproject("torch", "onlyarm"))
    error = refusal(own_world)
    assert "its wheels are for other platforms" in error.message
    assert "ask for another version" in (error.hint or "")


def test_no_python_is_named_where_no_torch_goes_with_it(own_world: World) -> None:
    own_world.index.add_pypi(local_wheel("tiles", "1.0", tag("cp39")))
    own_world.write(pyproject("torch", "tiles"))
    error = refusal(own_world)
    assert "it has wheels for Python 3.9" in error.message
    assert "python =" not in (error.hint or "")


def test_pyv_h3_a_sdist_in_the_place_of_a_compiled_wheel_is_a_warning(own_world: World) -> None:
    serve_with_sdist(own_world, "ops", "cp310", "cp312")
    own_world.write(pyproject("torch", "ops"))
    (found,) = compiled(own_world)
    assert found.severity is Severity.WARNING
    assert found.message == (
        "ops 1.0 has no wheel for Python 3.11, so its source distribution is compiled on install"
    )
    assert found.hint == "it has wheels for Python 3.10 and 3.12"
    assert "ops-1.0-cp310-cp310-manylinux_2_28_x86_64.whl" in found.evidence


def compiled(world: World) -> list[Finding]:
    (report,) = world.lock().targets
    return [finding for finding in report.findings if finding.code == "EB105"]


@pytest.mark.parametrize("pythons", [("cp310", "cp311"), ()])
def test_a_wheel_for_the_python_or_a_pure_sdist_is_no_warning(
    own_world: World, pythons: tuple[str, ...]
) -> None:
    serve_with_sdist(own_world, "ops", *pythons)
    own_world.write(pyproject("torch", "ops"))
    assert compiled(own_world) == []


def test_a_stable_abi_wheel_serves_every_python(own_world: World) -> None:
    wheel = local_wheel("stable", "1.0", "cp39-abi3-manylinux_2_28_x86_64")
    own_world.index.add_pypi(wheel)
    own_world.write(pyproject("torch", "stable"))
    own_world.lock()
    assert "stable==1.0" in own_world.read("lockfiles/requirements.cu128.txt")


def test_pyv_h1_spconv_for_cuda_12_0_ends_with_python_3_11() -> None:
    error = refused(target("8.9", python="3.12"), "torch==2.7.0", "spconv-cu120==2.3.6")
    assert "spconv-cu120 2.3.6 has wheels for Python 3.9 to 3.11" in error.message
    assert '`python = "3.11"`' in (error.hint or "")


def test_pyv_h1_a_spconv_of_any_cuda_takes_the_one_with_a_wheel_for_the_python() -> None:
    stack = best(target("8.9", python="3.12"), "torch==2.7.0", "spconv")
    assert pins(stack)["spconv-cu126"] == "spconv-cu126==2.3.8"


def test_spconv_on_3_14_names_the_highest_python_that_has_it() -> None:
    error = refused(target("8.9", python="3.14"), "torch", "spconv")
    assert "wheels for Python 3.9 to 3.13" in error.message
    assert '`python = "3.13"`' in (error.hint or "")


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("all versions of cuda-tile have no wheels with a matching Python ABI tag", ["cuda-tile"]),
        ("Because a==1.0 has no `python_full_version == '3.11.*'`-compatible wheels", ["a==1.0"]),
        ("a.b>=1,<2 has no wheel for the target and c==2 has no wheel for the target", None),
        (
            "all versions of x have no `m`-compatible wheels; x==1 has no wheel for the target",
            ["x"],
        ),
        ("there is no version of a==1.0", []),
    ],
)
def test_what_uv_says_of_missing_wheels(reason: str, found: list[str] | None) -> None:
    requirements = [str(one) for one in requirements_without_wheels(reason)]
    assert requirements == (found if found is not None else ["a.b<2,>=1", "c==2"])


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        (("3.9",), "3.9"),
        (("3.9", "3.10", "3.11"), "3.9 to 3.11"),
        (("3.10", "3.12"), "3.10 and 3.12"),
        (("3.8", "3.10", "3.12"), "3.8, 3.10 and 3.12"),
    ],
)
def test_pythons_are_said_as_a_range_only_where_they_are_one(
    versions: tuple[str, ...], text: str
) -> None:
    assert shown_pythons(versions) == text
