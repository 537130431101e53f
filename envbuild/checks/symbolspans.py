"""Between which releases of a library the symbols are there that the one on disk lacks."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from packaging.version import Version

from envbuild.model.facts import SymbolSpan

if TYPE_CHECKING:
    from envbuild.ports import Facts

_CUDAS = (12, 13)


def spans_of(names: list[str], provider: str, facts: Facts) -> dict[str, SymbolSpan]:
    """Return what is known of each symbol of a library, what came last first."""
    library = posixpath.basename(provider)
    found = {name: _span(name, library, facts) for name in names}
    known = [(name, span) for name, span in found.items() if span is not None]
    return dict(sorted(known, key=lambda one: Version(one[1].first or "0"), reverse=True))


def _span(name: str, library: str, facts: Facts) -> SymbolSpan | None:
    if not library.startswith("libnccl."):
        return facts.symbol_span(name, library=library)
    # The builds for all CUDA majors export the same; those for the older ones go further back.
    first = [v for cuda in _CUDAS if (v := facts.nccl_first_version(name, cuda_major=cuda))]
    return SymbolSpan(product="NCCL", first=min(first, key=Version)) if first else None


def newest(spans: dict[str, SymbolSpan], *, names: list[str]) -> str:
    """Say from which release on all symbols are there, or which one dropped them."""
    came = [one for one in spans.values() if one.first]
    if came:
        last = max(came, key=lambda one: Version(one.first or "0"))
        which = "it" if len(names) == 1 else "the newest"
        return f", {which} needs {last.product} {last.first} or later"
    went = [one for one in spans.values() if one.gone]
    if went:
        last = min(went, key=lambda one: Version(one.gone or "0"))
        which = "it" if len(names) == 1 else "some"
        return f", {which} went with {last.product} {last.gone}"
    return ""


def described(name: str, span: SymbolSpan | None) -> str:
    """Name a symbol with what is known of it."""
    if span is None:
        return name
    since = f"since {span.product} {span.first}" if span.first else ""
    gone = f"gone in {span.product} {span.gone}" if span.gone else ""
    return f"{name} ({', '.join(filter(None, (since, gone)))})"
