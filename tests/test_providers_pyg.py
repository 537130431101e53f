"""PyG's compiled packages for a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakes import FakeFacts, FakeSource, candidate, context, linux, target, wheel

from envbuild.model.project import BuildSpec, Prefer
from envbuild.model.stack import IndexPin, Refusal, SourceBuild
from envbuild.providers.interface import Extension
from envbuild.providers.pyg import extend

if TYPE_CHECKING:
    from envbuild.model.stack import Candidate

PAGE = "pyg 2.7.0 cu128"
SOURCE = FakeSource(
    files=(
        wheel(PAGE, linux("torch_scatter-2.1.1+pt27cu128")),
        wheel(PAGE, linux("torch_scatter-2.1.2+pt27cu128")),
        wheel(PAGE, linux("torch_scatter-2.1.3+pt27cu126")),
        wheel(PAGE, linux("torch_cluster-1.6.3+pt27cu128", "cp310")),
        wheel("pyg 2.10.0 cu128", linux("torch_scatter-2.1.2+pt210cu128")),
        wheel("pyg 2.10.0 cu128", linux("torch_scatter-2.1.2+pt29cu128")),
        wheel("pyg 2.7.0 cpu", linux("torch_scatter-2.1.2+pt27cpu")),
    )
)
SCATTER = "torch-scatter"


def answer(
    *requirements: str, chosen: Candidate | None = None, builds: tuple[BuildSpec, ...] = ()
) -> Extension | Refusal:
    here = context(target("8.0"), *requirements, source=SOURCE, facts=FakeFacts(), builds=builds)
    return extend(chosen or candidate("cu128", "2.7.1+cu128"), here)


def pin(found: Extension | Refusal) -> str:
    assert isinstance(found, Extension)
    (only,) = found.pins
    assert isinstance(only, IndexPin)
    return only.requirement


def reason(found: Extension | Refusal) -> str:
    assert isinstance(found, Refusal)
    return found.reason


def test_a_patch_release_takes_the_newest_wheel_of_its_minor() -> None:
    assert pin(answer(SCATTER)) == "torch-scatter==2.1.2+pt27cu128"


def test_local_versions_are_matched_whole_and_never_by_order() -> None:
    chosen = candidate("cu128", "2.10.0+cu128")
    assert pin(answer(SCATTER, chosen=chosen)) == "torch-scatter==2.1.2+pt210cu128"


def test_the_cpu_build() -> None:
    chosen = candidate("cpu", "2.7.0+cpu")
    assert pin(answer(SCATTER, chosen=chosen)) == "torch-scatter==2.1.2+pt27cpu"


def test_the_projects_specifier_holds() -> None:
    assert pin(answer("torch-scatter==2.1.1")) == "torch-scatter==2.1.1+pt27cu128"
    strict = answer("torch-scatter==2.1.2+pt27cu126")
    assert reason(strict) == (
        "PyG's page `torch-2.7.0+cu128` has torch-scatter up to 2.1.2, "
        "not `torch-scatter==2.1.2+pt27cu126`"
    )


def test_no_wheel_names_the_page() -> None:
    assert reason(answer("torch-cluster")) == (
        "PyG's page `torch-2.7.0+cu128` has no torch-cluster for Python 3.11 on linux-x86_64"
    )


def test_nothing_wanted_nothing_pinned() -> None:
    assert answer("numpy") == Extension()


def test_source_is_preferred_when_the_build_table_says_so() -> None:
    spec = BuildSpec(name="torch_scatter", prefer=Prefer.SOURCE, requires=("setuptools<82",))
    found = answer(SCATTER, builds=(spec,))
    assert isinstance(found, Extension)
    (built,) = found.pins
    assert isinstance(built, SourceBuild)
    assert (built.project, built.version) == ("torch-scatter", "2.1.3")
    assert built.requires == ("setuptools<82",)


def test_wheel_or_source_falls_back_to_a_pinned_version() -> None:
    spec = BuildSpec(name="torch-sparse", prefer=Prefer.WHEEL_OR_SOURCE)
    found = answer("torch-sparse==0.6.18", builds=(spec,))
    assert isinstance(found, Extension)
    builds = [p for p in found.pins if isinstance(p, SourceBuild)]
    assert [(p.version, p.runtime_requires) for p in builds] == [("0.6.18", ("scipy",))]
    unpinned = answer("torch-sparse", builds=(spec,))
    assert reason(unpinned).startswith("no version of torch-sparse is known to build from source")


def test_pyg_lib_has_no_source() -> None:
    spec = BuildSpec(name="pyg-lib", prefer=Prefer.WHEEL_OR_SOURCE)
    found = answer("pyg-lib", builds=(spec,))
    assert reason(found) == "pyg-lib has no source distribution to build from"
