"""What `envbuild doctor` found out about one environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.model.finding import Severity

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.fix import RepairStep

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE, Severity.UNKNOWN)


def severity_rank(severity: Severity) -> int:
    """Return how far from the worst a severity is: 0 for an error."""
    return _ORDER.index(severity)


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One problem: its cause, and the findings that it explains, in order."""

    cause: Finding
    explains: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The cause and all that it explains."""
        return (self.cause, *self.explains)

    @property
    def severity(self) -> Severity:
        """The worst severity among the findings."""
        return min((one.severity for one in self.findings), key=severity_rank)


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleText:
    """A rule as it is shown: its code, what it finds, and its page."""

    code: str
    title: str
    severity: Severity
    page: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NotJudged:
    """Rules that were not judged, and why.

    ``kind`` is ``skipped`` (a fact is missing), ``broken`` (a bug of ours; the reason is its
    traceback), ``ignored`` (the project's pyproject.toml says so) or ``left out``.
    """

    codes: tuple[str, ...]
    reason: str
    kind: str = "skipped"


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What was examined, in numbers; None where nothing was read.

    ``torch`` is ``2.11.0+cu130``, empty where there is none. ``unread`` says what could not be
    read of the environment.
    """

    prefix: str
    executable: str = ""
    python: str = ""
    root: str = "/"
    project: str = ""
    torch: str = ""
    distributions: int | None = None
    shared_objects: int | None = None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorReport:
    """The whole answer.

    ``problems`` come worst first: the first is the root cause where it is an error or a
    warning. ``notes`` are worth knowing and no problem; ``unknown`` could not be judged for
    what they are about. ``rules`` are those judged. ``timings`` pair what was done with the
    seconds it took. ``aim`` names the GPUs judged for, and who said so.
    """

    subject: Subject
    problems: tuple[Problem, ...] = ()
    notes: tuple[Finding, ...] = ()
    unknown: tuple[Finding, ...] = ()
    plan: tuple[RepairStep, ...] = ()
    rules: tuple[RuleText, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
    timings: tuple[tuple[str, float], ...] = ()
    aim: str = ""

    @property
    def primary(self) -> Finding | None:
        """The one root cause, None where nothing is wrong."""
        return self.problems[0].cause if self.problems else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding, the root cause first."""
        judged = (one for problem in self.problems for one in problem.findings)
        return (*judged, *self.notes, *self.unknown)

    @property
    def seconds(self) -> float:
        """How long everything took."""
        return sum(seconds for _, seconds in self.timings)


@dataclass(frozen=True, kw_only=True, slots=True)
class Repair:
    """How far a repair plan was carried out.

    ``failed`` is the step that went wrong, ``reason`` what it said; ``rest`` was not tried.
    ``left`` are the steps that a person has to do.
    """

    done: tuple[RepairStep, ...] = ()
    failed: RepairStep | None = None
    reason: str = ""
    rest: tuple[RepairStep, ...] = ()
    left: tuple[RepairStep, ...] = ()
