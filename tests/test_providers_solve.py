"""The search for stacks, and the sentence for when there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes import FakeFacts, FakeSource, code, cuda, linux, project, target, wheel
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from envbuild.model.facts import TorchBuild
from envbuild.model.project import BuildSpec, Prefer
from envbuild.model.wheel import PageKind
from envbuild.providers.impossible import impossible
from envbuild.providers.relaxation import shown
from envbuild.providers.solve import solve

if TYPE_CHECKING:
    from envbuild.errors import RefusedError
    from envbuild.model.target import Target
    from envbuild.providers.solve import Solutions

BUILDS = tuple(
    TorchBuild(torch=torch, cuda=cuda(tag), on_pypi=False, code_x86_64=code(sass), cxx11_abi=True)
    for torch, tag, sass in (
        ("2.9.0", "cu130", "sm_80 sm_90 sm_120"),
        ("2.8.0", "cu128", "sm_80 sm_90 sm_120"),
        ("2.8.0", "cu126", "sm_70 sm_80 sm_90"),
        ("2.7.0", "cu128", "sm_80 sm_90 sm_120"),
    )
)
FACTS = FakeFacts(
    keys={PageKind.PYTORCH: ("cu130", "cu128", "cu126", "cpu"), PageKind.FLASH_ATTN: ("2.8.3",)},
    builds=BUILDS,
    drivers={12: "525.60.13", 13: "580"},
)
SOURCE = FakeSource(
    files=(
        *(wheel("cu130", linux("torch-2.9.0+cu130", tag)) for tag in ("cp311", "cp314")),
        wheel("cu128", linux("torch-2.8.0+cu128")),
        wheel("cu128", linux("torch-2.7.0+cu128")),
        wheel("cu126", linux("torch-2.8.0+cu126")),
        wheel("pypi", linux("spconv_cu126-2.3.8")),
        wheel("flash-attn 2.8.3", linux("flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE")),
        wheel("pyg 2.7.0 cu128", linux("torch_scatter-2.1.2+pt27cu128")),
    )
)


def search(where: Target, *wanted: str, builds: tuple[BuildSpec, ...] = ()) -> Solutions:
    return solve(project(where, *wanted, builds=builds), where, source=SOURCE, facts=FACTS)


def labels(solutions: Solutions) -> list[str]:
    return [stack.candidate.label for stack in solutions]


def refused(where: Target, *wanted: str) -> RefusedError:
    solutions = search(where, *wanted)
    assert list(solutions) == []
    return impossible(solutions)


def test_stacks_come_best_first_and_rejections_keep_their_reasons() -> None:
    solutions = search(target("8.0"), "torch", "spconv")
    assert labels(solutions) == ["torch 2.8.0+cu128", "torch 2.8.0+cu126", "torch 2.7.0+cu128"]
    (rejection,) = solutions.rejections
    assert rejection.candidate.label == "torch 2.9.0+cu130"
    assert [refusal.project for refusal in rejection.refusals] == ["spconv"]


def test_every_provider_says_its_reason() -> None:
    solutions = search(target("8.0", torch="==2.9.*"), "torch-scatter", "spconv")
    assert labels(solutions) == []
    (rejection,) = solutions.rejections
    assert [refusal.project for refusal in rejection.refusals] == ["torch-scatter", "spconv"]


def test_no_source_build_before_source_build() -> None:
    spec = BuildSpec(name="flash-attn", prefer=Prefer.WHEEL_OR_SOURCE)
    solutions = search(target("8.0"), "flash-attn", builds=(spec,))
    assert labels(solutions) == [
        "torch 2.8.0+cu128",
        "torch 2.8.0+cu126",
        "torch 2.9.0+cu130",
        "torch 2.7.0+cu128",
    ]


def test_what_the_user_builds_from_a_folder_does_not_count_as_compiling() -> None:
    own = BuildSpec(name="pointops", path="libs/pointops")
    solutions = search(target("8.0"), "torch", builds=(own,))
    stack = next(solutions)
    assert stack.candidate.label == "torch 2.9.0+cu130"
    assert [build.project for build in stack.builds] == ["pointops"]


def test_a_rejected_stack_takes_the_other_builds_of_its_torch_with_it() -> None:
    solutions = search(target("8.0"), "torch")
    first = next(solutions)
    solutions.reject(first, "uv says no")
    second = next(solutions)
    assert second.candidate.label == "torch 2.8.0+cu128"
    solutions.reject(second, "`numpy` is too new")
    assert labels(solutions) == ["torch 2.7.0+cu128"]
    assert [(r.candidate.label, r.refusals[0].reason) for r in solutions.rejections] == [
        ("torch 2.9.0+cu130", "uv says no"),
        ("torch 2.8.0+cu128", "`numpy` is too new"),
        ("torch 2.8.0+cu126", "`numpy` is too new"),
    ]


def test_only_one_build_is_rejected_when_told_so() -> None:
    solutions = search(target("8.0", torch="==2.8.*"), "torch")
    solutions.reject(next(solutions), "a file is gone", same_public=False)
    assert labels(solutions) == ["torch 2.8.0+cu126"]


def test_a_held_stack_is_dropped_with_its_torch() -> None:
    spec = BuildSpec(name="flash-attn", prefer=Prefer.SOURCE)
    solutions = search(target("8.0", torch="==2.8.*"), "flash-attn==2.8.3", builds=(spec,))
    solutions.reject(next(solutions), "no")
    assert labels(solutions) == []


def test_requirements_that_come_to_light_later_count() -> None:
    where = target("8.0")
    later = [Requirement("torch-scatter")]
    solutions = solve(
        project(where, "torch"), where, source=SOURCE, facts=FACTS, extra_wanted=later
    )
    assert labels(solutions) == ["torch 2.7.0+cu128"]


def test_impossible_names_the_requirement_and_the_key_and_a_request_that_works() -> None:
    error = refused(target("8.0", cuda="==13.0"), "spconv")
    assert error.message == (
        "no build of torch fits target `t`: spconv has no wheel for CUDA 13 "
        '(newest: spconv-cu126) and `cuda = "13.0"` excludes CUDA 12.8'
    )
    assert error.hint == '`cuda = "12.8"` gives torch 2.8.0+cu128 with spconv-cu126 2.3.8'
    assert error.exit_code == 1


@pytest.mark.parametrize(
    ("where", "wanted", "hint"),
    [
        (target("8.0", python="3.14"), "spconv", '`python = "3.11"` gives torch 2.8.0+cu128'),
        (target("8.0", torch="==2.9.*"), "spconv", '`torch = "2.8.0"` gives torch 2.8.0+cu128'),
        (
            target("7.0", "12.0"),
            "torch",
            "leaving out the GPU `7.0` gives torch 2.9.0+cu130",
        ),
        (target("9.0", driver=">=470"), "torch", '`driver = ">=580"` gives torch 2.9.0+cu130'),
        (
            target("9.0"),
            "torch-scatter>=3",
            "the project without `torch-scatter>=3` gives torch 2.7.0+cu128 with torch-scatter",
        ),
        (target("9.0"), "xformers", "the project without `xformers` gives torch 2.9.0+cu130"),
    ],
)
def test_the_hint_lets_go_of_one_thing(where: Target, wanted: str, hint: str) -> None:
    found = refused(where, wanted).hint
    assert found is not None
    assert found.startswith(hint)


def test_impossible_says_what_was_asked_where_there_is_no_wheel_at_all() -> None:
    error = refused(target("8.0", torch="==2.99.*", cuda="==12.8"), "torch<3")
    assert error.message == (
        "no build of torch fits target `t`: torch has no wheel for Python 3.11 on linux-x86_64 "
        'within `torch = "2.99.*"` and `cuda = "12.8"` and `torch<3`'
    )
    assert error.hint == '`torch = "2.8.0"` gives torch 2.8.0+cu128'


def test_impossible_without_any_way_out_says_what_to_look_at() -> None:
    error = refused(target("3.5"), "torch")
    assert error.hint is not None
    assert "gives" not in error.hint
    assert "torch 2.9.0+cu130 has no code for sm_35" in error.message
    assert "(3 more like it)" in error.message


@pytest.mark.parametrize(
    ("specifier", "text"), [("==12.8", "12.8"), ("==2.7.*", "2.7.*"), (">=570", ">=570")]
)
def test_specifiers_are_shown_as_users_write_them(specifier: str, text: str) -> None:
    assert shown(SpecifierSet(specifier)) == text


def test_what_the_resolver_turned_down_gives_no_hint_that_it_was_not_asked_about() -> None:
    solutions = search(target("8.0", torch="==2.9.*"), "torch")
    solutions.reject(next(solutions), "uv finds no set with it")
    assert list(solutions) == []
    error = impossible(solutions)
    assert error.message == "no build of torch fits target `t`: uv finds no set with it"
    assert error.hint == "loosen one of the requirements that are named"
