"""`envbuild doctor --fix`: carry out a repair plan, step by step."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from envbuild.errors import WorldError
from envbuild.model.diagnosis import Repair

if TYPE_CHECKING:
    from envbuild.model.fix import RepairStep
    from envbuild.ports import RepairRunner, Reporter


def carry_out(plan: tuple[RepairStep, ...], *, runner: RepairRunner, reporter: Reporter) -> Repair:
    """Run the commands of a plan in order; stop at the first that fails.

    It also stops at a step for a person that has a command after it, since that must wait.
    """
    done: list[RepairStep] = []
    for number, step in enumerate(plan):
        rest = plan[number:]
        if not step.command:
            if any(later.command for later in rest):
                reason = "a person has to do this first"
                return Repair(done=tuple(done), failed=step, reason=reason, rest=rest[1:])
            return Repair(done=tuple(done), left=rest)
        reporter.note(f"$ {shlex.join(step.command)}")
        reason = _run(step, runner)
        if reason:
            return Repair(done=tuple(done), failed=step, reason=reason, rest=rest[1:])
        done.append(step)
    return Repair(done=tuple(done))


def _run(step: RepairStep, runner: RepairRunner) -> str:
    """Run one step; return why it failed, or nothing."""
    try:
        status = runner.run(step.command)
    except WorldError as error:
        return error.message
    return f"exit status {status}" if status else ""
