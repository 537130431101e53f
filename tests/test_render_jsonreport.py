"""The JSON answer: its form by the schema, its content by example."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from reports import ERROR, REPORT, unhashed, with_finding

from envbuild.core.gpus import known_gpus
from envbuild.model.project import Layer
from envbuild.model.report import Outcome
from envbuild.render.failure import Failure, failure_document, interrupted
from envbuild.render.gpus import gpus_document
from envbuild.render.jsonreport import render_json, report_document

if TYPE_CHECKING:
    from envbuild.model.report import LockReport


def validator(name: str) -> Draft202012Validator:
    text = (files("envbuild.render") / "data" / f"{name}.schema.json").read_text("utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


LOCK = validator("lock")


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("layer", Layer)
@pytest.mark.parametrize("base", [REPORT, unhashed(), with_finding(ERROR)])
def test_every_report_fits_the_schema(outcome: Outcome, layer: Layer, base: LockReport) -> None:
    document = report_document(replace(base, outcome=outcome, layer=layer), exit_code=1)
    LOCK.validate(json.loads(render_json(document)))


@pytest.mark.parametrize("kind", ["input", "refused", "world", "bug", "interrupted"])
def test_every_failure_fits_both_schemas(kind: str) -> None:
    document = failure_document(Failure(kind=kind, message="m", exit_code=3))
    LOCK.validate(document)
    validator("gpus").validate(document)


def test_the_gpus_fit_the_schema() -> None:
    document = gpus_document(known_gpus())
    validator("gpus").validate(document)


@pytest.mark.parametrize("missing", ["version", "targets", "next"])
def test_the_schema_is_strict(missing: str) -> None:
    document = report_document(REPORT, exit_code=0)
    assert not LOCK.is_valid({key: document[key] for key in document if key != missing})
    assert not LOCK.is_valid({**document, "more": 1})


def test_order_of_the_keys() -> None:
    document = json.loads(render_json(report_document(REPORT, exit_code=0)))
    assert list(document) == [
        "version",
        "command",
        "outcome",
        "exit_code",
        "incomplete",
        "layer",
        "default_target",
        "source",
        "targets",
        "changes",
        "files",
        "next",
    ]
    assert list(document["targets"][0])[:4] == ["name", "python", "platform", "gpus"]


def test_content_of_a_target() -> None:
    document = json.loads(render_json(report_document(unhashed(), exit_code=0)))
    target = document["targets"][0]
    assert document["incomplete"] is True
    assert target["unhashed"] == ["numpy", "torch-scatter"]
    assert target["pins"][2] == {
        "kind": "pypi",
        "name": "spconv-cu126",
        "version": "2.3.8",
        "replaces": "spconv",
        "index": None,
        "reason": "the newest CUDA 12 build",
    }
    assert target["torch"]["accelerator"] == "cu128"
    assert [pin["kind"] for pin in target["pins"]] == ["index", "index", "pypi", "source"]
    assert [finding["severity"] for finding in target["findings"]] == ["warning", "unknown"]
    assert len(target["rejections"]) == 4


def test_credentials_are_removed_and_the_rest_stays_json() -> None:
    source = 'from https://me:secret@mirror.example/x?token=abc" and "more\\'
    text = render_json(report_document(replace(REPORT, source=source), exit_code=0))
    assert "secret" not in text
    assert "token=abc" not in text
    assert json.loads(text)["source"].startswith("from https://mirror.example/x?")


def test_an_interruption() -> None:
    assert failure_document(interrupted()) == {
        "version": 1,
        "error": {
            "kind": "interrupted",
            "message": "interrupted: nothing was written",
            "hint": None,
            "exit_code": 130,
        },
    }
