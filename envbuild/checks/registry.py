"""Every rule of `envbuild doctor`, by family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.checks import (
    build,
    files,
    gpu,
    interpreter,
    layers,
    own,
    packages,
    shadow,
    symbols,
    systemlibraries,
)

if TYPE_CHECKING:
    from envbuild.checks.rule import Rule

# What the first letters of a code mean.
TITLES = {
    "EB1": "Packages",
    "EB2": "Files",
    "EB3": "Symbols and libraries",
    "EB4": "GPU",
    "EB5": "Layers",
    "EB6": "Builds",
    "EB7": "Shadowing",
    "EB9": "envbuild itself",
}
FAMILIES: tuple[tuple[Rule, ...], ...] = (
    packages.RULES,
    files.RULES,
    interpreter.RULES,
    symbols.RULES,
    systemlibraries.RULES,
    gpu.RULES,
    layers.RULES,
    build.RULES,
    shadow.RULES,
    own.RULES,
)


def all_rules() -> tuple[Rule, ...]:
    """Return every rule, in the order of the codes."""
    every = (rule for family in FAMILIES for rule in family)
    return tuple(sorted(every, key=lambda rule: rule.code))


def rule_named(code: str) -> Rule | None:
    """Return the rule of a code, in whatever case it was typed; None where there is none."""
    return next((rule for rule in all_rules() if rule.code == code.upper()), None)
