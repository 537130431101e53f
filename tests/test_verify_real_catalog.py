"""The proof on the facts that come with envbuild: an incident, and the set that ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakes import candidate, linux, pinned, target

from envbuild.catalog.reader import Catalog
from envbuild.core.verify.proof import verify
from envbuild.model.finding import Severity
from envbuild.model.lock import TargetLock
from envbuild.model.stack import Stack

if TYPE_CHECKING:
    from envbuild.model.finding import Finding
    from envbuild.model.lock import Pinned

CU128 = "https://download.pytorch.org/whl/cu128"
BLACKWELL = target("12.0")


def nvidia(requirement: str) -> Pinned:
    name, _, version = requirement.partition("==")
    tags = "py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64"
    return pinned(requirement, f"{name.replace('-', '_')}-{version}-{tags}.whl")


def findings(*packages: Pinned, cuda: str = "12.8") -> tuple[Finding, ...]:
    stack = Stack(candidate=candidate("cu128", "2.7.0+cu128"), pins=())
    lock = TargetLock(
        target="t", python="3.11", platform="linux-x86_64", packages=packages, cuda=cuda
    )
    return verify(stack, lock, BLACKWELL, Catalog.load())


def codes(found: tuple[Finding, ...], severity: Severity) -> dict[str, str]:
    return {f.code: f.message for f in found if f.severity is severity}


def test_the_set_that_ended_the_incident_has_no_error() -> None:
    found = findings(
        pinned("torch==2.7.0+cu128", index=CU128),
        pinned("torchvision==0.22.0+cu128", index=CU128),
        pinned("torchaudio==2.7.0+cu128", index=CU128),
        pinned("torch-scatter==2.1.2+pt27cu128"),
        pinned("spconv-cu126==2.3.8", linux("spconv_cu126-2.3.8")),
        pinned("cumm-cu126==0.7.11", linux("cumm_cu126-0.7.11")),
        nvidia("nvidia-nccl-cu12==2.26.2"),
        nvidia("nvidia-cudnn-cu12==9.7.1.26"),
    )
    assert codes(found, Severity.ERROR) == {}
    assert (
        "sm_120 runs spconv-cu126 2.3.8 only by compiling" in codes(found, Severity.NOTE)["EB402"]
    )
    assert "torch-scatter" in codes(found, Severity.UNKNOWN)["EB401"]


def test_the_incident_itself_is_refused_for_each_of_its_causes() -> None:
    found = findings(
        pinned("torch==2.11.0"),
        pinned("torchvision==0.22.0+cu128", index=CU128),
        pinned("torchaudio==2.7.0+cu128", index=CU128),
        nvidia("nvidia-nccl-cu12==2.26.2"),
        nvidia("nvidia-nccl-cu13==2.28.9"),
        cuda="13.0",
    )
    errors = codes(found, Severity.ERROR)
    assert errors.keys() >= {"EB101", "EB102", "EB103", "EB301"}
    assert errors["EB301"].startswith("torch 2.11.0 needs ")
    assert "`nvidia-nccl-cu12` 2.26.2 lacks, the newest came with 2.28.3" in errors["EB301"]


def test_torch_of_pypi_has_no_code_for_the_card() -> None:
    found = findings(pinned("torch==2.7.0"), cuda="12.6")
    assert codes(found, Severity.ERROR)["EB401"] == "torch 2.7.0 has no code for sm_120"


def test_torchaudio_2_11_1_is_refused_beside_torch_2_11() -> None:
    found = findings(pinned("torch==2.11.0"), pinned("torchaudio==2.11.1"), cuda="13.0")
    assert "torchaudio 2.11.1 works with torch >=2.13" in codes(found, Severity.ERROR)["EB103"]
