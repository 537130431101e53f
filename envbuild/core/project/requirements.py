"""The requirements of a project: its tables in pyproject.toml and the files it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envbuild.core.project.fields import Fields, Problem, nearest, shown
from envbuild.core.project.requirementsfile import (
    BadLine,
    FileRequirement,
    Include,
    Note,
    parse_requirements_file,
)
from envbuild.core.requirementtext import parse_requirement
from envbuild.model.project import DeclaredRequirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from envbuild.core.project.fields import Problems
    from envbuild.core.project.positions import KeyPath


def table_requirements(
    document: Mapping[str, Any], problems: Problems
) -> tuple[DeclaredRequirement, ...]:
    """Return what ``[project]`` and ``[dependency-groups]`` ask for.

    Dependency groups come with what they include, and a requirement on the project's own extras
    comes as the requirements of those extras.
    """
    project = Fields(document, (), problems).table("project")
    extras = project.table("optional-dependencies")
    found = list(_list(project, "dependencies", where="[project] dependencies", group=""))
    for extra in extras.raw:
        where = f"[project] optional-dependencies.{extra}"
        found += _list(extras, extra, where=where, group=f"extra:{canonicalize_name(extra)}")
    found += _Groups(Fields(document, (), problems).table("dependency-groups")).requirements()
    name = project.raw.get("name")
    return _with_own_extras(found, name) if isinstance(name, str) else tuple(found)


def declared_names(table: object) -> tuple[str, ...]:
    """Return the normalised names of extras or dependency groups."""
    return tuple(canonicalize_name(name) for name in table) if isinstance(table, dict) else ()


def _list(fields: Fields, key: str, *, where: str, group: str) -> Iterable[DeclaredRequirement]:
    for index, text in fields.texts(key):
        path = (*fields.path, key, index)
        parsed = _parsed(text, path, fields.problems)
        if parsed is not None:
            line = fields.problems.line(path)
            yield DeclaredRequirement(requirement=parsed, where=where, group=group, line=line)


def _parsed(text: str, path: KeyPath, problems: Problems) -> Requirement | None:
    try:
        return parse_requirement(text)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        reason = reason[:1].lower() + reason[1:]
        problems.add(path, f"found `{text}`, wanted a requirement (PEP 508): {reason}")
        return None


class _Groups:
    """Dependency groups (PEP 735), whose items are requirements or other groups."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._keys: dict[str, str] = {canonicalize_name(key): key for key in fields.raw}
        self._problems = fields.problems

    def requirements(self) -> list[DeclaredRequirement]:
        if len(self._keys) < len(self._fields.raw):
            self._report_twins()
        return [
            DeclaredRequirement(
                requirement=parsed,
                where=f"[dependency-groups] {self._keys[holder]}",
                group=f"group:{name}",
                line=self._problems.line(path),
            )
            for name in self._keys
            for holder, path, text in self._items(name, (name,))
            if (parsed := self._read(name, holder, path, text)) is not None
        ]

    def _report_twins(self) -> None:
        for key in self._fields.raw:
            kept = self._keys[canonicalize_name(key)]
            if key != kept:
                self._fields.problem(key, message=f"found the same group twice, also as `{kept}`")

    def _read(self, name: str, holder: str, path: KeyPath, text: str) -> Requirement | None:
        """Parse an item; only the group that holds it reports what is wrong with it."""
        if name == holder:
            return _parsed(text, path, self._problems)
        try:
            return parse_requirement(text)
        except InvalidRequirement:
            return None

    def _items(self, name: str, via: tuple[str, ...]) -> Iterable[tuple[str, KeyPath, str]]:
        key = self._keys[name]
        items = self._fields.raw[key]
        top = len(via) == 1
        if not isinstance(items, list):
            if top:
                self._fields.problem(key, message=f"found {shown(items)}, wanted a list")
            return
        for index, item in enumerate(items):
            if isinstance(item, str):
                yield name, (*self._fields.path, key, index), item
            elif isinstance(item, dict) and isinstance(item.get("include-group"), str):
                yield from self._included(item["include-group"], key, index, via)
            elif top:
                message = f'found {shown(item)}, wanted a requirement or {{ include-group = "…" }}'
                self._fields.problem(key, index, message=message)

    def _included(
        self, named: str, key: str, index: int, via: tuple[str, ...]
    ) -> Iterable[tuple[str, KeyPath, str]]:
        name, top = canonicalize_name(named), len(via) == 1
        if name in via:
            if name == via[0]:
                circle = " -> ".join([*via, name])
                self._fields.problem(key, index, message=f"found a cycle of groups: {circle}")
        elif name in self._keys:
            yield from self._items(name, (*via, name))
        elif top:
            guess = nearest(named, self._fields.raw)
            self._fields.problem(key, index, message=f"found the unknown group `{named}`{guess}")


def _with_own_extras(
    found: list[DeclaredRequirement], name: str
) -> tuple[DeclaredRequirement, ...]:
    own = canonicalize_name(name)
    by_extra: dict[str, list[DeclaredRequirement]] = {}
    for declared in found:
        if declared.group.startswith("extra:"):
            by_extra.setdefault(declared.group.partition(":")[2], []).append(declared)

    def expanded(
        declared: DeclaredRequirement, marker: Marker | None, group: str, via: tuple[str, ...]
    ) -> Iterable[DeclaredRequirement]:
        requirement = declared.requirement
        both = _both(marker, requirement.marker)
        if canonicalize_name(requirement.name) != own:
            yield _moved(declared, both, group)
            return
        for extra in sorted(canonicalize_name(extra) for extra in requirement.extras):
            if extra in via:
                continue  # an extra that names itself adds nothing
            for inner in by_extra.get(extra, ()):
                yield from expanded(inner, both, group, (*via, extra))

    return tuple(
        result
        for declared in found
        for result in expanded(
            declared, None, declared.group, (declared.group.removeprefix("extra:"),)
        )
    )


def _both(first: Marker | None, second: Marker | None) -> Marker | None:
    if first is None or second is None:
        return first or second
    return Marker(f"({first}) and ({second})")


def _moved(declared: DeclaredRequirement, marker: Marker | None, group: str) -> DeclaredRequirement:
    if group == declared.group:
        return declared
    requirement = Requirement(str(declared.requirement))
    requirement.marker = marker
    return DeclaredRequirement(
        requirement=requirement, where=declared.where, group=group, line=declared.line
    )


def files_of(named: tuple[str, ...], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files named, and those that they include as far as their texts are given."""
    found: dict[str, None] = {}
    waiting = list(named)
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        found[path] = None
        entries = parse_requirements_file(path, texts.get(path, ""))
        waiting += [entry.path for entry in entries if isinstance(entry, Include)]
    return tuple(found)


def file_requirements(
    paths: tuple[str, ...], texts: Mapping[str, str], problems: Problems
) -> tuple[tuple[DeclaredRequirement, ...], tuple[str, ...]]:
    """Return the requirements of the files given, and notes on what of them is not used."""
    found: list[DeclaredRequirement] = []
    notes: list[str] = []
    for path in paths:
        for entry in parse_requirements_file(path, texts.get(path, "")):
            if isinstance(entry, FileRequirement):
                found.append(
                    DeclaredRequirement(requirement=entry.requirement, where=path, line=entry.line)
                )
            elif isinstance(entry, Note):
                notes.append(f"{path}:{entry.line}: {entry.text}")
            else:
                _report(path, entry, texts, problems)
    return tuple(found), tuple(notes)


def _report(
    path: str, entry: Include | BadLine, texts: Mapping[str, str], problems: Problems
) -> None:
    if isinstance(entry, BadLine):
        message, hint = entry.message, entry.hint
    elif entry.path in texts:
        return
    else:
        message, hint = f"found no file `{entry.path}`, which `-r` names here", None
    problems.record(Problem(file=path, line=entry.line, where="", message=message, hint=hint))
