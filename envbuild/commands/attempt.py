"""One stack, tried on one target: resolve it with uv, prove it, and finish its files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from envbuild.commands.hashes import hashed
from envbuild.commands.request import request_for
from envbuild.core.frozenlock import as_released, beside, without_frozen
from envbuild.core.missingwheels import compiled_instead
from envbuild.core.pylock import exported_packages
from envbuild.core.redact import without_credentials
from envbuild.core.requirementstxt import PYPI_URL
from envbuild.core.scratch import scratch_index, stand_in_sha256, with_real_pages
from envbuild.core.uvlock import finish_uv_lock
from envbuild.core.verify.origin import index_only
from envbuild.core.verify.proof import verify
from envbuild.core.wanted import default_groups, wanted_for
from envbuild.core.yanked import withdrawn
from envbuild.errors import WorldError
from envbuild.model.finding import Severity
from envbuild.model.lock import TargetLock
from envbuild.model.report import TargetReport
from envbuild.model.resolution import Resolution, Unavailable, Unsatisfiable
from envbuild.model.stack import IndexPin, PypiPin, Refusal
from envbuild.model.wheel import PageKind
from envbuild.providers.registry import COUPLED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from envbuild.commands.lockrun import Shared
    from envbuild.commands.request import Preferences
    from envbuild.core.scratch import ScratchIndex
    from envbuild.model.finding import Finding
    from envbuild.model.frozen import Frozen
    from envbuild.model.lock import Pinned
    from envbuild.model.resolution import ResolveRequest
    from envbuild.model.stack import Stack
    from envbuild.model.target import Target
    from envbuild.model.wheel import WheelFile

    Requires: TypeAlias = Mapping[WheelFile, tuple[str, ...]]


_BOUND_BY_METADATA = ("cumm", "triton")
"""Coupled packages that uv finds rightly by itself, since another's metadata names them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedTarget:
    """A target with its locked set, and uv.lock where the target is the project's own."""

    target: Target
    report: TargetReport
    uv_lock: str | None
    default_index: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One stack, tried on one target."""

    shared: Shared
    target: Target
    stack: Stack
    preferences: Preferences

    def run(self) -> LockedTarget | Refusal | Unsatisfiable | tuple[Requirement, ...]:
        """Resolve, prove and finish the stack.

        Returns Unsatisfiable where uv finds no set with it, a Refusal where the facts speak
        against it, and the coupled packages that only uv's answer showed where the stack has
        to be chosen anew with them.
        """
        requires = self._requirements()
        if isinstance(requires, Refusal):
            return requires
        pinned = {pin.project for pin in self.stack.pins}
        unrouted = index_only(requires.values(), self.target, without=pinned)
        if unrouted:
            return unrouted
        asked = self._asked(requires)
        index = scratch_index(asked)
        resolution = self._resolve(index, asked)
        if isinstance(resolution, Unsatisfiable):
            return resolution
        packages = self._packages(resolution, dict(zip(asked, requires, strict=True)))
        unforeseen = self._unforeseen(packages)
        if unforeseen:
            return unforeseen
        lock = self._target_lock(packages)
        findings = verify(self.stack, lock, self.target, self.shared.facts, coupled=COUPLED)
        wrong = [finding for finding in findings if finding.severity is Severity.ERROR]
        if wrong:
            reason = "; ".join(f"{finding.message} ({finding.code})" for finding in wrong)
            return Refusal(project=wrong[0].subject, reason=reason)
        lock = without_frozen(lock, resolution)
        findings += tuple(compiled_instead(resolution.pylock, lock, self.target))
        findings += tuple(withdrawn(resolution))
        lock = hashed(lock, self.shared, self.preferences, requires)
        return self._finished(lock, findings, resolution, index, requires)

    @property
    def _frozen(self) -> Frozen | None:
        return self.shared.bases.get(self.target.name)

    def _requirements(self) -> dict[WheelFile, tuple[str, ...]] | Refusal:
        requires: dict[WheelFile, tuple[str, ...]] = {}
        for pin in self.stack.pins:
            if isinstance(pin, IndexPin):
                needs = self.shared.source.requires_dist(pin.wheel)
                if needs is None:
                    host = urlsplit(pin.wheel.url).hostname
                    return Refusal(
                        project=pin.project,
                        reason=f"what {pin.requirement} requires is not known, and {host} does "
                        "not serve the wheel to read it",
                    )
                requires[pin.wheel] = needs
        return requires

    @property
    def _released(self) -> Stack:
        """The stack as uv is to judge it."""
        return as_released(self.stack, wanted_for(self.shared.project, self.target))

    def _asked(self, requires: Requires) -> Requires:
        """Return what uv is shown in the place of the stack's wheels, in the same order."""
        pins = [pin for pin in self._released.pins if isinstance(pin, IndexPin)]
        return {pin.wheel: needs for pin, needs in zip(pins, requires.values(), strict=True)}

    def _resolve(self, index: ScratchIndex, requires: Requires) -> Resolution | Unsatisfiable:
        """Ask uv; first without the network where that may confirm what is locked already."""
        shared = self.shared
        request = request_for(
            shared.project, self._released, self.preferences, index=index, requires=requires
        )
        if shared.offline or (self.preferences.keeps_all and self.preferences.before):
            shared.reporter.phase(f"{self.target.name}: confirm with uv")
            answer = self._ask(replace(request, offline=True), index)
            if shared.offline:
                return _offline_answer(answer)
            if isinstance(answer, Resolution) and self._confirms(answer):
                return answer
        shared.reporter.phase(f"{self.target.name}: resolve with uv")
        answer = self._ask(request, index)
        if isinstance(answer, Unavailable):
            raise WorldError(answer.reason)
        return answer

    def _ask(
        self, request: ResolveRequest, index: ScratchIndex
    ) -> Resolution | Unsatisfiable | Unavailable:
        answer = self.shared.resolver.resolve(request)
        if isinstance(answer, Resolution):
            return replace(answer, pylock=with_real_pages(answer.pylock, index))
        return answer

    def _confirms(self, answer: Resolution) -> bool:
        before = self.preferences.before
        packages = beside(self._frozen, exported_packages(answer.pylock, self.target))
        return before is not None and {p.name: p.version for p in packages} == {
            p.name: p.version for p in before.packages
        }

    def _packages(
        self, resolution: Resolution, shown: Mapping[WheelFile, WheelFile]
    ) -> tuple[Pinned, ...]:
        """Return the resolved set with what is known of the wheels of the stack.

        ``shown`` maps what uv was shown to the wheels themselves.
        """
        wheels = {without_credentials(wheel.url): itself for wheel, itself in shown.items()}
        packages = exported_packages(resolution.pylock, self.target)
        return tuple(_known(p, wheels.get(p.artifacts[0].url)) for p in packages)

    def _unforeseen(self, packages: tuple[Pinned, ...]) -> tuple[Requirement, ...]:
        known = {pin.project for pin in self.stack.pins}
        known |= {p.replaces for p in self.stack.pins if isinstance(p, PypiPin) and p.replaces}
        names = {p.name for p in packages if not p.name.startswith(_BOUND_BY_METADATA)}
        return tuple(Requirement(name) for name in sorted((names & COUPLED) - known))

    def _target_lock(self, packages: tuple[Pinned, ...]) -> TargetLock:
        target, cuda = self.target, self.stack.candidate.cuda
        return TargetLock(
            target=target.name,
            python=target.python,
            platform=target.platform.value,
            packages=packages,
            gpus=tuple(gpu.name for gpu in target.gpus),
            capabilities=tuple(sorted({str(gpu.capability) for gpu in target.gpus})),
            cuda=None if cuda is None else str(cuda),
            builds=self.stack.builds,
            base=target.base,
            glibc=target.glibc,
            frozen=self._frozen,
        )

    def _finished(
        self,
        lock: TargetLock,
        findings: tuple[Finding, ...],
        resolution: Resolution,
        index: ScratchIndex,
        requires: Requires,
    ) -> LockedTarget:
        shared = self.shared
        return LockedTarget(
            target=self.target,
            report=TargetReport(
                target=self.target.name,
                stack=self.stack,
                lock=lock,
                findings=findings,
                notes=(*self.stack.notes, *_absent(lock)),
                extras=self.target.extras,
                groups=tuple(sorted({*self.target.groups} - {*default_groups(shared.project)})),
            ),
            uv_lock=self._uv_lock(resolution, index, requires, lock),
            default_index=without_credentials(shared.project.indexes.pypi or PYPI_URL),
        )

    def _uv_lock(
        self, resolution: Resolution, index: ScratchIndex, requires: Requires, lock: TargetLock
    ) -> str | None:
        if not self.preferences.own:
            return None
        text = resolution.uv_lock
        for package in lock.packages:
            for artifact in package.artifacts:
                if artifact.sha256 is not None:
                    text = text.replace(stand_in_sha256(artifact.url), artifact.sha256)
        text = self._with_hashes_of_the_rest(text, requires)
        return finish_uv_lock(
            text,
            index=index,
            wheels=requires,
            requires_python=self.shared.project.requires_python or "",
            target=self.target,
        )

    def _with_hashes_of_the_rest(self, text: str, requires: Requires) -> str:
        """Fill in the hashes of what only extras and groups hold that the target leaves out."""
        for wheel in requires:
            stand_in = stand_in_sha256(without_credentials(wheel.url))
            if wheel.sha256 is None and stand_in in text:
                text = text.replace(stand_in, self.shared.source.sha256(wheel) or stand_in)
        return text


def _known(package: Pinned, wheel: WheelFile | None) -> Pinned:
    """Return the package with the hash and page of its wheel in the place of stand-ins."""
    if wheel is None:
        return package
    artifact = replace(package.artifacts[0], sha256=wheel.sha256, size=wheel.size)
    return replace(
        package,
        version=wheel.version if wheel.page.kind is PageKind.BASE else package.version,
        artifacts=(artifact,),
        flat=wheel.page.flat,
        direct=wheel.page.kind is PageKind.FLASH_ATTN,
    )


def _absent(lock: TargetLock) -> tuple[str, ...]:
    kept = lock.frozen is not None and lock.frozen.find("torch") is not None
    if kept or any(package.name == "torch" for package in lock.packages):
        return ()
    return ("nothing asks for torch on this target: it is bound, but not in the set",)


def _offline_answer(answer: Resolution | Unsatisfiable | Unavailable) -> Resolution | Unsatisfiable:
    if isinstance(answer, Unavailable):
        raise WorldError(
            f"offline, and uv's cache does not hold what is needed: {answer.reason}",
            hint="run `envbuild lock` once without `--offline`",
        )
    return answer
