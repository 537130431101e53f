"""The answers of doctor: text, JSON, SARIF, annotations, and what is hidden for sharing."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from diagnoses import (
    BROKEN,
    CU12,
    CU13,
    INCIDENT,
    NCCL,
    OWNERSHIP,
    PREFIX,
    PYTHON,
    SITE,
    SYMBOLS,
    finding,
)
from jsonschema import Draft202012Validator

from envbuild.core.anonymous import anonymized, anonymous_text
from envbuild.core.cause import findings_to_mend, sort_findings
from envbuild.core.repair.plan import Ground, repair_plan
from envbuild.model.diagnosis import DoctorReport, NotJudged, Repair, RuleText, Subject
from envbuild.model.finding import Severity
from envbuild.model.fix import RepairStep
from envbuild.render.doctoranswer import (
    DoctorManner,
    render_diagnosis,
    render_page,
    render_rules,
)
from envbuild.render.doctortext import render_failed_repair, render_plan
from envbuild.render.failure import Failure, failure_document
from envbuild.render.location import ENVIRONMENT, PROJECT, location_of
from envbuild.render.sarif import failed_run, fingerprint, sarif_document

SUBJECT = Subject(
    prefix=PREFIX,
    executable=PYTHON,
    python="3.11.7",
    torch="2.11.0+cu130",
    distributions=29,
    shared_objects=123,
)
RULES = tuple(
    RuleText(code=code, title=f"title of {code}", severity=Severity.ERROR, page=f"Page.\n\n{code}")
    for code in ("EB101", "EB103", "EB201", "EB301")
)
NO_GPU = NotJudged(codes=("EB401", "EB402"), reason="no GPU was named")
HEALTHY = DoctorReport(subject=SUBJECT, rules=RULES, not_judged=(NO_GPU,), timings=(("x", 0.31),))
SORTED = sort_findings(INCIDENT)
SICK = replace(
    HEALTHY,
    problems=SORTED.problems,
    plan=repair_plan(
        findings_to_mend(SORTED.problems),
        Ground(installed=BROKEN, ownership=OWNERSHIP),
    ),
)
ODD = replace(
    SICK,
    subject=replace(SUBJECT, project="/app", executable="", root="/images/a"),
    notes=(finding("EB103", severity=Severity.NOTE),),
    unknown=(finding("EB301", severity=Severity.UNKNOWN, hint="look"),),
    not_judged=(
        NotJudged(
            codes=("EB901",), reason="Traceback\n  File\nZeroDivisionError: x", kind="broken"
        ),
        NotJudged(codes=("EB203",), reason="known", kind="ignored"),
    ),
)
EVERY = (HEALTHY, SICK, ODD, DoctorReport(subject=SUBJECT))


def text_of(report: DoctorReport) -> str:
    return render_diagnosis(report, DoctorManner(format="text"), exit_code=1)


def schema(path: Path) -> Draft202012Validator:
    content = json.loads(path.read_text("utf-8"))
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


DOCTOR = schema(Path(str(files("envbuild.render") / "data" / "doctor.schema.json")))
SARIF = schema(Path(__file__).parent / "data" / "sarif-2.1.0-part.schema.json")


def test_the_incident_in_text() -> None:
    assert (
        text_of(SICK)
        == f"""\
error EB201: {CU12} 2.26.2: two distributions own `{NCCL}`, on disk is {CU12} 2.26.2's
  {SITE}/{NCCL}
  {CU12} 2.26.2
  {CU13} 2.28.9

explains:
  error EB101: {CU12} 2.26.2: two builds of NCCL are installed
  error EB301: torch 2.11.0: 6 symbols are missing from libnccl.so.2, wanted NCCL 2.28.3 or newer
      ncclAlltoAll (since 2.28.3)
      ncclCommWindowDeregister (since 2.27.3)

repair:
  # 1. remove `{CU12} 2.26.2` (EB201)
  uv pip uninstall --python {PYTHON} {CU12}
  # 2. install `torchaudio==2.11.0`, `torchvision==0.26.0` (EB103)
  uv pip install --python {PYTHON} --reinstall-package torchaudio --reinstall-package torchvision \
torchaudio==2.11.0 torchvision==0.26.0
  # 3. bring back every file of `{CU13} 2.28.9` (EB201)
  uv pip install --python {PYTHON} --reinstall-package {CU13} --no-deps {CU13}==2.28.9

other problems:
  error EB103: torchaudio 2.7.0 is for torch 2.7.0, found torch 2.11.0
  error EB103: torchvision 0.22.0 is for torch 2.7.0, found torch 2.11.0

not judged: EB401, EB402: no GPU was named
examined {PYTHON}: 29 distributions, 123 shared objects, torch 2.11.0+cu130, 4 rules judged, \
2 skipped, 0.3 s
next: envbuild doctor --fix
""".replace(f"{CU12} 2.26.2: two distributions", "two distributions")
    )


def test_a_healthy_environment_is_one_line() -> None:
    assert text_of(HEALTHY) == (
        "healthy: 29 distributions, 123 shared objects, torch 2.11.0+cu130, 4 rules judged, "
        "2 skipped (EB401, EB402: no GPU was named), 0.3 s\n"
    )
    named = replace(HEALTHY, not_judged=(), aim="12.0 (--gpu)")
    assert text_of(named).endswith("4 rules judged, for 12.0 (--gpu), 0.3 s\n")


def test_what_is_not_judged_is_not_called_healthy() -> None:
    assert text_of(replace(HEALTHY, rules=())) == "not judged: EB401, EB402: no GPU was named\n"
    assert text_of(DoctorReport(subject=SUBJECT)) == "not judged: no rule was selected\n"


def test_notes_bugs_and_images_are_told() -> None:
    text = text_of(ODD)
    assert "repair: (in a container of the image)\n" in text
    assert "\nnotes:\n  note EB103: x 1: EB103 is wrong\n" in text
    assert "\nnot known:\n  unknown EB301: x 1: EB301 is wrong\n      hint: look\n" in text
    assert "a bug in envbuild: EB901 was not judged: ZeroDivisionError: x (" in text
    assert "not judged: EB203: ignored: known\n" in text
    assert f"examined {PREFIX}: " in text


def test_text_of_others_cannot_steer_the_terminal() -> None:
    evil = replace(SYMBOLS, subject="a\x1b[2J", evidence=("https://user:pw@host/x\x07",))
    text = text_of(replace(SICK, problems=sort_findings([evil]).problems))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "pw@" not in text


def test_every_line_of_a_repair_can_be_pasted() -> None:
    plan = (
        RepairStep(reason="r", command=("uv", "pip", "install", "numpy<2")),
        RepairStep(reason="set", text="export A='b c'"),
        RepairStep(reason="by hand", text="# ask\n# somebody"),
    )
    lines = [line.strip() for line in render_plan(plan).splitlines()[2:]]
    assert lines == [
        "# 1. r",
        "uv pip install 'numpy<2'",
        "# 2. set",
        "export A='b c'",
        "# 3. by hand",
        "# ask",
        "# somebody",
    ]
    assert render_plan(()) == ""


def test_a_repair_that_failed_says_what_is_left() -> None:
    one, two = RepairStep(reason="r", command=("uv", "a")), RepairStep(reason="s", text="unset X")
    text = render_failed_repair(Repair(failed=one, reason="exit status 2", rest=(two,)))
    assert text.splitlines() == [
        "error: the repair stopped at `uv a`: exit status 2",
        "  # still to do: r",
        "  uv a",
        "  # still to do: s",
        "  unset X",
        "",
    ]
    assert render_failed_repair(Repair(done=(one,))) == ""


@pytest.mark.parametrize("report", EVERY)
@pytest.mark.parametrize("repair", [None, Repair(), Repair(failed=SICK.plan[0], rest=SICK.plan)])
def test_json_fits_its_schema(report: DoctorReport, repair: Repair | None) -> None:
    text = render_diagnosis(report, DoctorManner(format="json"), exit_code=1, repair=repair)
    DOCTOR.validate(json.loads(text))


def test_json_tells_the_cause_apart() -> None:
    document = json.loads(render_diagnosis(SICK, DoctorManner(format="json"), exit_code=1))
    assert document["version"] == 1
    assert document["primary"]["code"] == "EB201"
    assert [one["code"] for one in document["consequences"]] == ["EB101", "EB301"]
    assert [one["cause"]["subject"] for one in document["others"]] == [
        "torchaudio 2.7.0",
        "torchvision 0.22.0",
    ]
    assert document["plan"][0]["command"][-1] == CU12
    assert not DOCTOR.is_valid({**document, "more": 1})
    assert not DOCTOR.is_valid({key: document[key] for key in document if key != "plan"})


def test_rules_and_failures_fit_the_schema_too() -> None:
    DOCTOR.validate(json.loads(render_rules(RULES, as_json=True)))
    DOCTOR.validate(json.loads(render_page(RULES[0], as_json=True)))
    DOCTOR.validate(failure_document(Failure(kind="input", message="m", exit_code=2)))


@pytest.mark.parametrize("report", EVERY)
def test_sarif_fits_the_specification(report: DoctorReport) -> None:
    SARIF.validate(sarif_document(report, exit_code=0))


def test_sarif_of_a_failure_fits_too() -> None:
    document: Any = failed_run("no environment", exit_code=2)
    SARIF.validate(document)
    assert document["runs"][0]["invocations"][0]["executionSuccessful"] is False


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("runs", 0, "results", 0, "level"), "fatal"),
        (("runs", 0, "results", 0, "message"), {}),
        (("runs", 0, "tool"), {}),
        (("version",), "2.0.0"),
    ],
)
def test_the_part_of_the_specification_is_strict(where: tuple[Any, ...], value: object) -> None:
    document: Any = json.loads(json.dumps(sarif_document(SICK, exit_code=1)))
    inner = document
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    assert not SARIF.is_valid(document)


def test_sarif_points_at_rules_and_files() -> None:
    document: Any = sarif_document(SICK, exit_code=1)
    (run,) = document["runs"]
    first, *others = run["results"]
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == first["ruleId"] == "EB201"
    (location,) = first["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {
        "uri": f"lib/python3.11/site-packages/{NCCL}",
        "uriBaseId": ENVIRONMENT,
    }
    assert first["properties"] == {"primary": True, "explainedBy": None}
    assert others[0]["properties"] == {"primary": False, "explainedBy": "EB201"}


def test_a_fingerprint_does_not_depend_on_the_place() -> None:
    cause = SICK.problems[0].cause
    moved = replace(cause, brings=(cause.brings[0].replace(PREFIX, "/b/venv"),), evidence=())
    elsewhere = replace(SUBJECT, prefix="/b/venv")
    assert fingerprint(cause, SUBJECT) == fingerprint(moved, elsewhere)
    assert fingerprint(cause, SUBJECT) != fingerprint(SYMBOLS, SUBJECT)


@pytest.mark.parametrize(
    ("tokens", "project", "place"),
    [
        (("lock:uv.lock",), "/app", (PROJECT, "uv.lock")),
        (("lock:/app/a/pylock.x.toml",), "/app", (PROJECT, "a/pylock.x.toml")),
        ((f"file:{PREFIX}/x.so",), "/app", (PROJECT, ".venv/x.so")),
        ((f"file:{PREFIX}/x.so",), "", (ENVIRONMENT, "x.so")),
        (("file:/usr/lib/x.so",), "/app", (PROJECT, "pyproject.toml")),
        (("dist:torch",), "", (ENVIRONMENT, "pyvenv.cfg")),
    ],
)
def test_where_a_finding_is(tokens: tuple[str, ...], project: str, place: tuple[str, str]) -> None:
    found = location_of(finding("EB1", brings=tokens), replace(SUBJECT, project=project))
    assert (found.base, found.path) == place


def test_annotations() -> None:
    report = replace(SICK, subject=replace(SUBJECT, project="/app"))
    text = render_diagnosis(report, DoctorManner(format="github", root="sub/"), exit_code=1)
    first, *_, last = text.splitlines()
    assert first.startswith(f"::error file=sub/.venv/lib/python3.11/site-packages/{NCCL},title=EB2")
    assert "title=EB201 root cause::two distributions own" in first
    assert "%0A" in first
    assert last.startswith("envbuild doctor: 3 problems (29 distributions")
    healthy = render_diagnosis(HEALTHY, DoctorManner(format="github"), exit_code=0)
    assert healthy.startswith("envbuild doctor: healthy (29 distributions")


def test_rules_are_listed_and_explained() -> None:
    assert render_rules(RULES, as_json=False).splitlines()[0].split() == [
        "EB101",
        "error",
        "title",
        "of",
        "EB101",
    ]
    assert render_page(RULES[0], as_json=False) == (
        "EB101 title of EB101 (error)\n\nPage.\n\nEB101\n"
    )


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("/home/ann/x", "~/x"),
        ("/home/annette/x", "/home/***/x"),
        ("/home/bob/x", "/home/***/x"),
        ("/data/ann/x", "/data/***/x"),
        ("/data/hannah/ann.txt", "/data/hannah/ann.txt"),
        ("on box7.corp.example", "on ***"),
        ("on box7", "on ***"),
        ("box70", "box70"),
        ("https://u:p@pypi.corp.example/simple", "https://***/simple"),
        ("https://download.pytorch.org/whl/cu128", "https://download.pytorch.org/whl/cu128"),
        ("https://evilpypi.org/simple", "https://***/simple"),
        ("token hf_" + "a" * 30, "token ***"),
        ("ghp_" + "a" * 36, "***"),
        ("torch 2.11.0", "torch 2.11.0"),
    ],
)
def test_what_is_hidden(text: str, hidden: str) -> None:
    who = {"home": "/home/ann", "user": "ann", "host": "box7.corp.example"}
    assert anonymous_text(text, **who) == hidden


def test_a_whole_report_is_hidden() -> None:
    report = replace(
        SICK, subject=replace(SUBJECT, prefix="/home/ann/.venv", unread=("/home/ann",))
    )
    clean = anonymized(report, home="/home/ann")
    assert clean.subject.prefix == "~/.venv"
    assert clean.subject.unread == ("~",)
    assert clean.timings == report.timings
    assert clean.problems == report.problems
    assert anonymized(None) is None
