"""The answer of `envbuild doctor` as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from envbuild import __version__
from envbuild.model.finding import Severity
from envbuild.render.location import ENVIRONMENT, PROJECT, location_of
from envbuild.render.words import finding_words

if TYPE_CHECKING:
    from envbuild.model.diagnosis import DoctorReport, NotJudged, RuleText, Subject
    from envbuild.model.finding import Finding
    from envbuild.render.location import Location

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
    Severity.UNKNOWN: "none",
}


def sarif_document(report: DoctorReport, *, exit_code: int) -> dict[str, object]:
    """Return the report as a SARIF log with one run."""
    driver = {
        "name": "envbuild",
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in report.rules],
    }
    invocation = {
        "executionSuccessful": exit_code in {0, 1},
        "exitCode": exit_code,
        "toolExecutionNotifications": [_notification(one) for one in report.not_judged],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "originalUriBaseIds": {
            PROJECT: {"description": {"text": "the folder of the project"}},
            ENVIRONMENT: {"description": {"text": "the folder of the environment"}},
        },
        "columnKind": "unicodeCodePoints",
        "results": _results(report),
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def failed_run(message: str, *, exit_code: int) -> dict[str, object]:
    """Return a SARIF log that says why nothing was examined."""
    invocation = {
        "executionSuccessful": False,
        "exitCode": exit_code,
        "toolExecutionNotifications": [{"level": "error", "message": {"text": message}}],
    }
    driver = {"name": "envbuild", "semanticVersion": __version__}
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": []}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def fingerprint(finding: Finding, subject: Subject) -> str:
    """Return what stays the same of a finding from run to run, wherever the environment lies."""
    tokens = sorted(token.replace(subject.prefix, "") for token in finding.brings)
    text = "\0".join([finding.code, finding.subject, *tokens])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _rule(rule: RuleText) -> dict[str, object]:
    page = rule.page or rule.title
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": page.partition("\n\n")[0]},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _results(report: DoctorReport) -> list[dict[str, object]]:
    numbers = {rule.code: number for number, rule in enumerate(report.rules)}
    explained = {
        id(finding): problem.cause.code
        for problem in report.problems
        for finding in problem.explains
    }
    return [
        _result(
            finding,
            report.subject,
            index=numbers.get(finding.code),
            explained_by=explained.get(id(finding)),
            is_primary=finding is report.primary,
        )
        for finding in report.findings
    ]


def _result(
    finding: Finding,
    subject: Subject,
    *,
    index: int | None,
    explained_by: str | None,
    is_primary: bool,
) -> dict[str, object]:
    hint = (f"hint: {finding.hint}",) if finding.hint else ()
    text = "\n".join([finding_words(finding), *finding.evidence, *hint])
    place = {} if index is None else {"ruleIndex": index}
    return {
        "ruleId": finding.code,
        **place,
        "kind": "open" if finding.severity is Severity.UNKNOWN else "fail",
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": _physical(location_of(finding, subject))}],
        "partialFingerprints": {"envbuild/v1": fingerprint(finding, subject)},
        "properties": {"primary": is_primary, "explainedBy": explained_by},
    }


def _physical(location: Location) -> dict[str, object]:
    return {"artifactLocation": {"uri": quote(location.path), "uriBaseId": location.base}}


def _notification(one: NotJudged) -> dict[str, object]:
    level = "error" if one.kind == "broken" else "note"
    text = f"{', '.join(one.codes)}: not judged ({one.kind}): {one.reason}"
    return {"level": level, "message": {"text": text}}
