"""EB9: what envbuild's own commands left behind."""

from __future__ import annotations

from collections.abc import Iterator

from envbuild.checks.rule import rule
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual
from envbuild.model.installed import UNFINISHED, Installed


@rule("EB901", "A sync was broken off", severity=Severity.WARNING)
def unfinished_sync(installed: Installed) -> Iterator[Finding]:
    """Find an environment in which `envbuild sync` began and did not come to its end.

    **What it finds.** The file `.envbuild-sync` in the environment, which `envbuild sync` writes
    before it changes anything and removes when everything is installed.

    **Why it matters.** Packages may be half installed. uv takes a package for whole as soon as its
    metadata lies there, so `uv sync` alone can call such an environment clean.

    **Example.** A node is taken away in the middle of `envbuild sync`.

    **Fix.** Run `envbuild sync` again; it looks at every file first and puts right what is broken.
    """
    if installed.unfinished:
        yield Finding(
            code="EB901",
            severity=Severity.WARNING,
            subject=installed.prefix,
            message="`envbuild sync` is at work here, or was broken off",
            evidence=(f"{installed.prefix}/{UNFINISHED}",),
            hint="run `envbuild sync` again: it finds what is half installed",
            fixes=(Manual(text="envbuild sync"),),
        )


RULES = (unfinished_sync,)
