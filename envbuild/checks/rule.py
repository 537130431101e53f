"""A rule: a typed generator function whose parameters are the facts it needs.

The function's docstring is the rule's page: what it does, why it matters, how to fix it.
"""

from __future__ import annotations

import inspect
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from envbuild.model.finding import Finding, Severity

    Check: TypeAlias = Callable[..., Iterator[Finding]]
    Given: TypeAlias = Mapping[type, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One rule.

    ``code`` is never given to another rule. ``severity`` is what its findings have unless they
    say otherwise. ``needs`` maps the function's parameters to the types of facts; ``optional``
    names those that may be None (``aim: Aim | None``), where the fact cannot be had.
    """

    code: str
    title: str
    severity: Severity
    page: str
    check: Check
    needs: tuple[tuple[str, type], ...]
    optional: tuple[str, ...] = ()

    @property
    def required(self) -> tuple[type, ...]:
        """The types of the facts without which it cannot be judged."""
        return tuple(kind for name, kind in self.needs if name not in self.optional)


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A rule that could be judged, with what it found."""

    rule: Rule
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A rule that could not be judged, since a fact it needs is not there."""

    rule: Rule
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """A rule with a bug of ours in it."""

    rule: Rule
    traceback: str


if TYPE_CHECKING:
    Outcome: TypeAlias = Judged | Skipped | Broken


def rule(code: str, title: str, *, severity: Severity) -> Callable[[Check], Rule]:
    """Make a rule of a generator function.

    The types of its parameters must be at hand when the module runs: import them outside
    ``TYPE_CHECKING``.
    """

    def decorate(check: Check) -> Rule:
        kinds = _kinds(check)
        return Rule(
            code=code,
            title=title,
            severity=severity,
            page=inspect.cleandoc(check.__doc__ or ""),
            check=check,
            needs=tuple((name, found[0]) for name, found in kinds.items()),
            optional=tuple(name for name, found in kinds.items() if type(None) in found),
        )

    return decorate


def _kinds(check: Check) -> dict[str, tuple[type, ...]]:
    """Return the type of each fact, with that of None where it may be absent.

    `typing.get_type_hints` says the same of more kinds of annotations, and takes longer for all
    rules than their judgement.
    """
    hints = check.__annotations__
    return {
        name: (hint,) if isinstance(hint, type) else tuple(_named(hint, check.__globals__))
        for name, hint in hints.items()
        if name != "return"
    }


def _named(hint: str, known: Mapping[str, type]) -> Iterator[type]:
    return (type(None) if name == "None" else known[name] for name in hint.split(" | "))


def judge(rules: Iterable[Rule], given: Given) -> tuple[Outcome, ...]:
    """Judge every rule on the facts that were collected, each apart from the others."""
    return tuple(_judge(one, given) for one in rules)


def _judge(one: Rule, given: Given) -> Outcome:
    absent = [kind.__name__ for kind in one.required if kind not in given]
    if absent:
        return Skipped(rule=one, reason=f"not read: {', '.join(absent)}")
    arguments: dict[str, Any] = {name: given.get(kind) for name, kind in one.needs}
    try:
        return Judged(rule=one, findings=tuple(one.check(**arguments)))
    except Exception:  # noqa: BLE001 - one broken rule must not hide what the others found
        return Broken(rule=one, traceback=traceback.format_exc())
