"""Family EB1: the packages of an environment, and whether they belong together."""

from __future__ import annotations

from envbuild.checks import (
    companions,
    compiledparts,
    cudamix,
    origins,
    requirements,
    sameimport,
    torchbuild,
    twins,
)

RULES = (
    *twins.RULES,
    *sameimport.RULES,
    *cudamix.RULES,
    *companions.RULES,
    *torchbuild.RULES,
    *requirements.RULES,
    *compiledparts.RULES,
    *origins.RULES,
)
