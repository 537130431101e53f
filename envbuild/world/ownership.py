"""Compare every RECORD with what lies on disk: whose bytes are there, what is gone or cut short.

Sizes decide nearly everything. A file is hashed only where two owners record different content
of one size for it, or none at all.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from envbuild.model.installed import OnDisk, Ownership, SharedPath
from envbuild.world.cutfiles import cut_modules, whole_objects
from envbuild.world.rootfs import Root
from envbuild.world.sharedobjects import is_shared_object, shared_objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from envbuild.model.installed import Distribution, Installed, RecordEntry

_Claim: TypeAlias = "tuple[Distribution, RecordEntry]"
_CHUNK = 1 << 20
_ABOUT_ITSELF = ("/INSTALLER", "/REQUESTED", "/RECORD", "/RECORD.jws", "/direct_url.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Path:
    """A recorded path: where it lies, who records it, and the size of what is there."""

    absolute: str
    claims: tuple[_Claim, ...]
    size: int | None


def read_ownership(installed: Installed, *, objects: Iterable[str] | None = None) -> Ownership:
    """Compare the RECORD of every distribution with the files; reads hardly any of their bytes.

    ``objects`` are the environment's shared objects where they are known (``shared_objects``).
    """
    root = Root(installed.root)
    objects = shared_objects(installed, root=root) if objects is None else objects
    claims = _claims(installed.distributions)
    shared: list[SharedPath] = []
    missing: dict[str, list[str]] = defaultdict(list)
    resized: dict[str, list[str]] = defaultdict(list)
    owners: dict[str, str] = {}
    recorded: set[str] = set()
    changed: list[str] = []
    shortened: list[str] = []
    for path in _looked_up(claims, root=root):
        one = _shared(path, root=root) if _is_shared(path.claims) else None
        if one is not None:
            shared.append(one)
        _sort_out(path, missing=missing, resized=resized)
        if is_shared_object(path.absolute):
            recorded.add(path.absolute)
            if path.size is not None:
                owners[path.absolute] = _owner(path, one)
                if not _is_as_recorded(path):
                    changed.append(path.absolute)
        elif path.absolute.endswith(".py") and _is_shorter(path):
            shortened.append(path.absolute)
    return Ownership(
        shared=tuple(sorted(shared, key=lambda one: one.path)),
        missing=_grouped(missing),
        resized=_grouped(resized),
        whole=tuple(sorted(whole_objects(changed, root=root))),
        cut=tuple(sorted(cut_modules(shortened, root=root))),
        unowned=tuple(sorted(set(objects) - recorded)),
        owners=tuple(sorted(owners.items())),
    )


def _owner(path: _Path, shared: SharedPath | None) -> str:
    return (shared and shared.winner) or path.claims[0][0].label


def _claims(distributions: Iterable[Distribution]) -> dict[str, tuple[_Claim, ...]]:
    """Map each absolute path to the distributions that record it, each of them once."""
    claims: dict[str, tuple[_Claim, ...]] = {}
    for distribution in distributions:
        inside = f"{distribution.site}/"
        for entry in distribution.record or ():
            path = entry.path
            if path.endswith((".pyc", "/__pycache__")):
                continue
            absolute = path if path[0] == "/" else inside + path
            held = claims.get(absolute)
            if held is None:
                claims[absolute] = ((distribution, entry),)
            elif held[-1][0] is not distribution:
                claims[absolute] = (*held, (distribution, entry))
    return claims


def _looked_up(claims: Mapping[str, tuple[_Claim, ...]], *, root: Root) -> Iterator[_Path]:
    """Find the size of what lies at each path, folder by folder.

    What one distribution records, and lies there with its size, is passed over unless it is a
    shared object: that is nearly everything.
    """
    folders: dict[str, str | None] = {}
    for absolute, owned in claims.items():
        folder, _, name = absolute.rpartition("/")
        if folder not in folders:
            folders[folder] = _host_folder(folder, root=root)
        host = folders[folder]
        try:
            size = None if host is None else _size(f"{host}/{name}", absolute, root=root)
        except PermissionError:
            continue  # what may not be looked at is not gone
        if len(owned) > 1 or size is None or size != owned[0][1].size or ".so" in name:
            yield _Path(absolute=absolute, claims=owned, size=size)


def _host_folder(path: str, *, root: Root) -> str | None:
    try:
        return root.host_path(path)
    except PermissionError:
        return root.path + path
    except (OSError, ValueError):
        return None


def _size(host: str, path: str, *, root: Root) -> int | None:
    """Return a file's size, through the links of uv's link mode; None where nothing is there.

    Raises PermissionError where that cannot be known.
    """
    try:
        status = os.lstat(host)
        if stat.S_ISLNK(status.st_mode):
            status = root.status(path)
    except PermissionError:
        raise
    except (OSError, ValueError):
        return None
    return status.st_size


def _is_shared(claims: tuple[_Claim, ...]) -> bool:
    """Return whether several record a path, unless it is a package marker with one content."""
    entries = [entry for _, entry in claims]
    same = len({entry.sha256 for entry in entries}) == 1 and entries[0].sha256 is not None
    is_marker = entries[0].size == 0 or entries[0].path.endswith("__init__.py")
    return len(entries) > 1 and not (same and is_marker)


def _shared(path: _Path, *, root: Root) -> SharedPath:
    entries = [entry for _, entry in path.claims]
    disk = None if path.size is None else OnDisk(size=path.size)
    fitting = [claim for claim in path.claims if _fits(claim[1], path.size)]
    different = len({entry.sha256 for entry in entries}) > 1
    if disk is not None and different and len(fitting) > 1:
        digest = _sha256(path.absolute, root=root)
        disk = OnDisk(size=disk.size, sha256=digest)
        fitting = [claim for claim in fitting if digest is not None and claim[1].sha256 == digest]
    return SharedPath(
        path=entries[0].path,
        owners=tuple((owner.label, entry) for owner, entry in path.claims),
        disk=disk,
        winner=fitting[0][0].label if different and disk and fitting else None,
    )


def _fits(entry: RecordEntry, size: int | None) -> bool:
    return entry.size is None or entry.size == size


def _is_as_recorded(path: _Path) -> bool:
    return any(_fits(entry, path.size) for _, entry in path.claims)


def _is_shorter(path: _Path) -> bool:
    sizes = [entry.size for _, entry in path.claims if entry.size is not None]
    return path.size is not None and bool(sizes) and path.size < min(sizes)


def _sha256(path: str, *, root: Root) -> str | None:
    import hashlib  # noqa: PLC0415 - brings OpenSSL in, and hardly any file is hashed

    digest = hashlib.sha256()
    try:
        with root.open(path) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except (OSError, ValueError):
        return None
    return digest.hexdigest()


def _sort_out(path: _Path, *, missing: dict[str, list[str]], resized: dict[str, list[str]]) -> None:
    """Note a path under each owner: gone, or of a size that no owner records."""
    if path.size is not None and _is_as_recorded(path):
        return
    for owner, entry in path.claims:
        if entry.path.endswith(_ABOUT_ITSELF) and posixpath.dirname(entry.path) == owner.info:
            continue
        (missing if path.size is None else resized)[owner.label].append(entry.path)


def _grouped(found: Mapping[str, list[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((label, tuple(sorted(paths))) for label, paths in sorted(found.items()))
