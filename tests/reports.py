"""A lock report with something of everything, for the tests of what is printed."""

from __future__ import annotations

from dataclasses import replace

from envbuild.model.cuda import CudaVersion
from envbuild.model.finding import Finding, Severity
from envbuild.model.lock import Artifact, Pinned, TargetLock
from envbuild.model.project import Layer
from envbuild.model.report import Change, LockReport, Outcome, TargetReport
from envbuild.model.stack import (
    Candidate,
    IndexPin,
    PypiPin,
    Refusal,
    Rejection,
    SourceBuild,
    Stack,
)
from envbuild.model.wheel import IndexPage, PageKind, WheelFile

PYTORCH = "https://download.pytorch.org/whl/cu128"
PYG = "https://data.pyg.org/whl/torch-2.7.0+cu128.html"
PYPI = "https://pypi.org/simple"


def wheel(project: str, version: str, *, url: str = PYTORCH) -> WheelFile:
    filename = f"{project.replace('-', '_')}-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"
    page = IndexPage(kind=PageKind.PYTORCH, key="cu128", name="pytorch-cu128", url=url)
    return WheelFile(
        project=project, version=version, filename=filename, url=f"{url}/{filename}", page=page
    )


def candidate(version: str, cuda: str | None) -> Candidate:
    return Candidate(torch=wheel("torch", version), cuda=CudaVersion.parse(cuda) if cuda else None)


def pinned(name: str, version: str, *, index: str = PYPI, sha256: str | None = "a" * 64) -> Pinned:
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    artifact = Artifact(
        filename=filename, url=f"https://files.example/{filename}", sha256=sha256, size=1000
    )
    return Pinned(name=name, version=version, index=index, artifacts=(artifact,))


POINTOPS = SourceBuild(project="pointops", path="libs/pointops", reason="only a folder has it")

STACK = Stack(
    candidate=candidate("2.7.0+cu128", "12.8"),
    pins=(
        IndexPin(wheel=wheel("torchvision", "0.22.0+cu128"), reason="released with torch 2.7.0"),
        IndexPin(wheel=wheel("torch-scatter", "2.1.2+pt27cu128", url=PYG)),
        PypiPin(
            project="spconv-cu126",
            specifier="==2.3.8",
            replaces="spconv",
            reason="the newest CUDA 12 build",
        ),
        POINTOPS,
    ),
    notes=("torch 2.7.0 has no code for sm_121",),
)

LOCK = TargetLock(
    target="cu128",
    python="3.11",
    platform="linux-x86_64",
    packages=(
        pinned("numpy", "2.2.6"),
        pinned("spconv-cu126", "2.3.8"),
        pinned("torch", "2.7.0+cu128", index=PYTORCH),
        pinned("torch-scatter", "2.1.2+pt27cu128", index=PYG),
        pinned("torchvision", "0.22.0+cu128", index=PYTORCH),
    ),
    gpus=("RTX PRO 2000 Blackwell", "B200"),
    capabilities=("12.0", "10.0"),
    cuda="12.8",
    builds=(POINTOPS,),
)

NO_CODE = "it has no code for sm_120 and no PTX that could become it"
REJECTIONS = (
    Rejection(
        candidate=candidate("2.7.1+cu128", "12.8"),
        refusals=(
            Refusal(project="torch", reason="torch 2.7.1 is outside `==2.7.0`", excludes="torch"),
        ),
    ),
    Rejection(
        candidate=candidate("2.7.0+cu126", "12.6"),
        refusals=(Refusal(project="torch", reason=NO_CODE, excludes="gpus"),),
    ),
    Rejection(
        candidate=candidate("2.7.0+cu118", "11.8"),
        refusals=(
            Refusal(project="torch", reason=NO_CODE, excludes="gpus"),
            Refusal(project="spconv", reason="no wheel for cp311 was built with CUDA 11.8"),
        ),
    ),
    Rejection(
        candidate=candidate("2.6.0+cu126", "12.6"),
        refusals=(Refusal(project="torch", reason=NO_CODE, excludes="gpus"),),
    ),
)

FINDINGS = (
    Finding(
        code="EB402",
        severity=Severity.UNKNOWN,
        subject="spconv-cu126 2.3.8",
        message="its GPU code is not known",
    ),
    Finding(
        code="EB401",
        severity=Severity.WARNING,
        subject="torch-scatter 2.1.2+pt27cu128",
        message="has PTX but no machine code for 12.0: the first start is slow",
        evidence=("SASS 7.5, 8.0, 9.0", "PTX 9.0"),
        hint="nothing to do, or build it from source",
    ),
)

TARGET = TargetReport(
    target="cu128",
    stack=STACK,
    lock=LOCK,
    rejections=REJECTIONS,
    findings=FINDINGS,
    notes=("pins `torch` through peft",),
)

CPU_TARGET = TargetReport(
    target="cpu",
    stack=Stack(candidate=candidate("2.7.0+cpu", None), pins=()),
    lock=TargetLock(
        target="cpu",
        python="3.11",
        platform="linux-x86_64",
        packages=(pinned("torch", "2.7.0+cpu"),),
    ),
)

REPORT = LockReport(
    outcome=Outcome.WRITTEN,
    source="index pages: embedded catalog of 2026-11-20",
    targets=(TARGET, CPU_TARGET),
    changes=(
        Change(
            file="lockfiles/pylock.cu128.toml",
            target="cu128",
            text="torch 2.6.0+cu126 becomes 2.7.0+cu128",
        ),
        Change(file="lockfiles/pylock.cu128.toml", target="cu128", text="numpy 2.2.6 is new"),
        Change(file="pyproject.toml", text="[tool.uv] constraint-dependencies: 3 pins"),
    ),
    files=("lockfiles/pylock.cu128.toml", "lockfiles/requirements.cu128.txt", "uv.lock"),
    layer=Layer.PROJECT,
    default_target="cu128",
)


def unhashed(report: LockReport = REPORT) -> LockReport:
    """Return the report with two packages of the first target that lack a hash."""
    first, *others = report.targets
    packages = tuple(
        pinned(package.name, package.version, index=package.index, sha256=None)
        if package.name.startswith("torch-") or package.name == "numpy"
        else package
        for package in first.lock.packages
    )
    lock = replace(first.lock, packages=packages)
    return replace(report, targets=(replace(first, lock=lock), *others))


def with_finding(finding: Finding, report: LockReport = REPORT) -> LockReport:
    """Return the report with one more finding in its first target."""
    first, *others = report.targets
    more = replace(first, findings=(*first.findings, finding))
    return replace(report, targets=(more, *others))


ERROR = Finding(
    code="EB101",
    severity=Severity.ERROR,
    subject="nvidia-nccl-cu12 2.26.2",
    message="found beside nvidia-nccl-cu13, wanted one of them",
    hint="pin the package that brings it",
)
