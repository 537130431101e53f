"""Read the distributions that one site folder holds, from their metadata alone."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envbuild.core.distinfo import (
    parse_conda_name,
    parse_direct_url,
    parse_entry_name,
    parse_installed_files,
    parse_installer,
    parse_requires_txt,
    parse_wheel_tags,
)
from envbuild.core.recordfile import parse_record
from envbuild.core.wheelmetadata import WheelMetadata, parse_metadata
from envbuild.errors import WorldError
from envbuild.model.installed import Distribution
from envbuild.world.rootfs import reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.core.distinfo import EntryName, Origin
    from envbuild.model.installed import RecordEntry
    from envbuild.world.rootfs import Root

_MOST_METADATA = 1 << 20
_MOST_RECORD = 256 << 20
_MOST_TEXT = 1 << 20
_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteContent:
    """The distributions of a site folder, what it lets be imported, and what was unreadable."""

    distributions: tuple[Distribution, ...] = ()
    tops: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


class SiteReader:
    """Reads one site folder; ``prefix`` is what no path of its RECORD files may leave."""

    def __init__(self, site: str, *, prefix: str, root: Root) -> None:
        self._site = site
        self._prefix = prefix
        self._root = root
        self._skipped: list[str] = []

    def read(self) -> SiteContent:
        """Read every distribution; what cannot be read is said and left out."""
        names = self._root.names(self._site)
        found = [one for name in names if (one := self._distribution(name)) is not None]
        newest_first = sorted(found, key=_version, reverse=True)
        return SiteContent(
            distributions=tuple(sorted(newest_first, key=lambda one: one.name)),
            tops=_tops(names),
            skipped=tuple(self._skipped),
        )

    def _distribution(self, name: str) -> Distribution | None:
        entry = parse_entry_name(name)
        if entry is None:
            if name.endswith(".dist-info"):
                self._skip(name, "is no name of a distribution, as an interrupted pip leaves it")
            return None
        if name.endswith(".dist-info"):
            return self._dist_info(name, entry)
        return self._egg(name, entry)

    def _dist_info(self, info: str, entry: EntryName) -> Distribution | None:
        files = frozenset(self._root.names(f"{self._site}/{info}"))
        if not files:
            self._skip(info, "is no folder with readable files")
            return None
        metadata = self._metadata(f"{info}/METADATA", entry)
        origin = self._origin(info) if "direct_url.json" in files else None
        return Distribution(
            name=canonicalize_name(metadata.name),
            version=metadata.version,
            site=self._site,
            info=info,
            requires=metadata.requires_dist,
            record=self._record(info) if "RECORD" in files else None,
            tags=parse_wheel_tags(self._text(f"{info}/WHEEL", files)),
            installer=parse_installer(self._text(f"{info}/INSTALLER", files)),
            origin=origin.url if origin else None,
            origin_kind=origin.kind if origin else "",
            origin_sha256=origin.sha256 if origin else "",
            requested="REQUESTED" in files,
            editable=origin is not None and origin.editable,
        )

    def _egg(self, name: str, entry: EntryName) -> Distribution | None:
        """Read `X.egg-info`, a file or a folder, or the `EGG-INFO` of an unpacked `X.egg`."""
        path = f"{self._site}/{name}"
        info = f"{name}/EGG-INFO" if name.endswith(".egg") else name
        if self._root.is_file(path):
            is_zip = name.endswith(".egg")
            metadata = _named(entry) if is_zip else self._metadata(name, entry)
            return self._plain(metadata, info=name)
        files = frozenset(self._root.names(f"{self._site}/{info}"))
        if "PKG-INFO" not in files:
            self._skip(info, "has no PKG-INFO")
            return None
        metadata = self._metadata(f"{info}/PKG-INFO", entry)
        requires = metadata.requires_dist or parse_requires_txt(
            self._text(f"{info}/requires.txt", files)
        )
        return self._plain(
            metadata,
            info=info,
            requires=requires,
            record=self._installed_files(info, files),
        )

    def _plain(
        self,
        metadata: WheelMetadata,
        *,
        info: str,
        requires: tuple[str, ...] = (),
        record: tuple[RecordEntry, ...] | None = None,
    ) -> Distribution:
        return Distribution(
            name=canonicalize_name(metadata.name),
            version=metadata.version,
            site=self._site,
            info=info,
            requires=requires or metadata.requires_dist,
            record=record,
        )

    def _metadata(self, name: str, entry: EntryName) -> WheelMetadata:
        """Read the headers; fall back on what the folder's name says."""
        try:
            data = self._root.head(f"{self._site}/{name}", _MOST_METADATA)
            return parse_metadata(_headers(data), origin=f"`{name}`")
        except OSError as error:
            self._skip(name, reason(error))
        except (WorldError, ValueError, RecursionError) as error:
            self._skip(name, str(error))
        return _named(entry)

    def _record(self, info: str) -> tuple[RecordEntry, ...] | None:
        name = f"{info}/RECORD"
        try:
            with self._root.open(f"{self._site}/{name}") as file:
                _refuse_large(file)
                record = parse_record(file, site=self._site, prefix=self._prefix)
        except OSError as error:
            self._skip(name, reason(error))
            return None
        except WorldError as error:
            self._skip(name, error.message)
            return None
        for line in record.refused:
            self._skip(name, f"line {line}")
        return record.entries

    def _installed_files(self, info: str, files: frozenset[str]) -> tuple[RecordEntry, ...] | None:
        if "installed-files.txt" not in files:
            return None
        text = self._text(f"{info}/installed-files.txt", files)
        lines = parse_installed_files(text, info=info)
        return parse_record(lines, site=self._site, prefix=self._prefix).entries

    def _origin(self, info: str) -> Origin | None:
        name = f"{info}/direct_url.json"
        try:
            return parse_direct_url(self._root.text(f"{self._site}/{name}") or "")
        except WorldError as error:
            self._skip(name, str(error))
            return None

    def _text(self, name: str, files: frozenset[str]) -> str:
        if posixpath.basename(name) not in files:
            return ""
        text = self._root.text(f"{self._site}/{name}", limit=_MOST_TEXT)
        if text is None:
            self._skip(name, "cannot be read")
        return text or ""

    def _skip(self, name: str, why: str) -> None:
        self._skipped.append(f"`{self._site}/{name}`: {why}")


def read_conda(prefix: str, *, root: Root) -> tuple[Distribution, ...]:
    """Return what conda installed in a prefix, by the names of the files in ``conda-meta``."""
    site = f"{prefix}/conda-meta"
    return tuple(
        Distribution(
            name=entry.name, version=entry.version, site=site, info=name, installer="conda"
        )
        for name in root.names(site)
        if (entry := parse_conda_name(name)) is not None
    )


def _headers(data: bytes) -> bytes:
    """Drop the description, which no check reads and which can be large."""
    ends = [end for blank in _BLANK_LINES if (end := data.find(blank)) >= 0]
    if not ends and len(data) == _MOST_METADATA:
        raise WorldError(f"has headers of more than {_MOST_METADATA:,} bytes")
    return data[: min(ends)] if ends else data


def _refuse_large(file: IO[bytes]) -> None:
    if os.fstat(file.fileno()).st_size > _MOST_RECORD:
        raise WorldError(f"has more than {_MOST_RECORD:,} bytes")


def _named(entry: EntryName) -> WheelMetadata:
    return WheelMetadata(name=entry.name, version=entry.version)


def _version(one: Distribution) -> Version:
    try:
        return Version(one.version)
    except InvalidVersion:
        return Version("0")


def _tops(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that an import statement finds: folders, modules, extension modules."""
    stems = (name.partition(".")[0] for name in names if _is_importable(name))
    return tuple(dict.fromkeys(stem for stem in stems if stem.isidentifier()))


def _is_importable(name: str) -> bool:
    return "." not in name or name.endswith((".py", ".so", ".pyc"))
