"""`[tool.envbuild.doctor]` of a pyproject.toml, and the GPUs that its targets name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from envbuild.core.tomltext import TomlError, parse_toml
from envbuild.errors import InputError

if TYPE_CHECKING:
    from envbuild.core.project.fields import Fields
    from envbuild.model.target import Gpu

DOCTOR_KEYS = ("ignore",)
_PREFIX = re.compile(r"EB\d{0,3}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorTable:
    """What a project says to doctor.

    ``ignore`` pairs a code, or the beginning of codes, with the reason. ``gpus`` pairs the name
    of each target with its GPUs, and ``unknown`` with the names there that are no known GPU's.
    ``builds`` are the packages of ``[tool.envbuild.build]``.
    """

    ignore: tuple[tuple[str, str], ...] = ()
    gpus: tuple[tuple[str, tuple[Gpu, ...]], ...] = ()
    unknown: tuple[tuple[str, tuple[str, ...]], ...] = ()
    builds: tuple[str, ...] = ()


def parse_doctor_table(text: str, *, path: str = "pyproject.toml") -> DoctorTable:
    """Read the table; raise InputError with every problem of it.

    A file that is no TOML says nothing: what is wrong with it is for `envbuild lock` to say.
    """
    # Most environments have no project around them, and need none of this.
    from envbuild.core.project.fields import Fields, Problems  # noqa: PLC0415
    from envbuild.core.project.positions import toml_positions  # noqa: PLC0415

    try:
        document = parse_toml(text)
    except TomlError:
        return DoctorTable()
    tool = document.get("tool")
    own = tool.get("envbuild") if isinstance(tool, dict) else None
    if not isinstance(own, dict):
        return DoctorTable()
    problems = Problems(path, toml_positions(text))
    table = Fields(own, ("tool", "envbuild"), problems).table("doctor")
    table.only(DOCTOR_KEYS)
    ignore = _ignored(table)
    problems.raise_any()
    builds = own.get("build")
    named = _named(own.get("targets"))
    return DoctorTable(
        ignore=ignore,
        gpus=tuple((name, _known(words)) for name, words in named),
        unknown=tuple((name, _unknown(words)) for name, words in named),
        builds=tuple(map(canonicalize_name, builds)) if isinstance(builds, dict) else (),
    )


def code_prefix(word: str) -> str:
    """Return a code or the beginning of one in capitals; raise InputError for anything else."""
    code = word.strip().upper()
    if _PREFIX.fullmatch(code):
        return code
    raise InputError(
        f"found `{word}`, wanted the code of a rule or its beginning, `EB301` or `EB3`",
        hint="`envbuild rules` lists them",
    )


def _ignored(table: Fields) -> tuple[tuple[str, str], ...]:
    ignore = table.table("ignore")
    found = []
    for key in ignore.raw:
        if not _PREFIX.fullmatch(key):
            ignore.problem(key, message=f"found `{key}`, wanted a code like `EB203` or `EB2`")
        reason = ignore.text(key)
        if reason is None and ignore.raw[key] is None:
            ignore.problem(key, message="found no reason, wanted a text")
        found.append((key, reason or ""))
    return tuple(found)


def _named(targets: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:  # noqa: ANN401 - a TOML value
    """Pair the name of each target with what it calls its GPUs."""
    if not isinstance(targets, dict):
        return ()
    tables = ((name, table) for name, table in targets.items() if isinstance(table, dict))
    named = ((name, table.get("gpus")) for name, table in tables)
    return tuple((name, tuple(map(str, gpus))) for name, gpus in named if isinstance(gpus, list))


def _known(names: tuple[str, ...]) -> tuple[Gpu, ...]:
    return tuple(gpu for name in names if (gpu := _gpu(name)) is not None)


def _unknown(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if _gpu(name) is None)


def _gpu(name: str) -> Gpu | None:
    from envbuild.core.gpus import UnknownGpuError, parse_gpu  # noqa: PLC0415

    try:
        return parse_gpu(name)
    except UnknownGpuError:
        return None
