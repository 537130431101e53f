"""Read what lies beside METADATA in a distribution's metadata folder, and its folder's name."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from envbuild.core.redact import redact_url
from envbuild.errors import WorldError

_SUFFIX = re.compile(r"\.(?:dist-info|egg-info|egg)\Z")
_EGG_TAIL = re.compile(r"-py\d+\.\d+.*\Z")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_SHA256 = re.compile(r"sha256=([0-9a-f]{64})")
_KINDS = (("archive_info", "archive"), ("dir_info", "folder"), ("vcs_info", "checkout"))
_MOST_TAGS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryName:
    """What the name of a metadata folder or file says; ``version`` may be empty."""

    name: str
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where direct_url.json says a distribution came from; the address without credentials.

    ``kind`` is ``archive``, ``folder`` or ``checkout``. ``sha256`` is an archive's, empty where
    the installer did not note it.
    """

    url: str
    editable: bool = False
    kind: str = ""
    sha256: str = ""


def parse_entry_name(entry: str) -> EntryName | None:
    """Read ``X-1.0.dist-info``, ``X-1.0-py3.11.egg-info``, ``X.egg-info`` or ``X-1.0.egg``."""
    if not _SUFFIX.search(entry):
        return None
    name, _, version = _EGG_TAIL.sub("", _SUFFIX.sub("", entry)).partition("-")
    return _entry_name(name, version.replace("_", "-"))


def parse_conda_name(entry: str) -> EntryName | None:
    """Read ``name-version-build.json`` of a conda prefix."""
    if not entry.endswith(".json"):
        return None
    parts = entry.removesuffix(".json").rsplit("-", 2)
    return _entry_name(parts[0], parts[1]) if len(parts) == 3 else None  # noqa: PLR2004


def _entry_name(name: str, version: str) -> EntryName | None:
    name = name.strip("_")
    if not _NAME.fullmatch(name):
        return None
    return EntryName(name=canonicalize_name(name), version=version)


def parse_wheel_tags(text: str) -> tuple[str, ...]:
    """Return the tags of a WHEEL file, in its order."""
    lines = (line.partition(":") for line in text.splitlines())
    tags = (value.strip() for key, _, value in lines if key.strip().lower() == "tag")
    return tuple(tag for tag in tags if tag)[:_MOST_TAGS]


def parse_installer(text: str) -> str:
    """Return the one word of an INSTALLER file, empty where it holds none."""
    words = text.split(maxsplit=1)
    return words[0][:40] if words else ""


def parse_direct_url(text: str) -> Origin:
    """Read direct_url.json; raise WorldError where it is none."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorldError(f"`direct_url.json` is no JSON: {error}") from None
    url = data.get("url") if isinstance(data, dict) else None
    if not isinstance(url, str) or not url:
        raise WorldError("`direct_url.json` has no text `url`, wanted an address")
    folder = data.get("dir_info")
    editable = isinstance(folder, dict) and folder.get("editable") is True
    kind = next((kind for key, kind in _KINDS if key in data), "")
    sha256 = _sha256(data.get("archive_info"))
    return Origin(url=redact_url(url), editable=editable, kind=kind, sha256=sha256)


def _sha256(archive: object) -> str:
    """Read the hash as PEP 610 writes it, or as pip did before ``hashes`` was there."""
    if not isinstance(archive, dict):
        return ""
    hashes = archive.get("hashes")
    found = hashes.get("sha256") if isinstance(hashes, dict) else None
    text = f"sha256={found}" if found is not None else str(archive.get("hash", ""))
    match = _SHA256.fullmatch(text.lower())
    return match[1] if match else ""


def parse_requires_txt(text: str) -> tuple[str, ...]:
    """Return the requirements of an egg's requires.txt as PEP 508 text."""
    found: list[str] = []
    extra, marker = "", ""
    for line in text.splitlines():
        words = " ".join(line.split())
        if words.startswith("[") and words.endswith("]"):
            extra, _, marker = words[1:-1].partition(":")
        elif words and not words.startswith("#"):
            found.append(_with_marker(words, extra=extra, marker=marker))
    return tuple(found)


def _with_marker(requirement: str, *, extra: str, marker: str) -> str:
    conditions = [f"({marker})"] if marker and extra else [marker] if marker else []
    if extra:
        conditions.append(f'extra == "{extra}"')
    return f"{requirement}; {' and '.join(conditions)}" if conditions else requirement


def parse_installed_files(text: str, *, info: str) -> tuple[bytes, ...]:
    """Return an egg's installed-files.txt as lines of a RECORD.

    The paths are relative to the metadata folder ``info``; those returned to the site folder.
    """
    lines = (line.strip() for line in text.splitlines())
    return tuple(f"{info}/{line},,".encode() for line in lines if line and '"' not in line)
