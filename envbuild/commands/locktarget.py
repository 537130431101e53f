"""Lock one target: try stacks best first until uv resolves one and the facts prove it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.commands.attempt import Attempt
from envbuild.commands.checkouts import refuse_checkouts
from envbuild.commands.descent import with_descent
from envbuild.commands.request import Preferences, lock_on_disk
from envbuild.commands.shortfall import without_wheels
from envbuild.commands.vanished import vanished
from envbuild.core.uvreason import missing_projects, names
from envbuild.errors import InputError, RefusedError
from envbuild.model.project import Layer
from envbuild.model.resolution import Unsatisfiable
from envbuild.model.stack import Refusal, SourceBuild
from envbuild.providers.impossible import impossible
from envbuild.providers.solve import solve

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from envbuild.commands.attempt import LockedTarget
    from envbuild.commands.lockrun import Shared
    from envbuild.model.project import Project
    from envbuild.model.stack import Stack
    from envbuild.model.target import Target
    from envbuild.providers.solve import Solutions


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetLocker:
    """Locks the targets of one run."""

    shared: Shared

    def lock(self, target: Target) -> LockedTarget:
        """Lock a target, on the stack locked before where that still fits.

        Raises InputError for what cannot be pinned, RefusedError when no stack fits, WorldError
        when uv, an index or a hash fails.
        """
        refuse_checkouts(self.shared.project, target)
        preferences = self._preferences(target)
        for kept in preferences.stacks():
            locked = self._lock_kept(target, preferences, kept)
            if locked is not None:
                return locked
        locked = self._lock_anew(target, preferences)
        assert locked is not None  # noqa: S101 - without anything to keep the search raises
        return replace(locked, report=with_descent(locked.report, preferences.before))

    def _lock_kept(
        self, target: Target, preferences: Preferences, kept: tuple[Requirement, ...]
    ) -> LockedTarget | None:
        """Return the target locked on what of ``kept`` it still needs, None where that fails."""
        locked = self._lock_with(target, preferences, kept)
        if locked is None:
            return None
        held = {package.name for package in locked.report.lock.packages}
        needed = tuple(requirement for requirement in kept if requirement.name in held)
        return locked if needed == kept else self._lock_with(target, preferences, needed)

    def _lock_anew(self, target: Target, preferences: Preferences) -> LockedTarget | None:
        """Lock with nothing to keep, and say which locked files their indexes lost."""
        try:
            locked = self._lock_with(target, preferences, ())
        except RefusedError as error:
            self._say_vanished(preferences, error.message)
            raise
        self._say_vanished(preferences)
        return locked

    def _say_vanished(self, preferences: Preferences, reason: str = "") -> None:
        if self.shared.offline or not preferences.keeps_all:
            return
        for sentence in vanished(
            preferences.before,
            self.shared.project.indexes,
            source=self.shared.source,
            facts=self.shared.facts,
            reason=reason,
        ):
            self.shared.reporter.note(sentence)

    def _lock_with(
        self, target: Target, preferences: Preferences, kept: tuple[Requirement, ...]
    ) -> LockedTarget | None:
        """Return the locked target, or None where no stack holds what is to be kept."""
        found = kept
        while True:
            answer = self._try_stacks(target, preferences, found, keeps=bool(kept))
            if not isinstance(answer, tuple):
                return answer
            found = (*found, *answer)

    def _try_stacks(
        self,
        target: Target,
        preferences: Preferences,
        found: tuple[Requirement, ...],
        *,
        keeps: bool,
    ) -> LockedTarget | tuple[Requirement, ...] | None:
        """Return the locked target, coupled packages that only uv's answer showed, or None."""
        solutions = self._solutions(target, found)
        for number, stack in enumerate(solutions, 1):
            self.shared.reporter.candidate(f"{target.name}: {stack.candidate.label}", number)
            attempt = Attempt(
                shared=self.shared, target=target, stack=stack, preferences=preferences
            )
            answer = attempt.run()
            if isinstance(answer, Unsatisfiable):
                if not keeps:
                    _stop_unless_stack_matters(stack, answer, target, self.shared)
                solutions.reject(stack, f"uv finds no set with it: {answer.reason}")
            elif isinstance(answer, Refusal):
                solutions.reject(stack, answer.reason, same_public=False)
            elif isinstance(answer, tuple):
                return answer
            else:
                report = replace(answer.report, rejections=solutions.rejections)
                return replace(answer, report=report)
        if not keeps:
            raise impossible(solutions)
        return None

    def _solutions(self, target: Target, found: tuple[Requirement, ...]) -> Solutions:
        return solve(
            self.shared.project,
            target,
            source=self.shared.source,
            facts=self.shared.facts,
            extra_wanted=found,
            frozen=self.shared.bases.get(target.name),
        )

    def _preferences(self, target: Target) -> Preferences:
        return Preferences(
            target=target,
            own=self.is_default(target),
            before=lock_on_disk(self.shared.files, target),
            files=self.shared.files,
            reporter=self.shared.reporter,
            upgrade=self.shared.upgrade,
            upgrade_packages=self.shared.upgrade_packages,
        )

    def is_default(self, target: Target) -> bool:
        """Whether the target's set also goes to uv.lock."""
        project = self.shared.project
        return project.layer is Layer.PROJECT and target.name == project.default_target


def _stop_unless_stack_matters(
    stack: Stack, answer: Unsatisfiable, target: Target, shared: Shared
) -> None:
    """Raise where no other build of torch could change uv's answer."""
    missing = missing_projects(answer.reason)
    if missing:
        raise _not_found(missing[0], answer, target, shared.project)
    named = [pin.project for pin in stack.pins if not isinstance(pin, SourceBuild)]
    if not any(names(answer.reason, name) for name in named):
        shortfall = without_wheels(shared, target, answer.reason)
        if shortfall is not None:
            raise shortfall
        raise RefusedError(
            f"the requirements of target `{target.name}` contradict each other, whatever torch "
            f"is taken: {answer.reason}",
            hint=_loosen(answer.reason, shared.project),
        )


def _loosen(reason: str, project: Project) -> str:
    """Say what to do about a contradiction; uv.lock holds every extra and group at once."""
    own = canonicalize_name(project.name or "")
    if own and len(set(re.findall(rf"(?<![\w.-]){own}[\[:][\w.-]+", reason))) > 1:
        return (
            "declare the extras or groups that exclude each other in `conflicts` of [tool.uv], or "
            "loosen one of the requirements that are named"
        )
    return "loosen one of the requirements that are named"


def _not_found(
    name: str, answer: Unsatisfiable, target: Target, project: Project
) -> InputError | RefusedError:
    for declared in project.requirements:
        if canonicalize_name(declared.requirement.name) == canonicalize_name(name):
            return InputError(
                f"no index has `{name}`, which {declared.where} asks for (uv: {answer.reason})",
                hint=f"is `{name}` spelled right? a package of another index needs "
                "[[tool.uv.index]] and [tool.uv.sources]",
            )
    return RefusedError(
        f"no index has `{name}`, which target `{target.name}` needs (uv: {answer.reason})",
        hint="does the mirror in [tool.envbuild.indexes] hold it?",
    )
