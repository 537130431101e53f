"""The answer of `envbuild lock` as JSON; `data/lock.schema.json` describes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.model.stack import IndexPin, PypiPin
from envbuild.render.findingjson import finding_values
from envbuild.render.nextstep import Invocation, next_step
from envbuild.render.rows import locked_version, notes_of, worst_first

if TYPE_CHECKING:
    from envbuild.model.lock import Artifact, Pinned, TargetLock
    from envbuild.model.report import LockReport, TargetReport
    from envbuild.model.stack import Candidate, Pin, Rejection, SourceBuild

VERSION = 1


def report_document(
    report: LockReport, *, exit_code: int, invocation: Invocation | None = None
) -> dict[str, object]:
    """Return the report as plain values; the order of the keys never changes."""
    return {
        "version": VERSION,
        "command": "lock",
        "outcome": report.outcome.value,
        "exit_code": exit_code,
        "incomplete": report.incomplete,
        "layer": report.layer.value,
        "default_target": report.default_target or None,
        "source": report.source,
        "targets": [_target(target) for target in report.targets],
        "changes": [
            {"file": change.file, "target": change.target or None, "text": change.text}
            for change in report.changes
        ],
        "files": list(report.files),
        "next": next_step(report, invocation or Invocation()),
    }


def render_json(document: dict[str, object]) -> str:
    """Return a document as text, free of credentials."""
    return json.dumps(_redacted(document), indent=2, ensure_ascii=False) + "\n"


def _redacted(value: object) -> object:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    if isinstance(value, dict):
        return {key: _redacted(item) for key, item in value.items()}
    return value


def _target(report: TargetReport) -> dict[str, object]:
    lock = report.lock
    return {
        "name": report.target,
        "python": lock.python,
        "platform": lock.platform,
        "gpus": list(lock.gpus),
        "capabilities": list(lock.capabilities),
        "cuda": lock.cuda,
        "torch": _candidate(report.stack.candidate),
        "pins": [_pin(pin, lock) for pin in report.stack.pins],
        "packages": [_package(package) for package in lock.packages],
        "unhashed": [name for name, _ in lock.incomplete],
        "builds": [_build(build) for build in lock.builds or report.stack.builds],
        "findings": [finding_values(finding) for finding in worst_first(report.findings)],
        "notes": list(notes_of(report)),
        "rejections": [_rejection(rejection) for rejection in report.rejections],
    }


def _candidate(candidate: Candidate) -> dict[str, object]:
    return {
        "label": candidate.label,
        "version": candidate.torch.version,
        "accelerator": candidate.accelerator,
        "index": candidate.torch.page.url,
        "filename": candidate.torch.filename,
    }


def _pin(pin: Pin, lock: TargetLock) -> dict[str, object]:
    kind = {IndexPin: "index", PypiPin: "pypi"}.get(type(pin), "source")
    return {
        "kind": kind,
        "name": pin.project,
        "version": locked_version(pin, lock),
        "replaces": pin.replaces if isinstance(pin, PypiPin) else None,
        "index": pin.wheel.page.url if isinstance(pin, IndexPin) else None,
        "reason": pin.reason,
    }


def _package(package: Pinned) -> dict[str, object]:
    return {
        "name": package.name,
        "version": package.version,
        "index": package.index,
        "artifacts": [_artifact(artifact) for artifact in package.artifacts],
    }


def _artifact(artifact: Artifact) -> dict[str, object]:
    return {
        "filename": artifact.filename,
        "url": artifact.url,
        "sha256": artifact.sha256,
        "size": artifact.size,
    }


def _build(build: SourceBuild) -> dict[str, object]:
    return {
        "name": build.project,
        "version": build.version,
        "path": build.path,
        "git": build.git,
        "url": build.url,
        "sha256": build.sha256,
        "requires": list(build.requires),
        "reason": build.reason,
    }


def _rejection(rejection: Rejection) -> dict[str, object]:
    return {
        "candidate": _candidate(rejection.candidate),
        "refusals": [
            {"project": refusal.project, "reason": refusal.reason, "excludes": refusal.excludes}
            for refusal in rejection.refusals
        ],
    }
