"""What envbuild answers on the facts that come with it: chosen stacks, refusals and proofs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fakes import candidate, project

from envbuild.catalog.reader import Catalog
from envbuild.core.verify.proof import verify
from envbuild.model.finding import Severity
from envbuild.model.lock import TargetLock
from envbuild.model.stack import IndexPin, Stack
from envbuild.providers.impossible import impossible
from envbuild.providers.solve import solve

if TYPE_CHECKING:
    from envbuild.errors import RefusedError
    from envbuild.model.finding import Finding
    from envbuild.model.lock import Pinned
    from envbuild.model.project import BuildSpec, IndexUrls
    from envbuild.model.target import Target
    from envbuild.providers.solve import Solutions

WHL = "https://download.pytorch.org/whl"


@cache
def catalog() -> Catalog:
    return Catalog.load()


def search(
    where: Target,
    *wanted: str,
    builds: tuple[BuildSpec, ...] = (),
    indexes: IndexUrls | None = None,
) -> Solutions:
    found = project(where, *wanted, builds=builds, **({"indexes": indexes} if indexes else {}))
    return solve(found, where, source=catalog(), facts=catalog())


def best(where: Target, *wanted: str, **options: object) -> Stack:
    """Return the stack that is taken."""
    return next(search(where, *wanted, **options))  # type: ignore[arg-type]


def refused(where: Target, *wanted: str, **options: object) -> RefusedError:
    """Return the error of a request that nothing fits."""
    solutions = search(where, *wanted, **options)  # type: ignore[arg-type]
    assert next(solutions, None) is None
    return impossible(solutions)


def pins(stack: Stack) -> dict[str, str]:
    """Return the requirement of each pin by its project; source builds have none."""
    return {pin.project: getattr(pin, "requirement", "") for pin in stack.pins}


def proof(
    *packages: Pinned,
    where: Target,
    page: str = "cu128",
    torch: str = "2.7.0+cu128",
    with_torch: bool = False,
) -> tuple[Finding, ...]:
    """Return what speaks against a set that was locked for a build of torch."""
    chosen = candidate(page, torch)
    stack = Stack(candidate=chosen, pins=(IndexPin(wheel=chosen.torch),) if with_torch else ())
    cuda = None if page == "cpu" else f"{page[2:-1]}.{page[-1]}"
    lock = TargetLock(
        target=where.name,
        python=where.python,
        platform=where.platform.value,
        packages=packages,
        cuda=cuda,
    )
    return verify(stack, lock, where, catalog())


def errors(found: tuple[Finding, ...]) -> dict[str, Finding]:
    """Return the errors by their codes, the last of each."""
    return {finding.code: finding for finding in found if finding.severity is Severity.ERROR}
