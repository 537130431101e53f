"""The table of candidates."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from reports import REJECTIONS, REPORT, TARGET, candidate

from envbuild.model.stack import Refusal, Rejection
from envbuild.render.explain import alike
from envbuild.render.text import render_text

TABLE = """\
  5 candidates, 4 rejected:
    chosen    torch 2.7.0+cu128               the first that everything allows
    rejected  torch 2.7.1+cu128               torch 2.7.1 is outside `==2.7.0`
    rejected  torch 2.7.0+cu126, 2.6.0+cu126  torch: it has no code for sm_120 and no PTX that \
could become it
    rejected  torch 2.7.0+cu118               torch: it has no code for sm_120 and no PTX that \
could become it
                                              spconv: no wheel for cp311 was built with CUDA 11.8
"""


def explained(rejections: tuple[Rejection, ...]) -> str:
    report = replace(REPORT, targets=(replace(TARGET, rejections=rejections),))
    return render_text(report, explain=True)


def test_table() -> None:
    assert TABLE in explained(REJECTIONS)


def test_only_when_asked() -> None:
    assert "candidates" not in render_text(REPORT)


def test_many_that_share_a_reason_are_counted() -> None:
    rejections = tuple(
        Rejection(
            candidate=candidate(f"2.{minor}.0+cu118", "11.8"),
            refusals=(Refusal(project="torch", reason=f"torch 2.{minor}.0+cu118 is too old"),),
        )
        for minor in range(6)
    )
    assert (
        "    rejected  torch 2.0.0+cu118, 2.1.0+cu118, 2.2.0+cu118, and 3 more"
        "  torch 2.0.0+cu118 is too old\n"
    ) in explained(rejections)


def test_a_rejection_without_a_reason_says_so() -> None:
    rejection = Rejection(candidate=candidate("2.6.0+cpu", None), refusals=())
    assert "rejected  torch 2.6.0+cpu    no reason was given\n" in explained((rejection,))


rejections = st.builds(
    Rejection,
    candidate=st.builds(
        candidate,
        st.sampled_from(["2.6.0+cu126", "2.7.0", "2.7.1+cu128"]),
        st.sampled_from([None, "12.6", "12.8"]),
    ),
    refusals=st.lists(
        st.builds(Refusal, project=st.sampled_from(["torch", "xformers"]), reason=st.text())
    ).map(tuple),
)


@given(st.lists(rejections).map(tuple))
def test_grouping_loses_nothing_and_keeps_the_order(given_: tuple[Rejection, ...]) -> None:
    groups = alike(given_)
    flat = [rejection for group in groups for rejection in group]
    assert sorted(map(repr, flat)) == sorted(map(repr, given_))
    assert [given_.index(group[0]) for group in groups] == sorted(
        given_.index(group[0]) for group in groups
    )
