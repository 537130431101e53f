"""`envbuild doctor`: what is read, judged and planned, over environments as literals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from diagnoses import (
    BROKEN,
    CU12,
    CU13,
    INCIDENT,
    PYTHON,
    SHARED_PATH,
    FakeExaminer,
    finding,
    giving,
    lock_file,
)

from envbuild.checks.rule import rule
from envbuild.commands.doctor import DoctorOptions, doctor, exit_code
from envbuild.commands.doctorfix import carry_out
from envbuild.core.gpus import parse_gpu
from envbuild.errors import InputError, WorldError
from envbuild.model.builds import Builds
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import RepairStep
from envbuild.model.host import Host
from envbuild.model.installed import Installed
from envbuild.model.layers import Aim, Layers
from envbuild.model.links import DeviceCodes, Links
from envbuild.ports import Facts, Reporter

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from envbuild.catalog.reader import Catalog
    from envbuild.checks.rule import Rule
    from envbuild.model.diagnosis import DoctorReport

    Examine: TypeAlias = Callable[..., DoctorReport]

AIMS: list[Aim] = []


@rule("EB301", "needs the loader's view", severity=Severity.ERROR)
def needs_links(links: Links, facts: Facts) -> Iterator[Finding]:
    """Find nothing."""
    assert links.examined == 123
    assert facts.date
    yield from ()


@rule("EB401", "needs GPUs", severity=Severity.ERROR)
def needs_aim(aim: Aim) -> Iterator[Finding]:
    """Keep the aim for the test to see."""
    AIMS.append(aim)
    yield from ()


@rule("EB501", "needs locks", severity=Severity.WARNING)
def needs_layers(layers: Layers) -> Iterator[Finding]:
    """Find nothing."""
    assert layers.directory
    yield from ()


@rule("EB601", "about building", severity=Severity.WARNING)
def about_building(host: Host) -> Iterator[Finding]:
    """Find nothing."""
    assert host.machine
    yield from ()


@rule("EB602", "about what is built", severity=Severity.WARNING)
def about_builds(builds: Builds, aim: Aim | None) -> Iterator[Finding]:
    """Say what is built and for what."""
    gpus = " ".join(map(str, aim.capabilities)) if aim else "nothing"
    yield Finding(
        code="EB602",
        severity=Severity.WARNING,
        subject="builds",
        message=f"builds {builds.named}, for {gpus}",
    )


@rule("EB901", "has a bug", severity=Severity.NOTE)
def has_a_bug(installed: Installed) -> Iterator[Finding]:
    """Fail."""
    raise ZeroDivisionError(installed.prefix)
    yield


QUIET = giving("EB101")
GPUS = '[tool.envbuild.targets.a]\ngpus = ["B200"]\n'


@pytest.fixture(name="examine")
def an_examination(catalog: Catalog) -> Examine:
    def examine(
        *rules: Rule, examiner: FakeExaminer | None = None, **options: object
    ) -> DoctorReport:
        ticks = itertools.count()
        AIMS.clear()
        return doctor(
            DoctorOptions(**options),  # type: ignore[arg-type]
            examiner=examiner or FakeExaminer(),  # type: ignore[arg-type]
            facts=catalog,
            rules=rules,
            clock=lambda: float(next(ticks)),
        )

    return examine


def test_the_incident(examine: Examine) -> None:
    report = examine(giving("EB201", *INCIDENT))
    assert report.primary == SHARED_PATH
    assert [one.code for one in report.problems[0].explains] == ["EB101", "EB301"]
    assert [one.cause.subject for one in report.problems[1:]] == [
        "torchaudio 2.7.0",
        "torchvision 0.22.0",
    ]
    removed, companions, back = (step.command for step in report.plan)
    assert removed == ("uv", "pip", "uninstall", "--python", PYTHON, CU12)
    assert companions[-2:] == ("torchaudio==2.11.0", "torchvision==0.26.0")
    assert back[-3:] == (CU13, "--no-deps", f"{CU13}==2.28.9")
    assert exit_code(report, fail_on="error") == 1


def test_a_healthy_environment(examine: Examine) -> None:
    report = examine(QUIET, needs_links)
    assert report.findings == ()
    assert report.plan == ()
    assert report.not_judged == ()
    assert exit_code(report, fail_on="note") == 0
    assert (report.subject.distributions, report.subject.shared_objects) == (6, 123)
    assert report.subject.torch == "2.11.0+cu130"


def test_only_what_is_needed_is_read_and_only_once(examine: Examine) -> None:
    examiner = FakeExaminer()
    examine(QUIET, examiner=examiner)
    assert examiner.asked == ["installed"]
    examiner = FakeExaminer()
    examine(needs_links, giving("EB201", SHARED_PATH), needs_links, examiner=examiner)
    assert examiner.asked == ["installed", "links", "ownership", "layers"]


@rule("EB402", "needs GPU code and GPUs", severity=Severity.ERROR)
def needs_code(codes: DeviceCodes, aim: Aim) -> Iterator[Finding]:
    """Keep the aim for the test to see."""
    assert codes.binaries == ()
    AIMS.append(aim)
    yield from ()


def test_what_takes_long_is_not_read_for_a_rule_that_lacks_another_fact(examine: Examine) -> None:
    examiner = FakeExaminer()
    report = examine(needs_code, examiner=examiner)
    assert examiner.asked == ["installed", "host"]
    assert report.not_judged[0].reason.startswith("no GPU was named")
    examiner = FakeExaminer()
    examine(needs_code, examiner=examiner, gpus=(parse_gpu("B200"),))
    assert examiner.asked == ["installed", "device_codes"]
    assert len(AIMS) == 1


def test_a_fact_that_cannot_be_read_skips_its_rules_alone(examine: Examine) -> None:
    report = examine(QUIET, needs_links, examiner=FakeExaminer(failing=("links",)))
    (skipped,) = report.not_judged
    assert (skipped.codes, skipped.reason) == (("EB301",), "the links cannot be read")
    assert [one.code for one in report.rules] == ["EB101"]


def test_nothing_judged_is_not_healthy(examine: Examine) -> None:
    report = examine(needs_links, needs_layers, examiner=FakeExaminer(failing=("links",)))
    assert exit_code(report, fail_on="never") == 3
    assert [one.reason for one in report.not_judged] == [
        "the links cannot be read",
        "no project is around the environment: `--project DIR`",
    ]


def test_a_rule_with_a_bug_hides_nothing(examine: Examine) -> None:
    report = examine(has_a_bug, QUIET)
    (broken,) = report.not_judged
    assert broken.kind == "broken"
    assert "ZeroDivisionError" in broken.reason
    assert exit_code(report, fail_on="error") == 70
    found = examine(has_a_bug, giving("EB201", SHARED_PATH))
    assert exit_code(found, fail_on="error") == 1


@pytest.mark.parametrize(
    ("severity", "codes"),
    [
        (Severity.ERROR, (1, 1, 1, 0)),
        (Severity.WARNING, (0, 1, 1, 0)),
        (Severity.NOTE, (0, 0, 1, 0)),
        (Severity.UNKNOWN, (0, 0, 0, 0)),
    ],
)
def test_fail_on(examine: Examine, severity: Severity, codes: tuple[int, ...]) -> None:
    report = examine(giving("EB101", finding("EB101", severity=severity)))
    levels = ("error", "warning", "note", "never")
    assert tuple(exit_code(report, fail_on=level) for level in levels) == codes


def test_rules_are_selected_by_the_beginning_of_their_codes(examine: Examine) -> None:
    report = examine(QUIET, needs_links, about_building, select=("EB1", "EB601"))
    assert [one.code for one in report.rules] == ["EB101", "EB601"]
    assert report.not_judged == ()
    with pytest.raises(InputError, match="found `EB2`, with which the code of no rule begins"):
        examine(QUIET, select=("EB2",))
    with pytest.raises(InputError, match="EB77"):
        examine(QUIET, ignore=("EB77",))


def test_building_is_judged_when_asked_for(examine: Examine) -> None:
    left = examine(QUIET, about_building)
    assert [(one.kind, one.codes) for one in left.not_judged] == [("left out", ("EB601",))]
    assert [one.code for one in examine(QUIET, about_building, build=True).rules] == [
        "EB101",
        "EB601",
    ]


def test_what_is_built_comes_from_the_project(examine: Examine) -> None:
    text = '[tool.envbuild.build]\nFlash_Attn = "source"\n'
    report = examine(about_builds, examiner=FakeExaminer(pyproject=text), build=True)
    assert [one.message for one in report.findings] == ["builds flash-attn, for nothing"]
    (finding,) = examine(about_builds, build=True, gpus=(parse_gpu("H100"),)).findings
    assert finding.message == "builds CUDA extensions, for 9.0"


def test_the_project_ignores_with_a_reason(examine: Examine) -> None:
    text = '[tool.envbuild.doctor]\nignore = { EB2 = "known, see the wiki" }\n'
    report = examine(giving("EB201", SHARED_PATH), QUIET, examiner=FakeExaminer(pyproject=text))
    assert report.findings == ()
    (ignored,) = report.not_judged
    assert (ignored.kind, ignored.codes, ignored.reason) == (
        "ignored",
        ("EB201",),
        "known, see the wiki",
    )
    left = examine(giving("EB201", SHARED_PATH), QUIET, ignore=("EB201",))
    assert left.findings == ()
    assert left.not_judged[0].reason == "--ignore"


def test_gpus_of_the_user_come_first(examine: Examine) -> None:
    named = (parse_gpu("RTX 5090"), parse_gpu("RTX 5080"), parse_gpu("H100"))
    examiner = FakeExaminer(pyproject=GPUS)
    report = examine(needs_aim, examiner=examiner, gpus=named)
    assert [str(one) for one in AIMS[0].capabilities] == ["12.0", "9.0"]
    assert report.aim == "12.0, 9.0 (--gpu)"
    assert examiner.asked == ["installed"]


def test_then_those_of_the_only_target(examine: Examine) -> None:
    report = examine(needs_aim, examiner=FakeExaminer(pyproject=GPUS))
    assert report.aim == "10.0 (target `a` of pyproject.toml)"


def test_a_gpu_of_a_target_that_is_not_known_is_told(examine: Examine) -> None:
    examiner = FakeExaminer(pyproject=GPUS.replace('"B200"', '"B200", "B2000"'))
    report = examine(needs_aim, examiner=examiner)
    assert report.aim == (
        "10.0 (target `a` of pyproject.toml; no GPU is known by the name `B2000`)"
    )
    alone = examine(needs_aim, QUIET, examiner=FakeExaminer(pyproject=GPUS.replace("B200", "B2")))
    assert alone.not_judged[0].reason.endswith("; no GPU is known by the name `B2`")


def test_of_several_targets_the_one_that_is_installed(examine: Examine) -> None:
    text = GPUS + '[tool.envbuild.targets.b]\ngpus = ["H100"]\n'
    lock = lock_file("lockfiles/pylock.b.toml", "torch 2.11.0", target="b")
    layers = Layers(directory="/app", managed=False, pylocks=(lock,))
    report = examine(needs_aim, examiner=FakeExaminer(pyproject=text, project=layers))
    assert report.aim == "9.0 (target `b` of pyproject.toml)"
    unclear = examine(needs_aim, examiner=FakeExaminer(pyproject=text))
    assert unclear.aim == ""


def test_then_those_of_the_machine_and_none_is_no_error(examine: Examine) -> None:
    host = Host(gpus=(parse_gpu("H100"),))
    assert examine(needs_aim, examiner=FakeExaminer(machine=host)).aim == "9.0 (this machine)"
    report = examine(needs_aim, QUIET)
    assert report.not_judged[0].reason == "no GPU was named and none was found: `--gpu NAME`"
    assert exit_code(report, fail_on="note") == 0


def test_the_time_of_each_part_is_told(examine: Examine) -> None:
    report = examine(needs_links, giving("EB201", SHARED_PATH))
    names = [what for what, _ in report.timings]
    assert names == ["packages", "symbols", "rules", "causes", "files", "locks", "plan"]
    assert report.seconds == sum(seconds for _, seconds in report.timings)


@dataclass
class FakeRunner:
    """Fails at the commands that hold a word."""

    fails: str = "\0"
    missing: str = "\0"
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, command: tuple[str, ...]) -> int:
        if self.missing in command:
            raise WorldError("`uv` was not found")
        self.ran.append(command)
        return 2 if self.fails in command else 0


class Notes(Reporter):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def step(*command: str, text: str = "") -> RepairStep:
    return RepairStep(reason="r", command=command, text=text)


PLAN = (step("uv", "a b"), step("uv", "c"), step("uv", "d"), step(text="unset X"))


def test_a_plan_is_carried_out_in_order() -> None:
    runner, notes = FakeRunner(), Notes()
    repair = carry_out(PLAN, runner=runner, reporter=notes)
    assert runner.ran == [("uv", "a b"), ("uv", "c"), ("uv", "d")]
    assert notes.said == ["$ uv 'a b'", "$ uv c", "$ uv d"]
    assert (repair.done, repair.failed, repair.left) == (PLAN[:3], None, PLAN[3:])


@pytest.mark.parametrize(
    ("runner", "reason"),
    [(FakeRunner(fails="c"), "exit status 2"), (FakeRunner(missing="c"), "`uv` was not found")],
)
def test_it_stops_at_the_first_failure(runner: FakeRunner, reason: str) -> None:
    repair = carry_out(PLAN, runner=runner, reporter=Notes())
    assert (repair.done, repair.failed, repair.rest) == (PLAN[:1], PLAN[1], PLAN[2:])
    assert repair.reason == reason


def test_it_waits_for_a_person_where_commands_follow() -> None:
    plan = (step("uv", "a"), step(text="edit the file"), step("uv", "b"))
    runner = FakeRunner()
    repair = carry_out(plan, runner=runner, reporter=Notes())
    assert runner.ran == [("uv", "a")]
    assert (repair.failed, repair.rest) == (plan[1], plan[2:])


def test_a_bare_torch_is_named_by_its_metadata(examine: Examine) -> None:
    bare = replace(BROKEN, torch=None)
    assert examine(QUIET, examiner=FakeExaminer(environment=bare)).subject.torch == "2.11.0"
