"""Requests that differ from an impossible one in a single thing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from envbuild.providers.registry import COUPLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement

    from envbuild.core.context import Context
    from envbuild.model.target import Target

_PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True, kw_only=True, slots=True)
class Relaxed:
    """A request with one thing let go.

    ``key`` is the key of the target, or the name of the package; ``was`` is how the user wrote
    it and ``context`` is the request without it.
    """

    key: str
    was: str
    context: Context


def relaxations(context: Context) -> Iterator[Relaxed]:
    """Yield the request with one thing let go at a time, the cheapest for the user first."""
    target = context.target
    if target.cuda is not None:
        free = None if target.gpus else SpecifierSet(">=1")  # without either it would be the CPU's
        yield _with(context, "cuda", _line("cuda", target.cuda), replace(target, cuda=free))
    if target.torch is not None:
        yield _with(context, "torch", _line("torch", target.torch), replace(target, torch=None))
    if target.driver is not None:
        yield _with(context, "driver", _line("driver", target.driver), replace(target, driver=None))
    yield from _without_specifiers(context)
    for python in _near(target.python):
        was = f'python = "{target.python}"'
        yield _with(context, "python", was, replace(target, python=python))
    for gpu in target.gpus if len(target.gpus) > 1 else ():
        others = tuple(other for other in target.gpus if other != gpu)
        yield _with(context, "gpus", f"the GPU `{gpu.name}`", replace(target, gpus=others))
    for name in sorted(COUPLED & context.wanted.keys() - {"torch"}):
        rest = {n: found for n, found in context.wanted.items() if n != name}
        yield Relaxed(key=name, was=name, context=replace(context, wanted=rest))


def shown(specifier: SpecifierSet) -> str:
    """Return a specifier as users write it: `12.8` for `==12.8`."""
    text = str(specifier)
    return text.removeprefix("==") if text.count("=") == 2 and "," not in text else text  # noqa: PLR2004


def _line(key: str, specifier: SpecifierSet) -> str:
    return f'{key} = "{shown(specifier)}"'


def _with(context: Context, key: str, was: str, target: Target) -> Relaxed:
    return Relaxed(key=key, was=was, context=replace(context, target=target))


def _without_specifiers(context: Context) -> Iterator[Relaxed]:
    for name in sorted(COUPLED & context.wanted.keys()):
        asked = context.wanted[name]
        if any(requirement.specifier for requirement in asked):
            free = tuple(_bare(requirement) for requirement in asked)
            was = ", ".join(str(r) for r in asked if r.specifier)
            wanted = {**context.wanted, name: free}
            yield Relaxed(key=name, was=was, context=replace(context, wanted=wanted))


def _bare(requirement: Requirement) -> Requirement:
    return type(requirement)(canonicalize_name(requirement.name))


def _near(python: str) -> tuple[str, ...]:
    """Return the other Pythons, those nearest first and the newer before the older."""
    minor = int(python.split(".")[1])
    others = (other for other in _PYTHONS if other != python)
    minors = sorted((int(other.split(".")[1]) for other in others), reverse=True)
    return tuple(f"3.{m}" for m in sorted(minors, key=lambda m: abs(m - minor)))
