"""One ordered repair plan from the fixes of all findings, bound to the interpreter examined."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from envbuild.core.repair.bylock import chosen_lock, steps_through_lock
from envbuild.core.repair.bypip import (
    conda_reinstalls,
    conda_removals,
    foreign_names,
    foreign_steps,
    in_words,
    pip_steps,
)
from envbuild.core.repair.wish import wish_of
from envbuild.model.fix import Export, RepairStep
from envbuild.model.installed import EnvironmentKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.core.repair.wish import Wish
    from envbuild.model.finding import Finding
    from envbuild.model.installed import Installed, Ownership
    from envbuild.model.layers import Layers

REVIVE = "uv venv --allow-existing"
"""How a command begins that must come first: without an interpreter uv installs nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What a plan is made for; None where it was not read or there is none."""

    installed: Installed
    ownership: Ownership | None = None
    layers: Layers | None = None


def repair_plan(findings: Iterable[Finding], ground: Ground) -> tuple[RepairStep, ...]:
    """Return the steps of the fixes of findings; those come with the root cause first.

    A step without a command that stands before one with a command has to be done first. No
    command is bound to an interpreter that is in an image or was not found: such a step is text.
    """
    wish = wish_of(findings, installed=ground.installed, ownership=ground.ownership)
    steps = (*_package_steps(wish, ground), *_variable_steps(wish), *_manual_steps(wish))
    bound = ground.installed.executable and ground.installed.root == "/"
    steps = tuple(sorted(steps, key=lambda step: not step.text.startswith(REVIVE)))
    return steps if bound else tuple(_as_text(step) for step in steps)


def _package_steps(wish: Wish, ground: Ground) -> Iterator[RepairStep]:
    foreign = foreign_names(ground.installed)
    own = replace(
        wish,
        removals=tuple(name for name in wish.removals if name not in foreign),
        reinstalls=tuple(name for name in wish.reinstalls if name not in foreign),
    )
    yield from _own_steps(own, ground)
    yield from foreign_steps(wish, ground.installed)


def _own_steps(wish: Wish, ground: Ground) -> Iterator[RepairStep]:
    lock = chosen_lock(ground.layers, ground.installed)
    if ground.layers is not None and lock is not None:
        yield from steps_through_lock(
            wish, ground.installed, ground.layers, lock, ownership=ground.ownership
        )
        return
    conda = ground.installed.kind is EnvironmentKind.CONDA
    if conda:
        yield from conda_removals(wish, ground.installed)
    yield from pip_steps(wish, ground.installed)
    if conda:
        yield from conda_reinstalls(wish, ground.installed)
    if not wish.relocks:
        return
    reason = "; ".join(wish.relocks)
    if ground.layers is not None and ground.layers.uses_envbuild:
        yield RepairStep(reason=reason, command=("envbuild", "lock", ground.layers.directory))
    else:
        yield RepairStep(reason=reason, text=in_words("make the lock anew, then install from it"))


def _variable_steps(wish: Wish) -> Iterator[RepairStep]:
    for one in sorted(wish.variables, key=lambda fix: fix.variable):
        if isinstance(one, Export):
            text = f"export {one.variable}={shlex.quote(one.value)}"
            yield RepairStep(reason=f"set `{one.variable}`", text=text)
        else:
            yield RepairStep(reason=f"take `{one.variable}` away", text=f"unset {one.variable}")


def _manual_steps(wish: Wish) -> Iterator[RepairStep]:
    for text in _joined(wish.commands):
        revives = text.startswith(REVIVE)
        reason = "link the interpreter anew, the packages stay" if revives else "on the system"
        yield RepairStep(reason=reason, text=text)
    for text in wish.manual:
        yield RepairStep(reason="by hand", text=in_words(text))


def _joined(commands: Iterable[str]) -> Iterator[str]:
    """Make one command of those that install packages of the system alike."""
    packages: dict[str, dict[str, None]] = {}
    for text in commands:
        command, yes, names = text.partition(" -y ")
        packages.setdefault(command + yes, {}).update(dict.fromkeys(names.split()))
    return (f"{command}{' '.join(sorted(names))}" for command, names in packages.items())


def _as_text(step: RepairStep) -> RepairStep:
    return replace(step, command=(), text=shlex.join(step.command)) if step.command else step
