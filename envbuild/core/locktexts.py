"""Lock files of every kind read into one: uv.lock, PEP 751, and strictly pinned requirements."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from envbuild.core.installedrequires import holds, parsed
from envbuild.core.pylock import file_name, file_version, parse_pylock
from envbuild.core.redact import redact_url
from envbuild.core.uvgraph import Asked, UvGraph
from envbuild.core.uvlock import uv_lock_document
from envbuild.model.layers import LockedVersion, LockFile, Taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.pylock import Package, PackageWheel, Pylock

    from envbuild.core.installedrequires import Environments

_TARGET = re.compile(r"(?:^|/)(?:pylock|requirements)\.(?P<target>[^./]+)\.(?:toml|txt)$")
_HASH = re.compile(r"--hash[= ]sha256:([0-9a-f]{64})")
_HEADER = re.compile(
    r"^# Python (?P<python>\d+\.\d+), (?P<platform>linux-\w+), (?P<gpu>.*)$", re.MULTILINE
)
_CUDA = re.compile(r"CUDA (\d+\.\d+)")


def read_uv_lock(
    path: str, text: str, environments: Environments, *, groups: tuple[str, ...] = ()
) -> LockFile:
    """Read uv.lock: what the root reaches with the default groups, and what may be added."""
    document = uv_lock_document(text)
    requires = str(document.get("requires-python", ""))
    graph = UvGraph(document, environments)
    if not environments or graph.root is None:
        return LockFile(path=path, packages=graph.everything(), requires_python=requires)
    packages = graph.reached(Asked(groups=groups))
    optional: dict[tuple[str, str], tuple[str, LockedVersion]] = {}
    known = {(one.name, one.version) for one in packages}
    for asked in graph.choices():
        for one in graph.reached(asked):
            if (one.name, one.version) not in known:
                optional.setdefault((one.name, one.version), (asked.flag, one))
    return LockFile(
        path=path,
        packages=packages,
        requires_python=requires,
        fits=_python_fits(requires, environments),
        optional=tuple(optional.values()),
    )


def read_pylock(path: str, text: str, environments: Environments) -> LockFile:
    """Read a lock of PEP 751: the packages whose markers hold, and whether it fits at all."""
    lock = parse_pylock(text, path=path)
    found = (lock.tool or {}).get("envbuild")
    table: dict[str, Any] = found if isinstance(found, dict) else {}
    requires = str(lock.requires_python or "")
    packages = [one for one in lock.packages if not environments or holds(one.marker, environments)]
    incomplete = [*_texts(table.get("incomplete")), *_unhashed_sources(table.get("builds"))]
    return LockFile(
        path=path,
        packages=tuple(map(_of_pylock, packages)),
        target=str(table.get("target") or _target_of(path)),
        incomplete=tuple(incomplete),
        fits=_python_fits(requires, environments) and _platform_fits(lock, environments),
        requires_python=requires,
        cuda=str(table.get("cuda", "")),
        glibc=str(table.get("glibc", "")),
    )


def _texts(value: object) -> Iterator[str]:
    yield from map(str, value if isinstance(value, list) else ())


def _unhashed_sources(value: object) -> Iterator[str]:
    for build in value if isinstance(value, list) else ():
        if isinstance(build, dict) and not build.keys() & {"path", "git", "sha256"}:
            yield f"{build.get('name', '')}=={build.get('version', '')}"


def _of_pylock(package: Package) -> LockedVersion:
    files = [*(package.wheels or ()), *((package.sdist,) if package.sdist else ())]
    version = "" if package.version is None else str(package.version)
    archive = package.archive
    hashes = [str(file.hashes.get("sha256", "")) for file in files]
    if archive is not None:
        hashes.append(str(archive.hashes.get("sha256", "")))
        name = (archive.url or archive.path or "").rpartition("/")[2].replace("%2B", "+")
        version = version or _version_in(name)
    return LockedVersion(
        name=canonicalize_name(package.name),
        version=version,
        index=redact_url(package.index or ""),
        sha256=tuple(digest for digest in hashes if digest),
        taken=_taken(package),
        wheels=tuple((_file_name(wheel), wheel.size) for wheel in package.wheels or ()),
        built=package.sdist is not None,
    )


def _taken(package: Package) -> Taken:
    if package.archive is not None:
        return Taken.ADDRESS
    return Taken.INDEX if package.wheels or package.sdist else Taken.OTHER


def _file_name(wheel: PackageWheel) -> str:
    return wheel.name or file_name(wheel.url or wheel.path or "")


def _version_in(name: str) -> str:
    """Return the version in a file's name; empty where it names none."""
    try:
        return file_version(name)
    except ValueError:
        return ""


def _target_of(path: str) -> str:
    match = _TARGET.search(path)
    return match["target"] if match else ""


def _python_fits(requires: str, environments: Environments) -> bool:
    try:
        specifier = SpecifierSet(requires)
    except InvalidSpecifier:
        return True
    versions = [one["python_full_version"] for one in environments]
    return not versions or any(specifier.contains(v, prereleases=True) for v in versions)


def _platform_fits(lock: Pylock, environments: Environments) -> bool:
    markers = lock.environments
    return not markers or not environments or any(holds(one, environments) for one in markers)


def read_requirements(path: str, text: str, environments: Environments) -> LockFile | None:
    """Read a requirements file that pins everything strictly; None for one that is no lock."""
    packages: list[LockedVersion] = []
    unhashed: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        entry = line.partition(" --hash")[0].partition(" #")[0].strip()
        if not entry or entry.startswith(("#", "-")):
            continue
        requirement = parsed(entry)
        if requirement is None:
            return None
        pin = _pin(requirement.url, str(requirement.specifier))
        if pin is None:
            return None
        if environments and not holds(requirement.marker, environments):
            continue
        hashes = tuple(_HASH.findall(line))
        name = canonicalize_name(requirement.name)
        taken = Taken.INDEX if requirement.url is None else Taken.ADDRESS
        any_local = not hashes and "+" not in pin
        packages.append(
            LockedVersion(name=name, version=pin, sha256=hashes, taken=taken, any_local=any_local)
        )
        unhashed += [] if hashes else [f"{name}=={pin}"]
    header = _HEADER.search(text)
    cuda = _CUDA.search(header["gpu"]) if header else None
    lock = LockFile(
        path=path,
        packages=tuple(packages),
        target=_target_of(path),
        incomplete=tuple(unhashed) if len(unhashed) < len(packages) else (),
        cuda=cuda[1] if cuda else "",
        hashed=len(unhashed) < len(packages),
    )
    return _for_header(lock, header, environments) if packages else None


def _pin(url: str | None, specifier: str) -> str | None:
    if url is not None:
        name = url.partition("#")[0].rpartition("/")[2].replace("%2B", "+")
        return _version_in(name) if name.endswith((".whl", ".tar.gz", ".zip")) else ""
    exact = re.fullmatch(r"===?([^,*]+)", specifier)
    return exact[1].strip() if exact else None


def _for_header(
    lock: LockFile, header: re.Match[str] | None, environments: Environments
) -> LockFile:
    if header is None:
        return lock
    requires = f"=={header['python']}.*"
    machine = header["platform"].partition("-")[2]
    same = not environments or environments[0]["platform_machine"] == machine
    fits = same and _python_fits(requires, environments)
    return replace(lock, requires_python=requires, fits=fits)
