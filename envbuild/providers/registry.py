"""The providers, in the order in which they extend a candidate."""

from __future__ import annotations

from envbuild.providers import flashattn, pyg, pytorch, sources, spconv, triton, xformers

PROVIDERS = (
    pytorch.PROVIDER,
    triton.PROVIDER,
    pyg.PROVIDER,
    spconv.PROVIDER,
    flashattn.PROVIDER,
    xformers.PROVIDER,
    sources.PROVIDER,
)

# Every name that some provider binds to a build of torch.
COUPLED: frozenset[str] = frozenset().union(*(provider.projects for provider in PROVIDERS))
