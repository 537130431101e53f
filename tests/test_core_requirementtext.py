"""A requirement whose marker has no answer is no requirement of a project."""

from __future__ import annotations

import pytest
from packaging.requirements import InvalidRequirement

from envbuild.core.pylock import exported_packages
from envbuild.core.requirementtext import parse_requirement
from envbuild.errors import WorldError
from envbuild.model.target import Platform, Target

EXPORT = """\
lock-version = "1.0"
created-by = "uv"

[[packages]]
name = "einops"
version = "0.8.1"
marker = "extra == 'a'"
wheels = [{ url = "https://i.example/einops-0.8.1-py3-none-any.whl", hashes = { sha256 = "00" } }]
"""


@pytest.mark.parametrize(
    ("marker", "reason"),
    [
        ("'a' in extras", "asks for 'extras'"),
        ("os_name == 'nt' and 'a' in dependency_groups", "asks for 'dependency_groups'"),
        ("python_version ~= 'abc'", "compares what has no order"),
        (f"python_version < '{'9' * 5000}'", "compares what has no order"),
    ],
)
def test_a_marker_without_an_answer_is_refused(marker: str, reason: str) -> None:
    with pytest.raises(InvalidRequirement, match=reason):
        parse_requirement(f"einops>=0.8; {marker}")


@pytest.mark.parametrize("marker", ["extra == 'a'", "python_version < '3.12'", "os_name in 'nt'"])
def test_a_marker_with_an_answer_is_kept(marker: str) -> None:
    assert str(parse_requirement(f"einops; {marker}")) == f"einops; {marker}".replace("'", '"')


def test_an_export_whose_marker_has_no_answer_is_refused() -> None:
    target = Target(name="t", python="3.11", platform=Platform.LINUX_X86_64)
    with pytest.raises(WorldError, match="cannot be locked"):
        exported_packages(EXPORT, target)
