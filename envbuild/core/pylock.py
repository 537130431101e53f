"""``pylock.<target>.toml`` (PEP 751): read from uv's export and from disk, and rendered."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import tomlkit
from packaging.markers import UndefinedEnvironmentName
from packaging.pylock import Pylock, PylockValidationError
from packaging.utils import parse_sdist_filename, parse_wheel_filename

from envbuild.core.frozen import read_frozen
from envbuild.core.locktable import lock_table, read_builds
from envbuild.core.lockvalues import LockValueError, check_lock_table
from envbuild.core.tomltext import parse_toml
from envbuild.core.uvsettings import environment_marker
from envbuild.core.wheellines import without_foreign
from envbuild.core.wheeltags import LONGEST_NAME, fits, only_newer_glibc
from envbuild.errors import InputError, RefusedError, WorldError
from envbuild.model.lock import Artifact, Pinned, TargetLock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from packaging.markers import Marker
    from packaging.pylock import Package, PackageArchive, PackageSdist, PackageWheel

    from envbuild.errors import EnvbuildError
    from envbuild.model.target import Target


def parse_pylock(text: str, *, path: str) -> Pylock:
    """Read and validate a lock file; raises InputError naming the file and the key."""
    try:
        document = parse_toml(text)
        _refuse_endless_names(text)
        return Pylock.from_dict(document)
    except (ValueError, PylockValidationError) as error:
        raise InputError(
            f"`{path}` is no valid lock file: {error}", hint="run `envbuild lock` to write it anew"
        ) from None


def _refuse_endless_names(text: str) -> None:
    for match in re.finditer(r"\.whl", text):
        name = text[max(match.start() - LONGEST_NAME, 0) : match.start()]
        if len(name) == LONGEST_NAME and {*"/\"'"}.isdisjoint(name):
            raise ValueError(f"found a wheel's name of more than {LONGEST_NAME} characters")


@lru_cache(maxsize=4)
def exported_packages(text: str, target: Target) -> tuple[Pinned, ...]:
    """Return the packages of uv's export that the target installs, sorted by name.

    Raises RefusedError for what no hash can pin, a git checkout or a folder, and WorldError
    where a package has no file for the target, or one whose name says nothing.
    """
    lock = parse_pylock(without_foreign(text, target), path="uv export")
    try:
        return _exported_packages(lock, target)
    except (ValueError, UndefinedEnvironmentName) as error:
        raise WorldError(f"`uv export` gave what cannot be locked: {error}") from None


def _exported_packages(lock: Pylock, target: Target) -> tuple[Pinned, ...]:
    packages = []
    seen: dict[str, tuple[bool, str | None]] = {}
    for package in lock.packages:
        key = str(package.marker)
        if key not in seen:
            seen[key] = _marker_on(package.marker, target)
        holds, marker = seen[key]
        if holds and (package.directory is None or package.directory.path != "."):
            packages.append(replace(_exported(package, target), marker=marker))
    return tuple(sorted(packages, key=lambda package: package.name))


_PATCHES = range(31)
"""Patch releases of one Python minor that a marker is tried on; CPython made 23 at most."""


def _marker_on(marker: Marker | None, target: Target) -> tuple[bool, str | None]:
    """Return whether a marker holds, and the marker itself where only some patches fit."""
    if marker is None:
        return True, None
    answers = {
        marker.evaluate(marker_environment(target, patch), context="lock_file")
        for patch in _PATCHES
    }
    return True in answers, str(marker) if len(answers) > 1 else None


def marker_environment(target: Target, patch: int = 0) -> Mapping[str, Any]:
    """Return the PEP 508 environment of a target, for evaluating markers of a lock file."""
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{target.python}.{patch}",
        "os_name": "posix",
        "platform_machine": target.platform.machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{target.python}.{patch}",
        "python_version": target.python,
        "sys_platform": "linux",
        "extras": frozenset(),
        "dependency_groups": frozenset(),
    }


def _exported(package: Package, target: Target) -> Pinned:
    if package.vcs is not None or package.directory is not None:
        kind = "a git checkout" if package.vcs else "a folder"
        raise RefusedError(
            f"`{package.name}` is taken from {kind}, which no sha256 can pin",
            hint=f"put `{package.name}` under [tool.envbuild.build] and out of the requirements",
        )
    if package.archive is not None:
        artifact = _artifact(package.archive)
        version = str(package.version or file_version(artifact.filename))
        return Pinned(
            name=package.name, version=version, index="", artifacts=(artifact,), direct=True
        )
    wheels = [_artifact(wheel) for wheel in package.wheels or ()]
    artifacts = [wheel for wheel in wheels if fits(wheel.filename, target)]
    if not artifacts and package.sdist is not None:
        artifacts = [_artifact(package.sdist)]
    if not artifacts:
        raise _no_file(package, wheels, target)
    return Pinned(
        name=package.name,
        version=str(package.version),
        index=package.index or "",
        artifacts=tuple(sorted(artifacts, key=lambda artifact: artifact.filename)),
    )


def _no_file(package: Package, wheels: list[Artifact], target: Target) -> EnvbuildError:
    release = f"`{package.name} {package.version}`"
    newer = only_newer_glibc((one.filename for one in wheels), target)
    if newer:
        return RefusedError(
            f"{release} needs a newer glibc than {target.glibc}: it has {newer[0]}, and no sdist",
            hint="set the target's `glibc` to that of its machines, or add"
            f' `constraint-dependencies = ["{package.name}<{package.version}"]` to [tool.uv]',
        )
    return WorldError(f"{release} has no file for {target.machines}, and no sdist")


def _artifact(part: PackageWheel | PackageSdist | PackageArchive) -> Artifact:
    url = part.url or ""
    uploaded = part.upload_time
    return Artifact(
        filename=file_name(url),
        url=url,
        sha256=part.hashes.get("sha256"),
        size=part.size,
        upload_time=None if uploaded is None else uploaded.isoformat().replace("+00:00", "Z"),
    )


def file_name(url: str) -> str:
    """Return the file name at the end of an address."""
    return unquote(PurePosixPath(urlsplit(url).path).name)


def file_version(filename: str) -> str:
    """Return the version in a wheel's or sdist's file name, normalised; raises ValueError."""
    if len(filename) > LONGEST_NAME:
        raise ValueError(f"found a name of more than {LONGEST_NAME} characters")
    if filename.endswith(".whl"):
        return str(parse_wheel_filename(filename)[1])
    return str(parse_sdist_filename(filename)[1])


def render_pylock(lock: TargetLock, target: Target) -> str:
    """Render the lock file of a target; packages without a hash are left out and named."""
    lines = [
        f"# envbuild lock: the set of target {lock.target}",
        'lock-version = "1.0"',
        f"environments = [{_text(environment_marker(target))}]",
        f'requires-python = "=={lock.python}.*"',
        'created-by = "envbuild"',
        *(["packages = []"] if not any(package.hashed for package in lock.packages) else []),
    ]
    for package in lock.packages:
        if package.hashed:
            lines += ["", "[[packages]]", *_package_lines(package)]
    return "\n".join(lines) + "\n\n" + tomlkit.dumps({"tool": {"envbuild": lock_table(lock)}})


def _text(value: str) -> str:
    """Render a basic string; JSON's escapes are a subset of TOML's."""
    return json.dumps(value, ensure_ascii=False)


def _package_lines(package: Pinned) -> Iterator[str]:
    yield f"name = {_text(package.name)}"
    if not package.direct:  # installers compare it with the file name and with the metadata
        yield f"version = {_text(package.version)}"
    if package.marker is not None:
        yield f"marker = {_text(package.marker)}"
    if package.direct:
        yield f"archive = {_file(package.artifacts[0])}"
        return
    if package.index:
        yield f"index = {_text(package.index)}"
    wheels = [artifact for artifact in package.artifacts if artifact.is_wheel]
    if wheels:
        yield "wheels = ["
        yield from (f"    {_file(wheel)}," for wheel in wheels)
        yield "]"
    yield from (f"sdist = {_file(other)}" for other in package.artifacts if not other.is_wheel)


def _file(artifact: Artifact) -> str:
    parts = [f"url = {_text(artifact.url)}"]
    if artifact.upload_time is not None:
        parts.append(f"upload-time = {artifact.upload_time}")
    if artifact.size is not None:
        parts.append(f"size = {artifact.size}")
    parts.append(f"hashes = {{ sha256 = {_text(artifact.sha256 or '')} }}")
    return f"{{ {', '.join(parts)} }}"


def read_target_lock(text: str, *, path: str) -> TargetLock:
    """Read a lock file that envbuild wrote; raises InputError where it is none.

    Packages that are still without a hash come back with the file that the lock names, if any.
    """
    lock = parse_pylock(text, path=path)
    try:
        return _read_lock(lock)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        found = error if isinstance(error, LockValueError) else "found other values in it"
        raise InputError(
            f"`{path}` is no lock file of envbuild: {found}, which `envbuild lock` does not write",
            hint="run `envbuild lock` to write it anew",
        ) from None


def _read_lock(lock: Pylock) -> TargetLock:
    table: Mapping[str, Any] = (lock.tool or {}).get("envbuild", {})
    check_lock_table(table)
    incomplete = [entry.partition("==") for entry in table.get("incomplete", ())]
    packages = [_read_package(package) for package in lock.packages]
    named = {
        name: (Artifact(filename=file_name(url), url=url, sha256=None),)
        for name, url in table.get("unhashed", {}).items()
    }
    packages += [
        Pinned(name=name, version=version, index="", artifacts=named.get(name, ()))
        for name, _, version in incomplete
    ]
    return TargetLock(
        target=table.get("target", ""),
        python=str(lock.requires_python or "").strip("=*").rstrip("."),
        platform=table.get("platform", ""),
        packages=tuple(sorted(packages, key=lambda package: package.name)),
        gpus=tuple(table.get("gpus", ())),
        capabilities=tuple(table.get("capabilities", ())),
        cuda=table.get("cuda"),
        builds=read_builds(table),
        base=table.get("base"),
        glibc=table.get("glibc"),
        frozen=read_frozen(table),
    )


def _read_package(package: Package) -> Pinned:
    if package.archive is not None:
        artifact = _artifact(package.archive)
        return Pinned(
            name=package.name,
            version=file_version(artifact.filename),
            index="",
            artifacts=(artifact,),
            direct=True,
        )
    artifacts = [_artifact(wheel) for wheel in package.wheels or ()]
    if package.sdist is not None:
        artifacts.append(_artifact(package.sdist))
    return Pinned(
        name=package.name,
        version=str(package.version),
        index=package.index or "",
        artifacts=tuple(artifacts),
        marker=None if package.marker is None else str(package.marker),
    )
