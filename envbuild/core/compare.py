"""Say in plain words how a new lock differs from the one on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envbuild.model.facts import DeviceCode
    from envbuild.model.frozen import Frozen
    from envbuild.model.lock import Pinned, TargetLock

_NAMES = {
    "nvidia-cublas": "cuBLAS",
    "nvidia-cuda-runtime": "CUDA runtime",
    "nvidia-cudnn": "cuDNN",
    "nvidia-cufft": "cuFFT",
    "nvidia-cusparse": "cuSPARSE",
    "nvidia-cusparselt": "cuSPARSELt",
    "nvidia-nccl": "NCCL",
    "nvidia-nvjitlink": "nvJitLink",
    "nvidia-nvshmem": "NVSHMEM",
}


def compare_locks(old: TargetLock, new: TargetLock) -> Iterator[str]:
    """Yield one line for each difference that an installation would notice."""
    for label, before, after in (
        ("Python", old.python, new.python),
        ("platform", old.platform, new.platform),
        ("glibc", old.glibc or "any", new.glibc or "any"),
        ("CUDA", old.cuda or "none", new.cuda or "none"),
        ("GPUs", ", ".join(old.capabilities) or "none", ", ".join(new.capabilities) or "none"),
    ):
        if before != after:
            yield f"{label} {before} -> {after}"
    yield from _compare_packages(_by_name(old), _by_name(new))
    yield from _compare_bases(old.frozen, new.frozen)
    yield from _compare_sources(old, new)
    before_builds = [build.project for build in old.builds]
    after_builds = [build.project for build in new.builds]
    if before_builds != after_builds:
        yield (
            f"compiled on install: {', '.join(before_builds) or 'nothing'}"
            f" -> {', '.join(after_builds) or 'nothing'}"
        )


def _compare_bases(old: Frozen | None, new: Frozen | None) -> Iterator[str]:
    if old is None or new is None:
        if old is not new:
            yield "the base is kept" if old is None else "no base is kept any more"
        return
    before = {package.name: package.version for package in old.packages}
    after = {package.name: package.version for package in new.packages}
    yield from (f"the base: {text}" for text in compare_versions(before, after))
    if old.torch != new.torch and before.get("torch") == after.get("torch"):
        yield f"the base: its torch is the build {new.torch}, the lock says {old.torch}"
    if old.python != new.python:
        yield f"the base: its interpreter is {new.python}, the lock says {old.python}"


def _compare_sources(old: TargetLock, new: TargetLock) -> Iterator[str]:
    before = {build.project: build for build in old.builds}
    for build in new.builds:
        was = before.get(build.project)
        if was is None or not build.is_sdist or not was.is_sdist:
            continue
        if was.version != build.version:
            yield f"{build.project} {was.version} -> {build.version}, compiled on install"
        elif was.sha256 != build.sha256:
            yield (
                f"{build.project} {build.version}: the hash of its source is"
                f" {build.sha256 or 'unknown'}, the lock says {was.sha256 or 'none'}"
            )
        elif was.url != build.url:
            yield f"{build.project} {build.version}: its source has moved to {build.url}"


def _by_name(lock: TargetLock) -> dict[str, Pinned]:
    return {package.name: package for package in lock.packages}


def _compare_packages(old: Mapping[str, Pinned], new: Mapping[str, Pinned]) -> Iterator[str]:
    before = {name: package.version for name, package in old.items()}
    after = {name: package.version for name, package in new.items()}
    yield from compare_versions(before, after)
    for name in sorted(old.keys() & new.keys()):
        if before[name] == after[name] and _files(old[name]) != _files(new[name]):
            yield f"{display_name(name)} {after[name]}: {_file_change(old[name], new[name])}"


def compare_versions(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for each package that comes, goes or changes its version."""
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"{display_name(name)} {old[name]} removed"
        elif name not in old:
            yield f"{display_name(name)} {new[name]} added"
        elif old[name] != new[name]:
            yield f"{display_name(name)} {old[name]} -> {new[name]}"


def _files(package: Pinned) -> frozenset[tuple[str, str | None, str]]:
    return frozenset((a.filename, a.sha256, a.url) for a in package.artifacts)


def _file_change(old: Pinned, new: Pinned) -> str:
    before = {artifact.filename: artifact for artifact in old.artifacts}
    for artifact in new.artifacts:
        was = before.get(artifact.filename)
        if was is not None and was.sha256 != artifact.sha256:
            return (
                f"the hash of {artifact.filename} is {artifact.sha256 or 'unknown'},"
                f" the lock says {was.sha256 or 'unknown'}"
            )
        if was is not None and was.url != artifact.url:
            return f"{artifact.filename} has moved to {artifact.url}"
    return "other files fit the target"


def display_name(project: str) -> str:
    """Return the name people use: ``cuDNN`` for ``nvidia-cudnn-cu12``."""
    stem, dash, suffix = project.rpartition("-")
    base = stem if dash and suffix in ("cu11", "cu12", "cu13") else project
    return _NAMES.get(base, project)


def compare_code(old: DeviceCode | None, new: DeviceCode | None) -> Iterator[str]:
    """Yield the architectures that torch lost or gained, ``sm_70 lost`` say."""
    if old is None or new is None:
        return
    before, after = {c.sm for c in old.sass}, {c.sm for c in new.sass}
    for lost in sorted(before - after, key=_number):
        yield f"{lost} lost"
    for gained in sorted(after - before, key=_number):
        yield f"{gained} gained"


def _number(sm: str) -> tuple[int, str]:
    digits = "".join(character for character in sm if character.isdigit())
    return int(digits or 0), sm


def compare_sets(sets: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a line for each package on which files that must agree do not.

    ``sets`` maps the name of a file to its packages and their versions.
    """
    files = list(sets)
    for name in sorted({name for versions in sets.values() for name in versions}):
        held = {file: sets[file].get(name) for file in files}
        if len(set(held.values())) > 1:
            said = ", ".join(f"{file} has {version or 'none'}" for file, version in held.items())
            yield f"{display_name(name)}: {said}"
