"""Why nothing fits a request, in one sentence, and the nearest request that something fits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envbuild.core.archs import toolkit_knows
from envbuild.core.candidates import accelerators
from envbuild.core.indexpages import pytorch_page
from envbuild.core.redact import redact_url
from envbuild.core.torchcode import is_proven
from envbuild.core.wanted import asked
from envbuild.errors import RefusedError
from envbuild.model.cuda import CudaVersion
from envbuild.model.stack import IndexPin, PypiPin
from envbuild.providers.relaxation import relaxations, shown
from envbuild.providers.solve import Solutions, compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.specifiers import SpecifierSet

    from envbuild.core.context import Context
    from envbuild.model.stack import Rejection, Stack
    from envbuild.providers.relaxation import Relaxed

_MOST = 3
_FROM_PYPI = re.compile(r" from PyPI \([^)]*\)")
_NUMBER = re.compile(r"\d[\w.+]*")


class ImpossibleError(RefusedError):
    """Nothing fits the request; ``rejections`` are all the candidates, each with its reasons."""

    def __init__(
        self, message: str, *, hint: str | None, rejections: tuple[Rejection, ...]
    ) -> None:
        super().__init__(message, hint=hint)
        self.rejections = rejections


def impossible(solutions: Solutions) -> ImpossibleError:
    """Return the error for a request that no candidate fits, once the search is spent.

    The hint is a request that was solved too. It names none where the resolver turned down what
    the facts admit, for of another request it would have to be asked again.
    """
    context = solutions.context
    nearest = None if solutions.resolver_refused else _nearest(context)
    reasons = "; ".join(_reasons(solutions.rejections))
    if reasons and nearest is not None and nearest[0].key in ("cuda", "torch", "driver"):
        reasons += f" and {_exclusion(*nearest)}"
    what = f"no build of torch fits target `{context.target.name}`"
    hint = _hint(*nearest) if nearest is not None else _no_single_change(solutions)
    return ImpossibleError(
        f"{what}: {reasons or _nothing(context)}", hint=hint, rejections=solutions.rejections
    )


def _no_single_change(solutions: Solutions) -> str:
    """Say what to look at where no request that differs in one thing is known to fit."""
    if solutions.resolver_refused:
        return "loosen one of the requirements that are named"
    context = solutions.context
    empty = [key for key in accelerators(context) if not _lists_torch(key, context)]
    if empty and context.indexes.pytorch is not None:
        index = redact_url(context.indexes.pytorch)
        return f"is the mirror complete? `{index}` lists no torch for {_some(empty)}"
    return "no single change is enough: loosen more than one of `torch`, `cuda`, `python`, `gpus`"


def _lists_torch(accelerator: str, context: Context) -> bool:
    page = pytorch_page(context.indexes, accelerator)
    return page is None or bool(context.source.wheels(page, "torch"))


def _some(keys: list[str]) -> str:
    more = len(keys) - _MOST
    return ", ".join(keys[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _reasons(rejections: tuple[Rejection, ...]) -> list[str]:
    """Return the reasons, those that rule out most candidates first, each said once.

    Reasons of one project that differ in nothing but numbers are one reason, told of the first
    candidate, which is the newest.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for rejection in rejections:
        for refusal in rejection.refusals:
            shape = _NUMBER.sub("#", _FROM_PYPI.sub("", refusal.reason.partition(": ")[0]))
            groups.setdefault((refusal.project, shape), []).append(refusal.reason)
    ordered = sorted(groups.values(), key=len, reverse=True)
    return [_counted(reasons) for reasons in ordered[:_MOST]]


def _counted(reasons: list[str]) -> str:
    unique = list(dict.fromkeys(reasons))
    return unique[0] if len(unique) == 1 else f"{unique[0]} ({len(unique) - 1} more like it)"


def _nothing(context: Context) -> str:
    """Say what was asked where not even one build of torch was found."""
    target = context.target
    limits = [
        f'`{key} = "{shown(specifier)}"`'
        for key, specifier in (
            ("torch", target.torch),
            ("cuda", target.cuda),
            ("driver", target.driver),
        )
        if specifier is not None
    ]
    wanted = asked(context.wanted, "torch")
    limits += [f"`{wanted}`"] if wanted != "torch" else []
    within = f" within {' and '.join(limits)}" if limits else ""
    what = f"torch has no wheel for {target.machines}{within}"
    return f"{what}{_too_old(context)}"


def _too_old(context: Context) -> str:
    """Say so where the one CUDA that is asked for compiles for no code of some GPU's family."""
    for cuda in _exact(context.target.cuda):
        for gpu in context.target.gpus:
            if not toolkit_knows(cuda, gpu.capability):
                return f"; CUDA {cuda} does not compile for {gpu.capability.sm} (`{gpu.name}`)"
    return ""


def _exact(specifiers: SpecifierSet | None) -> Iterator[CudaVersion]:
    for specifier in specifiers or ():
        if specifier.operator == "==" and re.fullmatch(r"\d+\.\d", specifier.version):
            yield CudaVersion.parse(specifier.version)


def _exclusion(relaxed: Relaxed, stack: Stack) -> str:
    candidate = stack.candidate
    if relaxed.key == "torch":
        near = candidate.public in relaxed.was  # then only the local version tells them apart
        version = candidate.torch.version if near else candidate.public
        return f"`{relaxed.was}` excludes torch {version}"
    cuda = candidate.cuda
    return f"`{relaxed.was}` excludes {f'CUDA {cuda}' if cuda else 'the CPU build'}"


def _nearest(context: Context) -> tuple[Relaxed, Stack] | None:
    """Solve the request with one thing let go at a time; the first answer counts."""
    built: tuple[Relaxed, Stack] | None = None
    for relaxed in relaxations(context):
        stack = next(Solutions(relaxed.context), None)
        if stack is None:
            continue
        if not compiled(stack) and is_proven(stack.candidate, relaxed.context):
            return relaxed, stack
        built = built or (relaxed, stack)
    return built


def _hint(relaxed: Relaxed, stack: Stack) -> str:
    gives = f"{_change(relaxed, stack)} gives {stack.candidate.label}{_others(relaxed, stack)}"
    proven = is_proven(stack.candidate, relaxed.context)
    return gives if proven else f"{gives}, whose GPU code is not known"


def _change(relaxed: Relaxed, stack: Stack) -> str:
    target, candidate = relaxed.context.target, stack.candidate
    match relaxed.key:
        case "cuda":
            return f'`cuda = "{candidate.cuda}"`'
        case "torch" if relaxed.was.startswith("torch ="):
            return f'`torch = "{candidate.public}"`'
        case "python":
            return f'`python = "{target.python}"`'
        case "driver" if candidate.cuda is not None:
            oldest = relaxed.context.facts.minimum_driver(candidate.cuda, target.platform)
            return f'`driver = ">={oldest}"`'
        case "gpus":
            return f"leaving out {relaxed.was}"
        case _:
            return f"the project without `{relaxed.was}`"


def _others(relaxed: Relaxed, stack: Stack) -> str:
    """Name the coupled packages that the project asks for."""
    wanted = relaxed.context.wanted
    named = []
    for pin in stack.pins:
        if pin.project == "torch" or not {pin.project, getattr(pin, "replaces", None)} & {*wanted}:
            continue
        if isinstance(pin, IndexPin):
            named.append(f"{pin.project} {pin.wheel.version}")
        elif isinstance(pin, PypiPin):
            named.append(f"{pin.project} {pin.specifier.removeprefix('==')}")
    return f" with {', '.join(named)}" if named else ""
