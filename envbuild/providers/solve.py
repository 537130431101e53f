"""The search that uv cannot do: stacks of a torch build and all that is coupled to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.core.candidates import candidates
from envbuild.core.context import context_for
from envbuild.core.torchcode import coverage_notes
from envbuild.model.stack import IndexPin, Refusal, Rejection, SourceBuild, Stack
from envbuild.providers.frozen import for_provider, frozen_refusals, with_frozen
from envbuild.providers.registry import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.requirements import Requirement

    from envbuild.core.context import Context
    from envbuild.model.frozen import Frozen
    from envbuild.model.project import Project
    from envbuild.model.stack import Candidate, Pin
    from envbuild.model.target import Target
    from envbuild.ports import Facts, WheelSource


class Solutions:
    """Stacks that fit, best first, and the candidates turned down on the way.

    Iterating goes on where it stopped. A stack that compiles a package of an index comes after
    every stack that compiles fewer of them, so it is held back until the others are spent.
    ``resolver_refused`` tells that some stack fitted by the facts and was turned down later.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        found, rejected = candidates(context)
        self._left = list(found)
        self._held: list[Stack] = []
        self._rejections = list(rejected)
        self._dropped: dict[str, Refusal] = {}
        self.resolver_refused = False

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """The candidates turned down so far, each with its reasons."""
        return tuple(self._rejections)

    def __iter__(self) -> Iterator[Stack]:
        return self

    def __next__(self) -> Stack:
        while self._left:
            stack = self._extended(self._left.pop(0))
            if stack is not None and compiled(stack):
                self._held.append(stack)
            elif stack is not None:
                return stack
        while self._held:
            stack = min(self._held, key=compiled)
            self._held.remove(stack)
            if not self._is_dropped(stack.candidate):
                return stack
        raise StopIteration

    def reject(self, stack: Stack, reason: str, *, same_public: bool = True) -> None:
        """Turn down a stack that was handed out, with the reason the resolver gave.

        With ``same_public`` every other build of the same public version of torch is dropped
        too, for a requirement that one of them cannot satisfy none of them can.
        """
        self.resolver_refused = True
        refusal = Refusal(project="torch", reason=reason)
        self._rejections.append(Rejection(candidate=stack.candidate, refusals=(refusal,)))
        if same_public:
            self._dropped[stack.candidate.public] = refusal

    def _is_dropped(self, candidate: Candidate) -> bool:
        refusal = self._dropped.get(candidate.public)
        if refusal is not None:
            self._rejections.append(Rejection(candidate=candidate, refusals=(refusal,)))
        return refusal is not None

    def _extended(self, candidate: Candidate) -> Stack | None:
        if self._is_dropped(candidate):
            return None
        answer = extended(candidate, self.context)
        if isinstance(answer, Rejection):
            self._rejections.append(answer)
            return None
        return with_optional(answer, self.context)


def solve(
    project: Project,
    target: Target,
    *,
    source: WheelSource,
    facts: Facts,
    extra_wanted: Iterable[Requirement] = (),
    frozen: Frozen | None = None,
) -> Solutions:
    """Return the stacks for one target of a project, found as they are asked for.

    ``extra_wanted`` are requirements that the project does not declare itself: those by which
    a dependency brings a coupled package. ``frozen`` is what a base holds.
    """
    return Solutions(
        context_for(project, target, source=source, facts=facts, extra=extra_wanted, frozen=frozen)
    )


def extended(candidate: Candidate, context: Context) -> Stack | Rejection:
    """Return a candidate with all its pins, or every provider's reason against it."""
    refusals: list[Refusal] = [*frozen_refusals(context)]
    pins: dict[str, Pin] = {}
    notes = list(coverage_notes(candidate, context))
    for provider in PROVIDERS:
        asked = for_provider(provider, candidate, context)
        answer = asked if isinstance(asked, Refusal) else provider.extend(candidate, asked)
        if isinstance(answer, Refusal):
            refusals.append(answer)
            continue
        notes += answer.notes
        for pin in answer.pins:
            pins.setdefault(pin.project, pin)
    if refusals:
        return Rejection(candidate=candidate, refusals=tuple(refusals))
    stack = Stack(candidate=candidate, pins=tuple(pins.values()), notes=tuple(notes))
    return with_frozen(stack, context)


def with_optional(stack: Stack, context: Context) -> Stack:
    """Return a stack that also binds what extras and groups name that the target leaves out.

    uv.lock holds them too. One that has no build for the candidate is left to uv.
    """
    pins = list(stack.pins)
    for name in sorted(context.optional.keys() - context.wanted.keys()):
        alone = replace(context, wanted={name: context.optional[name]})
        for provider in PROVIDERS:
            answer = provider.extend(stack.candidate, alone)
            if not isinstance(answer, Refusal):
                taken = {pin.project for pin in pins}
                new = (p for p in answer.pins if p.project == name and p.project not in taken)
                pins += [pin for pin in new if isinstance(pin, IndexPin)]
    return replace(stack, pins=tuple(pins))


def compiled(stack: Stack) -> int:
    """Return how many packages of an index a stack compiles; the user's own do not count."""
    return sum(
        pin.path is None and pin.git is None for pin in stack.pins if isinstance(pin, SourceBuild)
    )
