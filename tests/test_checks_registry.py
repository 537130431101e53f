"""The registry of rules, their pages, and the document that is made of them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from envbuild.checks.registry import FAMILIES, TITLES, all_rules, rule_named

if TYPE_CHECKING:
    from envbuild.checks.rule import Rule

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = ("What it finds", "Why it matters", "Fix")
RULES = all_rules()


def rendered() -> str:
    spec = importlib.util.spec_from_file_location(
        "render_checks", ROOT / "scripts" / "render_checks.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.render()
    assert isinstance(text, str)
    return text


def test_every_module_of_rules_is_registered() -> None:
    written: set[str] = set()
    for path in (ROOT / "envbuild" / "checks").glob("*.py"):
        written |= set(re.findall(r'^@rule\(\s*"(EB\d{3})"', path.read_text("utf-8"), re.MULTILINE))
    assert {rule.code for rule in RULES} == written


def test_codes_are_given_once_and_in_order() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert {code[:3] for code in codes} <= set(TITLES)


def test_a_family_has_one_beginning() -> None:
    for family in FAMILIES:
        assert len({rule.code[:3] for rule in family}) == 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_pages_are_written_for_engineers(rule: Rule) -> None:
    first = rule.page.splitlines()[0]
    assert first.endswith(".")
    for section in SECTIONS:
        assert f"**{section}.**" in rule.page, section
    assert len(rule.title) <= 70
    assert rule.needs


def test_a_rule_is_found_by_its_code() -> None:
    found = rule_named("eb301")
    assert found is not None
    assert found.code == "EB301"
    assert rule_named("EB999") is None


def test_the_document_is_what_the_rules_give() -> None:
    page = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")
    assert page == rendered(), "run `nox -s generated`"
