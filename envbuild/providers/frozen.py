"""What a frozen base takes off the providers, and what it forbids them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.core.frozen import is_foreign
from envbuild.core.treebuild import accepts_build
from envbuild.core.wanted import asked
from envbuild.model.project import Prefer
from envbuild.model.stack import IndexPin, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.core.context import Context
    from envbuild.model.stack import Candidate, Stack
    from envbuild.providers.interface import Provider

_TORCH = "torch"
_WITHOUT_TORCH = ("spconv", "triton")
"""Providers of wheels that link to no torch."""


def frozen_refusals(context: Context) -> Iterator[Refusal]:
    """Yield why what the base holds is not what the project asks for."""
    for name, pin in context.frozen.items():
        if name != _TORCH and not accepts_build(context.wanted, name, pin.wheel.version):
            wanted = asked(context.wanted, name)
            reason = f"the base has {name} {pin.wheel.version}, which is kept, wanted `{wanted}`"
            yield Refusal(project=name, reason=reason, excludes=wanted)
    for name, spec in context.builds.items():
        if name in context.frozen and (spec.path is not None or spec.git is not None):
            reason = f"the base has {name}, which `[tool.envbuild.build]` would compile over it"
            yield Refusal(project=name, reason=reason, excludes=name)


def for_provider(provider: Provider, candidate: Candidate, context: Context) -> Context | Refusal:
    """Return the context in which a provider extends a candidate.

    It is not asked for what is frozen. No published wheel is made for a torch that a base's maker
    built, so beside that everything that links to torch is compiled, or refused.
    """
    if not context.frozen and not context.unversioned:
        return context
    taken = {*context.frozen, *context.unversioned} - {_TORCH}
    context = replace(
        context,
        wanted={name: found for name, found in context.wanted.items() if name not in taken},
        builds={name: spec for name, spec in context.builds.items() if name not in taken},
    )
    if not is_foreign(candidate) or provider.name in _WITHOUT_TORCH:
        return context
    return _compiled(provider, candidate, context)


def _compiled(provider: Provider, candidate: Candidate, context: Context) -> Context | Refusal:
    builds = dict(context.builds)
    for name in sorted((provider.projects & context.wanted.keys()) - {_TORCH}):
        spec = builds.get(name)
        if spec is None or spec.prefer is Prefer.WHEEL:
            reason = (
                f"{candidate.label} is the base's own build, which no wheel of {name} is made for:"
                f' compile it with `{name} = "source"` in `[tool.envbuild.build]`'
            )
            return Refusal(project=name, reason=reason, excludes=asked(context.wanted, name))
        builds[name] = replace(spec, prefer=Prefer.SOURCE)
    return replace(context, builds=builds)


def with_frozen(stack: Stack, context: Context) -> Stack:
    """Return a stack that also pins all that the base holds."""
    pinned = {pin.project for pin in stack.pins if isinstance(pin, IndexPin)}
    rest = tuple(pin for name, pin in sorted(context.frozen.items()) if name not in pinned)
    return replace(stack, pins=(*stack.pins, *rest), dropped=context.unversioned)
