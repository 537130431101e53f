"""EB104 and EB110: which build of torch is installed, and by whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.checks.cudamix import torch_accelerator
from envbuild.checks.owners import counted, torch_label
from envbuild.checks.rule import rule
from envbuild.checks.torchpairs import matching
from envbuild.core.lockdrift import lock_for
from envbuild.core.wheeltags import local_of, public_of
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Install, Manual, Reinstall, Remove
from envbuild.model.host import Host
from envbuild.model.installed import Installed
from envbuild.model.layers import Aim, Layers
from envbuild.model.project import IndexUrls
from envbuild.ports import Facts

if TYPE_CHECKING:
    from envbuild.model.fix import Fix
    from envbuild.model.installed import Distribution
    from envbuild.model.layers import LockedVersion

_FIRST_SBSA_TEGRA = 38
_CONDA_TORCH = frozenset({"pytorch", "pytorch-cpu", "pytorch-gpu", "libtorch"})
_PIP = frozenset({"pip", "uv"})


@rule("EB104", "torch is not the build that is meant", severity=Severity.ERROR)
def wrong_torch(
    installed: Installed, host: Host, layers: Layers, facts: Facts, aim: Aim | None
) -> Iterator[Finding]:
    """Find a CPU build where GPUs are meant, and another CUDA than the lock names.

    **What it finds.** A torch without CUDA where the machine, a target or `--gpu` names GPUs, or
    under a lock that names a CUDA build; PyPI's torch where the lock says `+cu128`; wheels for
    Arm servers on a Jetson. PyPI's aarch64 wheel is the CPU build up to torch 2.10. A machine
    without a GPU is no reason, and a lock that names `+cpu` is a wish.

    **Why it matters.** `torch.cuda.is_available()` is False, or the GPU's code is missing, and
    nothing has complained: `torch==2.7.0` is satisfied by every build of 2.7.0.

    **Example.** On a GB200, `pip install torch==2.10.0` installs the CPU build.

    **Fix.** Install the build by its local version:
    `uv pip install torch==2.7.0+cu128 --index https://download.pytorch.org/whl/cu128`. In a managed
    project put index and source into pyproject.toml, or `envbuild lock` does.
    """
    torch = installed.find("torch")
    if torch is None or torch.installer == "conda":
        return
    lock = lock_for(layers, installed)
    locked = (one for one in lock.packages if one.name == "torch") if lock else ()
    wanted = next(iter(locked), None)
    local = local_of(wanted.version) if wanted else ""
    ours = torch_accelerator(installed)
    by_lock = (f"lock:{lock.path}",) if lock is not None and local else ()
    if _is_old_tegra(host):
        yield from _on_tegra(torch, ours, host.tegra or "")
    elif ours == "cpu" and local != "cpu":
        reason = _why_not_cpu(public_of(torch.version), local, host, aim)
        for finding in _cpu(torch, local, installed, reason, facts):
            yield replace(finding, because=by_lock)
    elif local and ours and local.startswith("cu") and local != ours:
        yield replace(_another(torch, wanted, installed), because=by_lock)


def _why_not_cpu(public: str, local: str, host: Host, aim: Aim | None) -> str:
    """Return who means a GPU, nothing where nobody does."""
    if local:
        return f"the lock says {public}+{local}"
    if host.gpus and not host.is_image:
        return f"this machine has {counted(len(host.gpus), 'GPU')} ({host.gpus[0].name})"
    if aim is not None and aim.capabilities:
        return f"{aim.source} names {' and '.join(one.sm for one in aim.capabilities)}"
    return ""


def _cpu(
    torch: Distribution, local: str, installed: Installed, reason: str, facts: Facts
) -> Iterator[Finding]:
    if not reason:
        return
    public = public_of(torch.version)
    tags = [b.cuda.tag for b in facts.torch_builds() if b.torch == public and b.cuda is not None]
    tag = local or (tags[0] if tags else "")
    asked = local_of(torch.version) == "cpu" and not local
    yield Finding(
        code="EB104",
        severity=Severity.WARNING if asked else Severity.ERROR,
        subject=torch.label,
        message=f"{torch_label(installed)} is the CPU build, {reason}",
        evidence=_why_cpu(torch, installed),
        hint=None if tag else "install a CUDA build from PyTorch's index",
        fixes=(_install(public, tag),) if tag else (Manual(text="install a CUDA build of torch"),),
        brings=("dist:torch",),
    )


def _why_cpu(torch: Distribution, installed: Installed) -> tuple[str, ...]:
    said = f"torch/version.py: cuda = None, METADATA: {torch.version}"
    if installed.machine == "aarch64" and not local_of(torch.version):
        return (said, "PyPI's aarch64 wheel of torch is the CPU build up to 2.10")
    return (said,)


def _another(torch: Distribution, wanted: LockedVersion | None, installed: Installed) -> Finding:
    version = wanted.version if wanted else ""
    where = " (PyPI's build)" if not local_of(torch.version) else ""
    return Finding(
        code="EB104",
        severity=Severity.ERROR,
        subject=torch.label,
        message=f"{torch_label(installed)}{where} is installed, the lock says {version}",
        evidence=(f"METADATA: {torch.version}", f"torch/version.py: {torch_label(installed)}"),
        hint="a plain `torch==X` is satisfied by every build of X: name the local version",
        fixes=(_install(public_of(version), local_of(version)), Reinstall(names=("torch",))),
        brings=("dist:torch",),
    )


def _install(public: str, tag: str) -> Install:
    return Install(requirements=(f"torch=={public}+{tag}",), index=f"{IndexUrls().pytorch}/{tag}")


def _is_old_tegra(host: Host) -> bool:
    """Whether the machine is a Jetson that runs no wheels made for Arm servers."""
    major = (host.tegra or "").partition(".")[0]
    return not host.is_image and major.isdigit() and int(major) < _FIRST_SBSA_TEGRA


def _on_tegra(torch: Distribution, ours: str, release: str) -> Iterator[Finding]:
    server = any(text.startswith("nvidia-") for text in torch.requires)
    if ours != "cpu" and not server:
        return
    what = "the CPU build" if ours == "cpu" else "a wheel for Arm servers"
    jetpack, python = ("6", "3.10") if release.startswith("36") else ("5", "3.8")
    yield Finding(
        code="EB104",
        severity=Severity.ERROR,
        subject=torch.label,
        message=f"{torch.label} is {what}: no GPU on this Jetson (Linux for Tegra {release})",
        evidence=("/etc/nv_tegra_release", f"JetPack {jetpack} has wheels for Python {python}"),
        fixes=(Manual(text=f"install NVIDIA's torch for JetPack {jetpack} under Python {python}"),),
        brings=("dist:torch",),
    )


@rule("EB110", "torch was installed by two installers", severity=Severity.ERROR)
def two_installers(installed: Installed, facts: Facts) -> Iterator[Finding]:
    """Find conda's torch with pip's over it.

    **What it finds.** `pytorch` in `conda-meta` and a `torch` whose INSTALLER is pip or uv.

    **Why it matters.** conda still believes in its own version, its libraries stay behind, and
    the next `conda install` puts some of its files back.

    **Example.** `pip install -r requirements.txt` with an open requirement brought torch 2.6.0
    over conda's 1.13.1.

    **Fix.** Keep one: `conda remove --force pytorch torchvision`, then install torch again with
    `uv pip install --reinstall-package torch`, and the torchvision that belongs to it; or remove
    pip's and install conda's again.
    """
    torch = installed.find("torch")
    if torch is None or torch.installer not in _PIP:
        return
    for one in installed.distributions:
        if one.name in _CONDA_TORCH and one.installer == "conda":
            yield Finding(
                code="EB110",
                severity=Severity.ERROR,
                subject=torch.label,
                message=f"{torch.label} came by {torch.installer} over conda's {one.label}",
                evidence=(f"{one.site}/{one.info}", f"{torch.site}/{torch.info}"),
                fixes=_keep_pips(one, installed, facts),
                brings=("dist:torch",),
            )
            return


def _keep_pips(torch: Distribution, installed: Installed, facts: Facts) -> tuple[Fix, ...]:
    """Remove conda's torch with what conda installed for it, and put pip's in order."""
    stale = [
        one
        for one in installed.distributions
        if one.name in ("torchvision", "torchaudio") and one.installer == "conda"
    ]
    names = tuple(dict.fromkeys((torch.name, *(one.name for one in stale))))
    fitting = (matching(one, installed, facts) for one in {one.name: one for one in stale}.values())
    return (
        Remove(names=names),
        Reinstall(names=("torch",)),
        *(fix for fix in fitting if fix is not None),
    )


RULES = (wrong_torch, two_installers)
