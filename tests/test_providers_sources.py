"""Extensions that are compiled on install, and the registry of all providers."""

from __future__ import annotations

from fakes import FakeFacts, FakeSource, candidate, context, target

from envbuild.model.lock import Artifact
from envbuild.model.project import BuildSpec, Prefer
from envbuild.model.stack import Refusal, SourceBuild
from envbuild.providers.interface import Extension
from envbuild.providers.registry import COUPLED, PROVIDERS
from envbuild.providers.sources import extend


def test_folders_and_repositories_are_built_whether_wanted_or_not() -> None:
    here = context(
        target("8.0"),
        source=FakeSource(),
        facts=FakeFacts(),
        builds=(
            BuildSpec(name="pointops", path="libs/pointops", requires=("ninja",)),
            BuildSpec(name="Deform_Attn", git="https://git.example/x@abc"),
            BuildSpec(name="flash-attn", prefer=Prefer.WHEEL),
        ),
    )
    found = extend(candidate("cu128", "2.7.0+cu128"), here)
    assert isinstance(found, Extension)
    assert found.pins == (
        SourceBuild(
            project="deform-attn",
            git="https://git.example/x@abc",
            reason="compiled against torch 2.7.0+cu128",
        ),
        SourceBuild(
            project="pointops",
            path="libs/pointops",
            requires=("ninja",),
            reason="compiled against torch 2.7.0+cu128",
        ),
    )


def test_a_pinned_package_that_prefers_source_is_built_from_its_sdist() -> None:
    here = context(
        target("8.0"),
        "mmcv==2.2.0",
        "apex",
        source=FakeSource(),
        facts=FakeFacts(),
        builds=(
            BuildSpec(name="mmcv", prefer=Prefer.SOURCE),
            BuildSpec(name="apex", prefer=Prefer.SOURCE),
        ),
    )
    found = extend(candidate("cu128", "2.7.0+cu128"), here)
    assert isinstance(found, Extension)
    (built,) = found.pins
    assert isinstance(built, SourceBuild)
    assert (built.project, built.version) == ("mmcv", "2.2.0")
    assert not built.hashed, "the index was silent"


def test_the_sdist_of_the_index_comes_with_its_hash() -> None:
    sdist = Artifact(filename="mmcv-2.2.0.tar.gz", url="https://i.example/m", sha256="a" * 64)
    here = context(
        target("8.0"),
        "mmcv==2.2.0",
        source=FakeSource(sdists={("mmcv", "2.2.0"): sdist}),
        facts=FakeFacts(),
        builds=(BuildSpec(name="mmcv", prefer=Prefer.SOURCE),),
    )
    found = extend(candidate("cu128", "2.7.0+cu128"), here)
    assert isinstance(found, Extension)
    (built,) = found.pins
    assert isinstance(built, SourceBuild)
    assert (built.url, built.sha256) == ("https://i.example/m", "a" * 64)


def test_a_release_without_an_sdist_is_refused() -> None:
    here = context(
        target("8.0"),
        "mmcv==2.2.0",
        source=FakeSource(sdists={}),
        facts=FakeFacts(),
        builds=(BuildSpec(name="mmcv", prefer=Prefer.SOURCE),),
    )
    found = extend(candidate("cu128", "2.7.0+cu128"), here)
    assert isinstance(found, Refusal)
    assert found.reason == "mmcv 2.2.0 has no sdist on pypi to compile it from"
    assert found.excludes == "mmcv==2.2.0"


def test_the_registry_knows_every_coupled_name_once() -> None:
    served = [name for provider in PROVIDERS for name in provider.projects]
    assert len(served) == len(set(served))
    assert set(served) == COUPLED
    assert {"torch", "torchaudio", "torch-scatter", "spconv-cu126", "cumm-cu128"} <= COUPLED
    assert {"flash-attn", "xformers", "spconv", "pyg-lib", "torchcodec"} <= COUPLED
