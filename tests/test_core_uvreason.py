"""What is kept of uv's words."""

from __future__ import annotations

import pytest

from envbuild.core.uvreason import (
    contradiction,
    missing_projects,
    names,
    refused_by,
    without_chatter,
)

HEAD = (
    "No solution found when resolving dependencies for split (markers: python_full_version =="
    " '3.11.*' and sys_platform == 'linux')\n  cause: "
)


NUMPY = (
    "Because all versions of needy depend on numpy>=2 and your project depends on needy, we can"
    " conclude that your project depends on numpy>=2.\n         And because your project depends"
    " on numpy<2, we can conclude that your project's requirements are unsatisfiable."
)
TRITON = (
    "Because triton{sys_platform == 'linux'}==3.3.0 has no `python_full_version == '3.11.*' and"
    " sys_platform == 'linux'`-compatible wheels and all versions of torch depend on"
    " triton{sys_platform == 'linux'}==3.3.0, we can conclude that all versions of torch cannot be"
    " used.\n         And because your project depends on torch==2.7.0+cu128, we can conclude"
    " that your project's requirements are unsatisfiable.\nhint: The resolution failed for an"
    " environment that is not the current one"
)
STACK = (
    "Because spconv-cu126==2.3.8 has no `python_full_version == '3.12.*'`-compatible wheels and"
    " demo:envbuild depends on spconv-cu126==2.3.8, we can conclude that demo:envbuild's"
    " requirements are unsatisfiable.\n         And because your project requires demo:envbuild,"
    " we can conclude that your project's requirements are unsatisfiable."
)
NUMBERED = (
    "Because only a<=2 is available and b depends on a>3, we can conclude that b cannot be used."
    " (1)\n Because c==1.0 depends on d, we can conclude that c and d fight. And because we know"
    " from (1) that b cannot be used, and e depends on b, we can conclude that your project's"
    " requirements are unsatisfiable."
)


@pytest.mark.parametrize(
    ("proof", "said"),
    [
        (
            NUMPY,
            (
                "all versions of needy depend on numpy>=2 and your project depends on needy;"
                " your project depends on numpy<2"
            ),
        ),
        (
            TRITON,
            (
                "triton==3.3.0 has no wheel for the target and all versions of torch depend on"
                " triton==3.3.0; your project depends on torch==2.7.0+cu128"
            ),
        ),
        (
            STACK,
            (
                "spconv-cu126==2.3.8 has no wheel for the target and the chosen stack depends on"
                " spconv-cu126==2.3.8"
            ),
        ),
        (
            NUMBERED,
            "only a<=2 is available and b depends on a>3; c==1.0 depends on d; e depends on b",
        ),
    ],
    ids=["numpy", "triton", "stack", "numbered"],
)
def test_the_facts_stay_and_the_conclusions_go(proof: str, said: str) -> None:
    assert contradiction(HEAD + proof) == said


def test_a_long_chain_loses_its_middle() -> None:
    chain = " And ".join(f"because p{n} depends on q{n}, we can conclude that x." for n in range(9))
    assert contradiction(HEAD + chain) == (
        "p0 depends on q0; p1 depends on q1; p2 depends on q2; …; p6 depends on q6;"
        " p7 depends on q7; p8 depends on q8"
    )


def test_other_words_stay() -> None:
    assert contradiction("it is broken") == "it is broken"


def test_packages_that_no_index_has() -> None:
    reason = (
        "nunpy was not found in the package registry and your project depends on nunpy>=1; a.b-c"
        " was not found in the package registry"
    )
    assert missing_projects(reason) == ("nunpy", "a.b-c")
    assert missing_projects("numpy was found") == ()


LACKING = (
    "hint: An index URL (https://x.org/simple) could not be queried due to a lack of valid"
    " authentication credentials (401 Unauthorized)"
)
FORBIDDEN = "hint: An index (https://x.org/simple) returned a 403 Forbidden error"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LACKING, ("https://x.org/simple", 401)),
        (FORBIDDEN, ("https://x.org/simple", 403)),
        ("No solution found", None),
    ],
)
def test_an_index_that_refuses(text: str, found: tuple[str, int] | None) -> None:
    assert refused_by(text) == found


@pytest.mark.parametrize(
    ("reason", "spoken_of"),
    [
        ("your project depends on torch==2.7.0", True),
        ("all versions of torch, and more", True),
        ("it needs torch", True),
        ("needs torch[x]>1", True),
        ("pytorch-lightning is missing", False),
        ("torch-fidelity was not found", False),
        ("zope.torch and torch.x", False),
    ],
)
def test_a_package_is_spoken_of(reason: str, *, spoken_of: bool) -> None:
    assert names(reason, "torch") is spoken_of


def test_chatter_is_dropped() -> None:
    stderr = (
        "Using CPython 3.11.4 interpreter at: /usr/bin/python3\n   Updating https://x.org (main)\n"
        "warning: old\n\nerror: it failed\n  cause: why\n"
    )
    assert without_chatter(stderr) == "it failed\n  cause: why"
