"""The one root cause among linked findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnoses import AUDIO, INCIDENT, SHARED_PATH, SYMBOLS, TWINS, VISION, finding
from hypothesis import given
from hypothesis import strategies as st

from envbuild.core.cause import findings_to_mend, sort_findings
from envbuild.model.diagnosis import severity_rank
from envbuild.model.finding import Severity
from envbuild.model.fix import Install, Remove

if TYPE_CHECKING:
    from random import Random

    from envbuild.model.finding import Finding


def test_the_shared_path_is_the_cause_of_the_incident() -> None:
    found = sort_findings(INCIDENT)
    first, *others = found.problems
    assert first.cause == SHARED_PATH
    assert first.explains == (TWINS, SYMBOLS)
    assert [problem.cause for problem in others] == [AUDIO, VISION]
    assert found.notes == found.unknown == ()


def test_nothing_is_wrong_without_findings() -> None:
    assert sort_findings(()).problems == ()


def test_what_explains_more_comes_before_what_is_alone() -> None:
    root = finding("EB900", brings=("a",))
    deep = [finding("EB901", because=("a",), brings=("b",)), finding("EB902", because=("b",))]
    found = sort_findings([finding("EB101"), *deep, root])
    assert [problem.cause.code for problem in found.problems] == ["EB900", "EB101"]
    assert [one.code for one in found.problems[0].explains] == ["EB901", "EB902"]


def test_what_breaks_torch_comes_first_however_little_it_explains() -> None:
    twins = finding("EB201", brings=("file:/libnccl.so.2",))
    symbols = finding("EB301", because=("file:/libnccl.so.2",), brings=("import:torch",))
    audio = finding("EB103", brings=("dist:torchaudio", "import:torchaudio"))
    effects = [finding(f"EB30{number}", because=("dist:torchaudio",)) for number in range(2, 6)]
    found = sort_findings([audio, *effects, twins, symbols])
    assert [problem.cause.code for problem in found.problems] == ["EB201", "EB103"]
    minor = finding("EB106", severity=Severity.WARNING, brings=("import:torch",))
    assert [one.cause for one in sort_findings([minor, audio]).problems] == [audio, minor]


def test_a_warning_that_explains_an_error_is_the_cause() -> None:
    shadow = finding("EB701", severity=Severity.WARNING, brings=("library:libnccl.so.2",))
    missing = finding("EB301", because=("library:libnccl.so.2",))
    alone = finding("EB203", severity=Severity.WARNING)
    found = sort_findings([alone, missing, shadow])
    assert [problem.cause.code for problem in found.problems] == ["EB701", "EB203"]


def test_notes_are_no_problems_and_unknown_explains_nothing() -> None:
    note = finding("EB103", severity=Severity.NOTE)
    unknown = finding("EB301", severity=Severity.UNKNOWN, brings=("a",))
    effect = finding("EB302", because=("a",))
    found = sort_findings([note, unknown, effect])
    assert found.notes == (note,)
    assert found.unknown == (unknown,)
    assert [problem.cause for problem in found.problems] == [effect]


def test_findings_that_explain_one_another_have_one_cause() -> None:
    one = finding("EB101", brings=("b",), because=("a",))
    two = finding("EB201", brings=("a",), because=("b",))
    found = sort_findings([two, one, finding("EB301", because=("a",))])
    (problem,) = found.problems
    assert problem.cause == one
    assert [other.code for other in problem.explains] == ["EB201", "EB301"]


def test_a_finding_that_is_its_own_reason_is_a_cause() -> None:
    own = finding("EB101", brings=("a",), because=("a",))
    assert [problem.cause for problem in sort_findings([own]).problems] == [own]


def test_a_long_chain_is_no_deep_recursion() -> None:
    chain = [finding(f"EB{n}", because=(f"t{n}",), brings=(f"t{n + 1}",)) for n in range(400)]
    (problem,) = sort_findings(reversed(chain)).problems
    assert problem.cause.code == "EB0"
    assert [int(one.code[2:]) for one in problem.explains] == list(range(1, 400))


def test_what_a_cause_explains_is_mended_with_it() -> None:
    """`torch==2.7.0` would satisfy the old torchaudio, and break everything else."""
    downgrade = Install(requirements=("torch==2.7.0",))
    metadata = finding(
        "EB106", "torchaudio 2.7.0", fixes=(downgrade,), because=("dist:torchaudio",)
    )
    problems = sort_findings([AUDIO, metadata]).problems
    assert findings_to_mend(problems) == (AUDIO,)


def test_a_cause_without_a_fix_leaves_it_to_what_it_explains() -> None:
    root = finding("EB201", brings=("a",))
    middle = finding("EB301", because=("a",), brings=("b",), fixes=(Remove(names=("x",)),))
    leaf = finding("EB302", because=("b",), fixes=(Remove(names=("y",)),))
    assert findings_to_mend(sort_findings([root, middle, leaf]).problems) == (middle,)


TOKENS = st.lists(st.sampled_from("abcd"), max_size=2, unique=True).map(tuple)
FINDINGS = st.lists(
    st.builds(
        finding,
        st.sampled_from(["EB101", "EB201", "EB301"]),
        st.sampled_from(["x 1", "y 1"]),
        severity=st.sampled_from(Severity),
        because=TOKENS,
        brings=TOKENS,
    ),
    max_size=9,
)


@given(findings=FINDINGS, random=st.randoms())
def test_every_finding_stands_once_whatever_the_order(
    findings: list[Finding], random: Random
) -> None:
    found = sort_findings(findings)
    shown = [one for problem in found.problems for one in problem.findings]
    assert sorted(map(repr, (*shown, *found.notes, *found.unknown))) == sorted(
        map(repr, set(findings))
    )
    mixed = list(findings)
    random.shuffle(mixed)
    assert sort_findings(mixed) == found
    ranks = [severity_rank(problem.severity) for problem in found.problems]
    assert ranks == sorted(ranks)


@given(findings=FINDINGS)
def test_what_is_under_a_cause_is_reached_from_it(findings: list[Finding]) -> None:
    for problem in sort_findings(findings).problems:
        brought = set(problem.cause.brings)
        for _ in problem.explains:
            for one in findings:
                if set(one.because) & brought:
                    brought |= set(one.brings)
        assert all(set(one.because) & brought for one in problem.explains)
