"""Read the three artefacts of a lock with parsers that are not envbuild's own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from packaging.pylock import Pylock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

    from lockworld import World


@dataclass(frozen=True, kw_only=True)
class Pin:
    """What an artefact says of one package; the version of a wheel by address is its name's."""

    version: str
    hashes: frozenset[str]
    address: str | None = None


def exported(world: World, *options: str) -> dict[str, Pin]:
    """Return what uv makes of its lock."""
    words = ("export", "--frozen", "--format", "requirements-txt", "--no-emit-project", *options)
    return required(world.uv(*words).stdout)


def required(text: str) -> dict[str, Pin]:
    """Return the pins of a requirements file."""
    pins = {}
    for line in text.replace("\\\n", " ").splitlines():
        entry, *hashes = (
            line.partition("#")[0].split(" --hash=")
            if "://" not in line
            else (line.split(" --hash="))
        )
        if not entry.strip() or entry.startswith("-") or entry.lstrip().startswith("#"):
            continue
        read = Requirement(entry.strip())
        version = _version(read.url) if read.url else str(read.specifier).removeprefix("==")
        pins[canonicalize_name(read.name)] = Pin(
            version=version,
            hashes=frozenset(one.strip().removeprefix("sha256:") for one in hashes),
            address=read.url,
        )
    return pins


def pylocked(text: str) -> dict[str, Pin]:
    """Return the pins of a pylock (PEP 751)."""
    lock = Pylock.from_dict(tomllib.loads(text))
    pins = {}
    for package in lock.packages:
        archive = package.archive
        files = [archive] if archive else [*(package.wheels or ()), package.sdist]
        address = archive.url if archive else None
        pins[package.name] = Pin(
            version=str(package.version) if archive is None else _version(archive.url or ""),
            hashes=frozenset(one.hashes["sha256"] for one in files if one is not None),
            address=address,
        )
    return pins


def versions(pins: dict[str, Pin]) -> dict[str, str]:
    """Return the version of each package."""
    return {name: pin.version for name, pin in pins.items()}


def addresses(text: str) -> dict[str, str]:
    """Return the sha256 of each file that a uv.lock or a pylock names, by its address."""
    document: dict[str, Any] = tomllib.loads(text)
    found = {}
    for package in (*document.get("package", ()), *document.get("packages", ())):
        files = [*package.get("wheels", ()), package.get("sdist"), package.get("archive")]
        for file in filter(None, files):
            digest = file.get("hash", "").removeprefix("sha256:")
            found[file["url"]] = file.get("hashes", {}).get("sha256", digest)
    return found


def installed(venv: Path) -> dict[str, str]:
    """Return the version of each distribution in a virtual environment."""
    folders = (path.stem for path in venv.glob("lib/python*/site-packages/*.dist-info"))
    pairs = (folder.split("-") for folder in folders)
    return {canonicalize_name(name): version for name, version in pairs}


def _version(address: str) -> str:
    return str(parse_wheel_filename(unquote(PurePosixPath(urlsplit(address).path).name))[1])
