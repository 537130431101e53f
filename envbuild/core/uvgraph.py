"""What `uv sync` would install from a uv.lock: the packages that the project's root reaches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from packaging.markers import InvalidMarker, Marker
from packaging.utils import canonicalize_name

from envbuild.core.installedrequires import holds
from envbuild.core.redact import redact_url
from envbuild.errors import WorldError
from envbuild.model.layers import LockedVersion, Taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias, TypeGuard

    from envbuild.core.installedrequires import Environments

    Table: TypeAlias = Mapping[str, Any]

# How uv writes that an extra or a group of a package is asked for, in markers of projects with
# conflicts: `extra-4-demo-cu128`, `group-4-demo-dev`. The number is the length of the name.
_ASKED = re.compile(r"""extra\s*(==|!=)\s*(['"])((?:extra|group)-\d+-[^'"]*)\2""")
_TRUE, _FALSE = "python_version >= '0'", "python_version < '0'"
_LONGEST_MARKER = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """The extras and groups of the root that are asked for; ``flag`` is how on a command line.

    ``members`` are the other packages of the workspace.
    """

    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    flag: str = ""


class UvGraph:
    """The packages of a uv.lock as a graph, for one Python and platform.

    Everything that is no table where uv writes one is passed over: the lock may be broken.
    """

    def __init__(self, document: Table, environments: Environments) -> None:
        self._environments = environments
        self._manifest = _table(document, "manifest")
        self._packages = [_package(entry) for entry in _tables(document, "package")]
        self._by_name: dict[str, list[Table]] = {}
        for package in self._packages:
            self._by_name.setdefault(package["name"], []).append(package)
        self._holds: dict[tuple[str, Asked], bool] = {}

    @property
    def root(self) -> Table | None:
        """The project itself, None where the lock has none at its own folder."""
        for package in self._packages:
            source = package["source"]
            if any(source.get(kind) == "." for kind in ("virtual", "editable", "directory")):
                return package
        return None

    def everything(self) -> tuple[LockedVersion, ...]:
        """Return every package that comes from elsewhere."""
        return tuple(locked(one) for one in self._packages if _is_installed(one))

    def reached(self, asked: Asked) -> tuple[LockedVersion, ...]:
        """Return what is installed for the root, sorted by name; all where there is no root."""
        root = self.root
        if root is None:
            return self.everything()
        found = self._walk(root, asked)
        return tuple(
            sorted((locked(one) for one in found if _is_installed(one)), key=lambda one: one.name)
        )

    def choices(self) -> Iterator[Asked]:
        """Give each extra and each group of the root on its own, and the workspace as a whole."""
        root = self.root or {}
        for name in _keys(root, "optional-dependencies"):
            yield Asked(extras=(name,), flag=f"--extra {name}")
        for name in _keys(root, "dev-dependencies"):
            yield Asked(groups=(name,), flag=f"--group {name}")
        members = self._manifest.get("members")
        names = [one for one in members if one in self._by_name] if _is_names(members) else []
        if len(names) > 1:
            yield Asked(members=tuple(names), flag="--all-packages")

    def _walk(self, root: Table, asked: Asked) -> list[Table]:
        seen: set[tuple[int, str]] = set()
        found: dict[int, Table] = {}
        todo = [*self._of(root, "", asked)]
        for member in asked.members:
            for package in self._by_name[member]:
                todo += self._of(package, "", asked)
        for extra in asked.extras:
            todo += self._of(root, extra, asked)
        for group in asked.groups:
            todo += self._listed(_table(root, "dev-dependencies"), group, asked)
        while todo:
            package, extra = todo.pop()
            key = (id(package), extra)
            if key not in seen:
                seen.add(key)
                found[id(package)] = package
                todo += self._of(package, extra, asked)
        return list(found.values())

    def _of(self, package: Table, extra: str, asked: Asked) -> Iterator[tuple[Table, str]]:
        if extra:
            return self._listed(_table(package, "optional-dependencies"), extra, asked)
        return self._edges(_tables(package, "dependencies"), asked)

    def _listed(self, table: Table, key: str, asked: Asked) -> Iterator[tuple[Table, str]]:
        for name in table:
            if canonicalize_name(name) == canonicalize_name(key):
                yield from self._edges(_tables(table, name), asked)

    def _edges(self, dependencies: Iterable[Table], asked: Asked) -> Iterator[tuple[Table, str]]:
        for dependency in dependencies:
            if self._applies(dependency.get("marker"), asked):
                for package in self._named(dependency):
                    yield package, ""
                    extras = dependency.get("extra", ())
                    names = extras if isinstance(extras, list) else ()
                    yield from ((package, name) for name in names if isinstance(name, str))

    def _named(self, dependency: Table) -> Iterator[Table]:
        """Give the package that an edge leads to: its version and source tell forks apart."""
        name = dependency.get("name")
        for package in self._by_name.get(name, ()) if isinstance(name, str) else ():
            version, source = dependency.get("version"), dependency.get("source")
            if version in (None, package.get("version")) and source in (None, package["source"]):
                yield package

    def _applies(self, marker: object, asked: Asked) -> bool:
        if not isinstance(marker, str):
            return True
        key = (marker, asked)
        if key not in self._holds:
            self._holds[key] = self._judge(marker, asked)
        return self._holds[key]

    def _judge(self, marker: str, asked: Asked) -> bool:
        if len(marker) > _LONGEST_MARKER:
            return True
        names = {_encoded("extra", self.root, name) for name in asked.extras}
        names |= {_encoded("group", self.root, name) for name in asked.groups}

        def answer(match: re.Match[str]) -> str:
            return _TRUE if (match[3] in names) == (match[1] == "==") else _FALSE

        try:
            return holds(Marker(_ASKED.sub(answer, marker)), self._environments)
        except (InvalidMarker, RecursionError):
            return True


def _encoded(kind: str, root: Table | None, name: str) -> str:
    project = str(root["name"]) if root else ""
    return f"{kind}-{len(project)}-{project}-{canonicalize_name(name)}"


def locked(package: Table) -> LockedVersion:
    """Return a package of the lock as a value; credentials of its address are dropped."""
    source = package["source"]
    address = source.get("registry") or source.get("url") or source.get("git") or ""
    files = [*_tables(package, "wheels")]
    sdist = package.get("sdist")
    files += [sdist] if isinstance(sdist, dict) else []
    hashes = (str(file.get("hash", "")) for file in files)
    return LockedVersion(
        name=canonicalize_name(package["name"]),
        version=str(package.get("version", "")),
        index=redact_url(str(address)),
        sha256=tuple(h.removeprefix("sha256:") for h in hashes if h.startswith("sha256:")),
        taken=_taken(source),
        wheels=tuple((_file_name(one), _size(one)) for one in _tables(package, "wheels")),
        built=isinstance(sdist, dict),
    )


def _taken(source: Table) -> Taken:
    if "registry" in source:
        return Taken.INDEX
    return Taken.ADDRESS if {"url", "path"} & set(source) else Taken.OTHER


def _file_name(wheel: Table) -> str:
    where = next((wheel[key] for key in ("filename", "url", "path") if key in wheel), "")
    name = str(where).partition("#")[0].rpartition("/")[2]
    return unquote(name) if "%" in name else name


def _size(wheel: Table) -> int | None:
    size = wheel.get("size")
    return size if isinstance(size, int) else None


def _is_installed(package: Table) -> bool:
    """Whether a package comes from an index or an address, and has a version to compare."""
    ours = {"virtual", "editable", "directory"} & set(package["source"])
    return not ours and isinstance(package.get("version"), str)


def _package(entry: Table) -> Table:
    if not (isinstance(entry.get("name"), str) and isinstance(entry.get("source"), dict)):
        raise WorldError("found a `package` without a name or a source")
    return entry


def _tables(table: Table, key: str) -> list[Table]:
    entries = table.get(key, ())
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


def _table(table: Table, key: str) -> Table:
    found = table.get(key, {})
    return found if isinstance(found, dict) else {}


def _is_names(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _keys(table: Table, key: str) -> tuple[str, ...]:
    return tuple(sorted(_table(table, key)))
