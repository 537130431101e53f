"""Findings, environments and worlds of `envbuild doctor` as literals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from envbuild.checks.rule import rule
from envbuild.errors import WorldError
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Reinstall, Remove
from envbuild.model.host import Host
from envbuild.model.installed import (
    Distribution,
    EnvironmentKind,
    Installed,
    OnDisk,
    Ownership,
    RecordEntry,
    SharedPath,
    TorchText,
)
from envbuild.model.layers import LockedVersion, LockFile
from envbuild.model.links import DeviceCodes, Links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from envbuild.checks.rule import Rule
    from envbuild.model.layers import Layers

PREFIX = "/app/.venv"
SITE = f"{PREFIX}/lib/python3.11/site-packages"
PYTHON = f"{PREFIX}/bin/python"
NCCL = "nvidia/nccl/lib/libnccl.so.2"
CU12, CU13 = "nvidia-nccl-cu12", "nvidia-nccl-cu13"


def distribution(label: str, **changes: object) -> Distribution:
    name, _, version = label.partition(" ")
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    base = Distribution(name=name, version=version, site=SITE, info=info, installer="uv")
    return replace(base, **changes)  # type: ignore[arg-type]


def environment(*labels: str | Distribution, **changes: object) -> Installed:
    found = tuple(distribution(one) if isinstance(one, str) else one for one in labels)
    base = Installed(
        root="/",
        prefix=PREFIX,
        executable=PYTHON,
        python="3.11.7",
        kind=EnvironmentKind.VENV,
        sites=(SITE,),
        own_sites=(SITE,),
        distributions=found,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def shared(path: str, *labels: str, winner: str | None = None) -> SharedPath:
    owners = tuple((label, RecordEntry(path=path, sha256=label, size=1)) for label in labels)
    return SharedPath(path=path, owners=owners, disk=OnDisk(size=1), winner=winner)


def lock_file(path: str, *labels: str, target: str = "") -> LockFile:
    pairs = (label.partition(" ") for label in labels)
    packages = tuple(LockedVersion(name=name, version=version) for name, _, version in pairs)
    return LockFile(path=path, packages=packages, target=target)


def finding(code: str, subject: str = "x 1", **changes: object) -> Finding:
    base = Finding(code=code, severity=Severity.ERROR, subject=subject, message=f"{code} is wrong")
    return replace(base, **changes)  # type: ignore[arg-type]


BROKEN = environment(
    "torch 2.11.0",
    "torchvision 0.22.0",
    "torchaudio 2.7.0",
    f"{CU12} 2.26.2",
    f"{CU13} 2.28.9",
    "numpy 2.3.0",
    torch=TorchText(version="2.11.0+cu130", cuda="13.0"),
)
OWNERSHIP = Ownership(
    shared=(shared(NCCL, f"{CU12} 2.26.2", f"{CU13} 2.28.9", winner=f"{CU12} 2.26.2"),),
    owners=((f"{SITE}/{NCCL}", f"{CU12} 2.26.2"),),
)

SHARED_PATH = finding(
    "EB201",
    f"{CU12} 2.26.2",
    message=f"two distributions own `{NCCL}`, on disk is {CU12} 2.26.2's",
    evidence=(f"{SITE}/{NCCL}", f"{CU12} 2.26.2", f"{CU13} 2.28.9"),
    fixes=(Remove(names=(CU12,)), Reinstall(names=(CU13,))),
    brings=(f"file:{SITE}/{NCCL}",),
)
TWINS = finding(
    "EB101",
    f"{CU12} 2.26.2",
    message="two builds of NCCL are installed",
    fixes=(Remove(names=(CU12,)),),
    brings=(f"dist:{CU12}",),
    because=(f"file:{SITE}/{NCCL}",),
)
SYMBOLS = finding(
    "EB301",
    "torch 2.11.0",
    message="6 symbols are missing from libnccl.so.2, wanted NCCL 2.28.3 or newer",
    evidence=("ncclAlltoAll (since 2.28.3)", "ncclCommWindowDeregister (since 2.27.3)"),
    fixes=(Install(requirements=(f"{CU13}>=2.28.3",)),),
    because=(f"file:{SITE}/{NCCL}",),
    brings=("import:torch",),
)
VISION = finding(
    "EB103",
    "torchvision 0.22.0",
    message="torchvision 0.22.0 is for torch 2.7.0, found torch 2.11.0",
    fixes=(Install(requirements=("torchvision==0.26.0",)),),
    brings=("dist:torchvision", "import:torchvision"),
)
AUDIO = finding(
    "EB103",
    "torchaudio 2.7.0",
    message="torchaudio 2.7.0 is for torch 2.7.0, found torch 2.11.0",
    fixes=(Install(requirements=("torchaudio==2.11.0",)),),
    brings=("dist:torchaudio", "import:torchaudio"),
)
INCIDENT = (VISION, SYMBOLS, AUDIO, TWINS, SHARED_PATH)


@dataclass
class FakeExaminer:
    """An environment as literals; ``asked`` is what was read, in order."""

    environment: Installed = BROKEN
    files: Ownership = OWNERSHIP
    project: Layers | None = None
    pyproject: str | None = None
    machine: Host = field(default_factory=Host)
    failing: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    def installed(self) -> Installed:
        return self._note("installed", self.environment)

    def ownership(self, installed: Installed) -> Ownership:
        assert installed is self.environment
        return self._note("ownership", self.files)

    def links(self, installed: Installed) -> Links:
        assert installed is self.environment
        return self._note("links", Links(examined=123))

    def device_codes(self, installed: Installed) -> DeviceCodes:
        assert installed is self.environment
        return self._note("device_codes", DeviceCodes())

    def layers(self, installed: Installed) -> Layers | None:
        assert installed is self.environment
        return self._note("layers", self.project)

    def host(self, installed: Installed) -> Host:
        assert installed is self.environment
        return self._note("host", self.machine)

    def manifest(self, installed: Installed) -> tuple[str, str] | None:
        assert installed is self.environment
        return None if self.pyproject is None else ("/app", self.pyproject)

    def _note(self, what: str, value: object) -> object:  # type: ignore[misc]
        self.asked.append(what)
        if what in self.failing:
            raise WorldError(f"the {what} cannot be read")
        return value


def giving(
    code: str, *findings: Finding, check: Callable[..., Iterator[Finding]] | None = None
) -> Rule:
    """Return a rule that finds what it is told, from the packages alone."""

    def found(installed: Installed) -> Iterator[Finding]:
        """Find what it was told."""
        assert installed.prefix
        yield from findings

    found.__annotations__ = {"installed": Installed}
    return rule(code, f"title of {code}", severity=Severity.ERROR)(check or found)
