"""``[tool.envbuild]`` of a pyproject.toml, read and checked as a whole."""

from __future__ import annotations

import posixpath
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from envbuild.core.project.builds import BUILD_KEYS, INDEX_KEYS, builds_of, indexes_of
from envbuild.core.project.checks import check_builds, check_layer, check_python, check_torch
from envbuild.core.project.doctor import DOCTOR_KEYS
from envbuild.core.project.fields import Fields, Problems, listed, nearest, shown
from envbuild.core.project.moment import moment_of
from envbuild.core.project.positions import toml_positions
from envbuild.core.project.requirements import (
    declared_names,
    file_requirements,
    files_of,
    table_requirements,
)
from envbuild.core.project.targets import TARGET_KEYS, targets_of
from envbuild.core.project.uvshape import check_uv
from envbuild.core.tomltext import TomlError, parse_toml
from envbuild.core.uvhazards import hazards_of, replaced_indexes, uv_cutoff
from envbuild.errors import InputError
from envbuild.model.project import Layer, Project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.model.project import DeclaredRequirement
    from envbuild.model.target import Target

TOP_KEYS = (
    "layer",
    "exclude-newer",
    "default-target",
    "requirements",
    "targets",
    "build",
    "indexes",
    "doctor",
)
KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "[tool.envbuild]": TOP_KEYS,
        "[tool.envbuild.targets.NAME]": TARGET_KEYS,
        "[tool.envbuild.build]": BUILD_KEYS,
        "[tool.envbuild.indexes]": INDEX_KEYS,
        "[tool.envbuild.doctor]": DOCTOR_KEYS,
    }
)
MINIMAL = """\
[tool.envbuild.targets.cu128]
python = "3.11"
gpus = ["RTX PRO 2000 Blackwell"]
"""

_NOTHING: Mapping[str, str] = MappingProxyType({})
_TOML_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


def parse_project(
    text: str,
    *,
    requirement_files: Mapping[str, str] = _NOTHING,
    path: str = "pyproject.toml",
    environ: Mapping[str, str] = _NOTHING,
) -> Project:
    """Return the project that a pyproject.toml describes.

    ``requirement_files`` maps the names of `requirement_files_named` to their texts; ``environ``
    may override the indexes. Raises one InputError with every problem that was found.
    """
    document = _document(text, path)
    if "envbuild" not in _tool(document):
        raise InputError(
            f"found no `[tool.envbuild]` in `{path}`, wanted a table with at least one target",
            hint=f"add this to `{path}`:\n\n{MINIMAL}",
        )
    problems = Problems(path, toml_positions(text))
    texts = {posixpath.normpath(name): content for name, content in requirement_files.items()}
    project = _Reader(document, problems).project(text, texts, environ)
    problems.raise_any()
    return project


def requirement_files_named(
    text: str,
    *,
    requirement_files: Mapping[str, str] = _NOTHING,
    path: str = "pyproject.toml",
) -> tuple[str, ...]:
    """Return the requirements files to read, as paths relative to the project.

    Files that a file includes are named once its text is in ``requirement_files``, so call this
    until it names nothing new.
    """
    envbuild = _tool(_document(text, path)).get("envbuild")
    named = envbuild.get("requirements") if isinstance(envbuild, dict) else None
    items = named if isinstance(named, list) else []
    names = [item.strip() for item in items if isinstance(item, str)]
    texts = {posixpath.normpath(name): content for name, content in requirement_files.items()}
    return files_of(tuple(posixpath.normpath(name) for name in names if name), texts)


def _document(text: str, path: str) -> dict[str, Any]:
    if text.startswith("\ufeff"):
        raise InputError(
            f"{path}:1: found a byte order mark, wanted plain UTF-8",
            hint="save the file as UTF-8 without BOM",
        )
    try:
        return parse_toml(text)
    except TomlError as error:
        message = str(error)
        found = _TOML_LINE.search(message)
        line = int(found[1]) if found else len(text.splitlines()) or 1
        message = _TOML_LINE.sub("", message)
        message = message[:1].lower() + message[1:]
        raise InputError(f"{path}:{line}: found invalid TOML: {message}") from error


def _tool(document: Mapping[str, Any]) -> Mapping[str, Any]:
    tool = document.get("tool")
    return tool if isinstance(tool, dict) else {}


class _Reader:
    """One pass over the document; each step reads a part and records its problems."""

    def __init__(self, document: dict[str, Any], problems: Problems) -> None:
        root = Fields(document, (), problems)
        self._document = document
        self._problems = problems
        self._project = root.table("project")
        self._tool = root.table("tool")
        self._table = self._tool.table("envbuild")

    def project(self, text: str, texts: Mapping[str, str], environ: Mapping[str, str]) -> Project:
        self._table.only(TOP_KEYS)
        check_uv(self._tool)
        layer = self._table.choice("layer", Layer, Layer.PROJECT)
        files = self._files(layer, texts)
        self._check_source(layer, files)
        declared = table_requirements(self._document, self._problems)
        from_files, notes = file_requirements(files, texts, self._problems)
        requirements = (*declared, *from_files)
        targets = self._targets(requirements)
        if layer is Layer.PROJECT:
            check_layer(self._table.table("targets"), targets)
        builds = builds_of(self._table.table("build"))
        check_builds(self._table.table("build"), builds, requirements)
        indexes = indexes_of(self._table.table("indexes"), environ)
        hazards = (
            *hazards_of(self._document, indexes),
            *replaced_indexes(self._document, indexes),
        )
        return Project(
            text=text,
            layer=layer,
            targets=targets,
            default_target=self._default_target(targets),
            name=self._project.text("name"),
            requires_python=self._project.text("requires-python"),
            requirements=requirements,
            requirement_files=files,
            builds=builds,
            indexes=indexes,
            exclude_newer=self._exclude_newer(),
            notes=(
                *notes,
                *(_cpu_notes(targets, self._table) if indexes.pytorch is not None else ()),
                *hazards,
            ),
        )

    def _files(self, layer: Layer, texts: Mapping[str, str]) -> tuple[str, ...]:
        named = []
        for index, text in self._table.texts("requirements"):
            name = posixpath.normpath(text)
            named.append(name)
            if layer is Layer.PIP and name not in texts:
                self._table.problem("requirements", index, message=f"found no file `{text}`")
        if named and layer is Layer.PROJECT:
            self._table.problem(
                "requirements",
                message="found requirements files in layer `project`, wanted layer `pip`",
                hint='layer = "pip", or move the requirements to `[project] dependencies`',
            )
            return ()
        return files_of(tuple(named), texts)

    def _check_source(self, layer: Layer, files: tuple[str, ...]) -> None:
        """Check that the requirements stand where they can be read."""
        has_project = bool(self._project.raw)
        if layer is Layer.PROJECT and not has_project:
            self._table.problem(
                message="found no `[project]` table, which layer `project` needs",
                hint='layer = "pip" and requirements = ["requirements.txt"], or add `[project]`',
            )
        if layer is Layer.PIP and not files and not has_project:
            self._table.problem(
                message="found neither `requirements` nor a `[project]` table",
                hint='requirements = ["requirements.txt"]',
            )
        dynamic = self._project.raw.get("dynamic")
        if isinstance(dynamic, list) and "dependencies" in dynamic and not files:
            self._project.problem(
                "dynamic",
                message="found dynamic `dependencies`, wanted ones that stand in a file",
                hint='write them in `[project] dependencies`, or set layer = "pip" and'
                ' requirements = ["requirements.txt"] in `[tool.envbuild]`',
            )

    def _targets(self, requirements: tuple[DeclaredRequirement, ...]) -> tuple[Target, ...]:
        tables = self._table.table("targets")
        if not tables.raw:
            self._table.problem(
                message="found no target, wanted at least one", hint=f"add this:\n\n{MINIMAL}"
            )
        targets = targets_of(
            tables,
            extras=declared_names(self._project.raw.get("optional-dependencies")),
            groups=declared_names(self._document.get("dependency-groups")),
        )
        check_python(tables, targets, self._project.raw.get("requires-python"))
        check_torch(tables, targets, requirements)
        return targets

    def _default_target(self, targets: tuple[Target, ...]) -> str:
        names = tuple(self._table.table("targets").raw)
        text = self._table.text("default-target")
        if text is not None and text not in names:
            guess = nearest(text, names)
            self._table.problem(
                "default-target",
                message=f"found `{text}`, wanted {listed(names) or 'the name of a target'}{guess}",
            )
        return text or (targets[0].name if targets else "")

    def _exclude_newer(self) -> str | None:
        value = self._table.raw.get("exclude-newer")
        if value is None:
            return uv_cutoff(self._document)
        moment = moment_of(value)
        if moment is not None:
            return moment
        self._table.problem(
            "exclude-newer",
            message=f"found {shown(value)}, wanted a date, or a time with its offset (RFC 3339)",
            hint='exclude-newer = "2026-11-01T00:00:00Z"',
        )
        return None


def _cpu_notes(targets: tuple[Target, ...], table: Fields) -> tuple[str, ...]:
    """Say which targets get the CPU build though nobody asked for it; PyPI's has CUDA."""
    raw = table.table("targets").raw
    return tuple(
        f"target `{target.name}` names neither `gpus` nor `cuda`, so it gets the CPU build of torch"
        for target in targets
        if target.is_cpu and "cuda" not in raw[target.name]
    )
