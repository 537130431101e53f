"""torch, torchvision, torchaudio and torchcodec for a candidate."""

from __future__ import annotations

from fakes import FakeFacts, FakeSource, candidate, context, cuda, linux, page, target, wheel

from envbuild.model.facts import Pairing, TorchBuild
from envbuild.model.project import BuildSpec
from envbuild.model.stack import Candidate, IndexPin, PypiPin, Refusal
from envbuild.model.target import Platform
from envbuild.providers.interface import Extension
from envbuild.providers.pytorch import extend

FACTS = FakeFacts(
    builds=(
        TorchBuild(
            torch="2.7.0",
            cuda=cuda("12.8"),
            on_pypi=False,
            companions=(("torchaudio", "2.7.0"), ("torchvision", "0.22.0")),
        ),
    ),
    pairs=(
        Pairing(project="torchaudio", version="2.11.1", torch=">=2.13"),
        Pairing(project="torchaudio", version="2.11.0", torch=">=2.11"),
        Pairing(project="torchcodec", version="0.5", torch="==2.7.*"),
        Pairing(project="torchcodec", version="0.6", torch="==2.8.*"),
    ),
)
SOURCE = FakeSource(
    files=(
        wheel("cu128", linux("torchvision-0.23.0+cu128"), requires=("torch==2.8.0",)),
        wheel("cu128", linux("torchvision-0.22.0+cu128"), requires=("torch==2.7.0",)),
        wheel("cu128", linux("torchaudio-2.7.0+cu128"), requires=("torch==2.7.0",)),
        wheel("cu128", linux("torchaudio-2.11.1+cu128"), requires=("torch>=2.11",)),
        wheel("cu128", linux("torchaudio-2.11.0+cu128")),
        wheel("pypi", linux("torchvision-0.22.0"), requires=("torch==2.7.0",)),
        wheel("pypi", linux("torchcodec-0.5")),
        wheel("pypi", linux("torchcodec-0.6")),
    )
)


def pins(chosen: Candidate, *requirements: str) -> dict[str, str]:
    answer = extend(chosen, context(target("8.0"), *requirements, source=SOURCE, facts=FACTS))
    assert isinstance(answer, Extension)
    assert all(isinstance(pin, IndexPin | PypiPin) for pin in answer.pins)
    return {pin.project: pin.requirement for pin in answer.pins if not hasattr(pin, "path")}


def refusal(chosen: Candidate, *requirements: str) -> Refusal:
    answer = extend(chosen, context(target("8.0"), *requirements, source=SOURCE, facts=FACTS))
    assert isinstance(answer, Refusal)
    return answer


def test_both_companions_are_pinned_though_nobody_asks() -> None:
    assert pins(candidate("cu128", "2.7.0+cu128")) == {
        "torch": "torch==2.7.0+cu128",
        "torchvision": "torchvision==0.22.0+cu128",
        "torchaudio": "torchaudio==2.7.0+cu128",
    }


def test_a_companion_of_pypi_goes_with_torch_of_pypi() -> None:
    assert pins(candidate("pypi", "2.7.0", built="cu126")) == {
        "torch": "torch==2.7.0",
        "torchvision": "torchvision==0.22.0",
    }


def test_without_a_known_pair_the_metadata_decides() -> None:
    assert pins(candidate("cu128", "2.8.0+cu128"))["torchvision"] == "torchvision==0.23.0+cu128"


def test_a_fact_overrules_metadata_that_admits_too_much() -> None:
    assert pins(candidate("cu128", "2.11.0+cu128"))["torchaudio"] == "torchaudio==2.11.0+cu128"
    assert pins(candidate("cu128", "2.13.0+cu128"))["torchaudio"] == "torchaudio==2.11.1+cu128"


def test_metadata_narrows_a_fact() -> None:
    facts = FakeFacts(pairs=(Pairing(project="torchvision", version="0.22.0", torch=">=2.7,<2.8"),))
    here = context(target("8.0"), source=SOURCE, facts=facts)
    answer = extend(candidate("cu128", "2.7.1+cu128"), here)
    assert isinstance(answer, Extension)
    assert [pin.project for pin in answer.pins] == ["torch"]


def test_a_missing_companion_matters_only_when_wanted() -> None:
    assert "torchaudio" not in pins(candidate("cu128", "2.8.0+cu128"))
    found = refusal(candidate("cu128", "2.8.0+cu128"), "torchaudio")
    assert found.reason == "there is no torchaudio for torch 2.8.0+cu128 and Python 3.11"


def test_the_projects_own_specifier_must_hold() -> None:
    found = refusal(candidate("cu128", "2.7.0+cu128"), "torchvision>=0.23")
    assert found.reason == (
        "torch 2.7.0+cu128 goes with torchvision 0.22.0+cu128, not `torchvision>=0.23`"
    )
    assert found.excludes == "torchvision>=0.23"


def test_torchcodec_only_when_wanted_and_by_the_table() -> None:
    chosen = candidate("cu128", "2.7.0+cu128")
    assert "torchcodec" not in pins(chosen)
    assert pins(chosen, "torchcodec")["torchcodec"] == "torchcodec==0.5"


def test_a_companion_that_the_user_builds_is_left_alone() -> None:
    here = context(
        target("8.0"),
        "torchvision",
        source=SOURCE,
        facts=FACTS,
        builds=(BuildSpec(name="torchvision", path="libs/vision"),),
    )
    answer = extend(candidate("cu128", "2.7.0+cu128"), here)
    assert isinstance(answer, Extension)
    assert [pin.project for pin in answer.pins] == ["torch", "torchaudio"]


def test_on_aarch64_a_companion_without_local_version_counts_in_the_folder_of_the_page() -> None:
    files = (
        wheel("cu128", linux("torchvision-0.22.0", machine="aarch64")),
        wheel("cu128", linux("torchvision-0.22.0+cu128")),
        wheel("cu128", linux("torchaudio-2.7.0", machine="aarch64"), folder="root"),
    )
    torch = wheel("cu128", linux("torch-2.7.0+cu128", machine="aarch64"))
    here = context(
        target("9.0", platform=Platform.LINUX_AARCH64), source=FakeSource(files), facts=FACTS
    )
    answer = extend(Candidate(torch=torch, cuda=cuda("12.8")), here)
    assert isinstance(answer, Extension)
    assert [pin.requirement for pin in answer.pins if isinstance(pin, IndexPin)] == [
        "torch==2.7.0+cu128",
        "torchvision==0.22.0",
    ]
    assert answer.pins[1].wheel.page == page("cu128")  # type: ignore[union-attr]
