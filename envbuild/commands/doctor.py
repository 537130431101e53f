"""`envbuild doctor`: read an environment, judge it, name the root cause and the repair."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from envbuild.checks.rule import Broken, Judged, Skipped, judge
from envbuild.commands.evidence import Evidence
from envbuild.core.cause import findings_to_mend, sort_findings
from envbuild.errors import InputError
from envbuild.model.diagnosis import DoctorReport, NotJudged, RuleText, Subject
from envbuild.model.finding import Severity
from envbuild.model.installed import Ownership
from envbuild.model.layers import Aim, Layers
from envbuild.model.links import Links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from envbuild.checks.rule import Outcome, Rule
    from envbuild.model.diagnosis import Problem
    from envbuild.model.fix import RepairStep
    from envbuild.model.target import Gpu
    from envbuild.ports import Examiner, Facts

_BUILD = "EB6"
_CAN_FAIL = {
    "error": (Severity.ERROR,),
    "warning": (Severity.ERROR, Severity.WARNING),
    "note": (Severity.ERROR, Severity.WARNING, Severity.NOTE),
    "never": (),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorOptions:
    """What to judge.

    ``select`` and ``ignore`` are codes or the beginnings of codes; nothing selected means every
    rule, those about building from source only with ``build``.
    """

    gpus: tuple[Gpu, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    build: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    rules: tuple[Rule, ...]
    not_judged: tuple[NotJudged, ...]


def doctor(
    options: DoctorOptions,
    *,
    examiner: Examiner,
    facts: Facts,
    rules: tuple[Rule, ...],
    clock: Callable[[], float] = time.perf_counter,
) -> DoctorReport:
    """Examine one environment; nothing of it is imported, run or changed.

    Only what the selected rules ask for is read. Raises InputError where there is no
    environment, or where a code means no rule.
    """
    _refuse_unknown((*options.select, *options.ignore), rules)
    evidence = Evidence(examiner, facts, gpus=options.gpus, clock=clock)
    choice = _choose(rules, options, evidence.table.ignore)
    given = _given(choice.rules, evidence)
    outcomes = evidence.timed("rules", lambda: judge(choice.rules, given))
    findings = [one for done in outcomes if isinstance(done, Judged) for one in done.findings]
    found = evidence.timed("causes", lambda: sort_findings(findings))
    plan = evidence.timed("plan", lambda: _plan(found.problems, evidence))
    return DoctorReport(
        subject=_subject(evidence, given),
        problems=found.problems,
        notes=found.notes,
        unknown=found.unknown,
        plan=plan,
        rules=tuple(rule_text(done.rule) for done in outcomes if isinstance(done, Judged)),
        not_judged=(*_not_judged(outcomes, evidence), *choice.not_judged),
        timings=evidence.timings,
        aim=_aim_words(given.get(Aim)),
    )


def exit_code(report: DoctorReport, *, fail_on: str) -> int:
    """Return 1 for findings of ``error``, ``warning`` or ``note`` and worse; none for ``never``.

    Without any it is 70 where a rule has a bug, and 3 where nothing could be judged.
    """
    if any(finding.severity in _CAN_FAIL[fail_on] for finding in report.findings):
        return 1
    if any(one.kind == "broken" for one in report.not_judged):
        return 70
    return 0 if report.rules else 3


def rule_text(rule: Rule) -> RuleText:
    """Return a rule as it is shown."""
    return RuleText(code=rule.code, title=rule.title, severity=rule.severity, page=rule.page)


def _refuse_unknown(prefixes: tuple[str, ...], rules: tuple[Rule, ...]) -> None:
    for prefix in prefixes:
        if not any(rule.code.startswith(prefix) for rule in rules):
            raise InputError(
                f"found `{prefix}`, with which the code of no rule begins",
                hint="`envbuild rules` lists them",
            )


def _choose(
    rules: tuple[Rule, ...], options: DoctorOptions, reasons: tuple[tuple[str, str], ...]
) -> _Choice:
    """Choose the rules to judge, and say why the others are not."""
    taken: list[Rule] = []
    left: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        why = _why_not(rule.code, options, reasons)
        if why is None:
            taken.append(rule)
        elif why[1]:
            left.setdefault(why, []).append(rule.code)
    notes = (NotJudged(codes=tuple(c), reason=w[1], kind=w[0]) for w, c in left.items())
    return _Choice(rules=tuple(taken), not_judged=tuple(notes))


def _why_not(
    code: str, options: DoctorOptions, reasons: tuple[tuple[str, str], ...]
) -> tuple[str, str] | None:
    """Return the kind and the reason; an empty reason is not worth a word."""
    if options.select:
        if not code.startswith(options.select):
            return ("left out", "")
    elif code.startswith(_BUILD) and not options.build:
        return ("left out", "about building from source: `--build`")
    if options.ignore and code.startswith(options.ignore):
        return ("left out", "--ignore")
    ignored = next((reason for prefix, reason in reasons if code.startswith(prefix)), None)
    return None if ignored is None else ("ignored", ignored)


def _given(rules: tuple[Rule, ...], evidence: Evidence) -> dict[type, object]:
    """Read what the rules need, and nothing for those alone that lack another fact."""
    judged = [rule for rule in rules if evidence.first_absent(rule.required) is None]
    return evidence.gather(kind for rule in judged for _, kind in rule.needs)


def _not_judged(outcomes: Iterable[Outcome], evidence: Evidence) -> tuple[NotJudged, ...]:
    skipped: dict[str, list[str]] = {}
    broken = []
    for done in outcomes:
        if isinstance(done, Broken):
            broken.append(NotJudged(codes=(done.rule.code,), reason=done.traceback, kind="broken"))
        elif isinstance(done, Skipped):
            absent = evidence.first_absent(done.rule.required)
            reason = done.reason if absent is None else evidence.why_absent(absent)
            skipped.setdefault(reason, []).append(done.rule.code)
    return (*broken, *(NotJudged(codes=tuple(c), reason=why) for why, c in skipped.items()))


def _plan(problems: tuple[Problem, ...], evidence: Evidence) -> tuple[RepairStep, ...]:
    findings = findings_to_mend(problems)
    if not any(finding.fixes for finding in findings):
        return ()
    from envbuild.core.repair.plan import Ground, repair_plan  # noqa: PLC0415 - most have no need of it

    ground = Ground(
        installed=evidence.installed,
        ownership=evidence.get(Ownership),
        layers=evidence.get(Layers),
    )
    return repair_plan(findings, ground)


def _subject(evidence: Evidence, given: dict[type, object]) -> Subject:
    installed = evidence.installed
    torch = installed.find("torch")
    links, ownership = given.get(Links), given.get(Ownership)
    objects = links.examined if isinstance(links, Links) else None
    if objects is None and isinstance(ownership, Ownership):
        objects = len(ownership.owners) + len(ownership.unowned)
    subject = Subject(
        prefix=installed.prefix,
        executable=installed.executable,
        python=installed.python,
        root=installed.root,
        project=evidence.project,
        distributions=len(installed.distributions),
        shared_objects=objects,
        unread=installed.skipped,
    )
    if installed.torch is not None:
        return replace(subject, torch=installed.torch.version)
    return replace(subject, torch=torch.version if torch else "")


def _aim_words(aim: object) -> str:
    if not isinstance(aim, Aim):
        return ""
    return f"{', '.join(str(one) for one in aim.capabilities)} ({aim.source})"
