"""Write docs/checks.md from the rules: ``python scripts/render_checks.py [--check]``."""

from __future__ import annotations

import sys
from pathlib import Path

from envbuild.checks.registry import TITLES, all_rules

PAGE = Path(__file__).resolve().parent.parent / "docs" / "checks.md"
HEAD = """\
# Checks

What `envbuild doctor` looks for. Nothing of the environment is imported or run. A finding is an
**error** where something will fail or compute on the wrong thing, a **warning** where it will fail
under a condition that is named, and a **note** where it is worth knowing; the severity below is
the usual one of the rule. `envbuild explain EB301` shows one page, `--select` and `--ignore` take
codes or the beginnings of codes.

This page is made from the rules: change their docstrings and run `nox -s generated`.
"""


def render() -> str:
    """Return the page."""
    parts = [HEAD, _contents()]
    family = ""
    for rule in all_rules():
        if rule.code[:3] != family:
            family = rule.code[:3]
            parts.append(f"## {family}: {TITLES[family]}\n")
        parts.append(f"### {rule.code}: {rule.title}\n\n*{rule.severity.value}*\n\n{rule.page}\n")
    return "\n".join(parts)


def _contents() -> str:
    rows = (f"| {rule.code} | {rule.title} | {rule.severity.value} |" for rule in all_rules())
    return "\n".join(("| code | what it finds | usually |", "|---|---|---|", *rows, ""))


def main() -> int:
    """Write the page, or say with ``--check`` whether it is what the rules give."""
    text = render()
    if "--check" in sys.argv[1:]:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
