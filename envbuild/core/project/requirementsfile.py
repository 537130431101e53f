"""requirements.txt files as pip reads them, line by line and without reading any other file."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from envbuild.core.requirementtext import parse_requirement
from envbuild.core.wheeltags import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement

_COMMENT = re.compile(r"(?:^|\s)#.*$")
_OPTION = re.compile(r"(--?[A-Za-z][A-Za-z-]*)(?:[ \t]*=[ \t]*|[ \t]+|$)(.*)", re.DOTALL)
_LINE_OPTIONS = re.compile(r"\s(?=--[a-z])")
_SHORT = {
    "-r": "--requirement",
    "-c": "--constraint",
    "-e": "--editable",
    "-f": "--find-links",
    "-i": "--index-url",
}
_BY_INDEXES = "the index of each package comes from [tool.envbuild.indexes]"
_FOR_PIP = "it only concerns pip"
_REASONS = {
    "--constraint": "the lock itself binds every version",
    "--find-links": _BY_INDEXES,
    "--index-url": _BY_INDEXES,
    "--pypi-url": _BY_INDEXES,
    "--extra-index-url": _BY_INDEXES,
    "--no-index": _BY_INDEXES,
    "--trusted-host": _BY_INDEXES,
    "--require-hashes": "the lock always has hashes",
    "--pre": "a specifier that names a pre-release allows it",
    "--prefer-binary": _FOR_PIP,
    "--only-binary": _FOR_PIP,
    "--no-binary": "[tool.envbuild.build] says what is built from source",
    "--use-feature": _FOR_PIP,
}
_REQUIREMENT_OPTIONS = frozenset(
    {"--hash", "--config-settings", "--config-setting", "--global-option"}
)
_PROJECT_ITSELF = re.compile(r"\.(?:\[[^\]]*\])?")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+(?:\[[^\]]*\])?)")


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRequirement:
    """One requirement of a requirements file and its line."""

    requirement: Requirement
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Include:
    """Another requirements file that one names, as a path from the project's folder."""

    path: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """Something of a line that is left out on purpose."""

    text: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BadLine:
    """A line that cannot be used, and what to write instead."""

    message: str
    line: int
    hint: str | None = None


if TYPE_CHECKING:
    from typing import TypeAlias

    Entry: TypeAlias = FileRequirement | Include | Note | BadLine


def parse_requirements_file(path: str, text: str) -> tuple[Entry, ...]:
    """Read every line of a requirements file; ``path`` is relative to the project's folder."""
    return tuple(_entry(path, line, number) for number, line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with content and its number, continuations joined and comments dropped."""
    start, joined = 1, ""
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if not joined:
            start = number
        comment = raw.lstrip().startswith("#")
        if raw.endswith("\\") and not comment:
            joined += raw[:-1] + " "
            continue
        line = _COMMENT.sub("", joined + ("" if comment else raw)).strip()
        joined = ""
        if line:
            yield start, line
    line = _COMMENT.sub("", joined).strip()
    if line:
        yield start, line


def _entry(path: str, line: str, number: int) -> Entry:
    if line.startswith("-"):
        return _option(path, line, number)
    body, *options = _LINE_OPTIONS.split(line)
    for option in options:
        name = re.split(r"[=\s]", option, maxsplit=1)[0]
        if name not in _REQUIREMENT_OPTIONS:
            return _unknown(name, number)
    return _requirement(body.strip(), number)


def _option(path: str, line: str, number: int) -> Entry:
    match = _OPTION.fullmatch(line) or re.fullmatch(r"(-[rcefi])(.+)", line)
    if match is None:
        return _unknown(line.split(maxsplit=1)[0], number)
    name, value = _SHORT.get(match[1], match[1]), match[2].strip().strip("\"'")
    if name in _REASONS:
        return Note(text=f"`{name}` is not used: {_REASONS[name]}", line=number)
    if name not in {"--requirement", "--editable"}:
        return _unknown(match[1], number)
    if not value:
        return BadLine(message=f"found `{match[1]}` with nothing after it", line=number)
    if name == "--requirement":
        return _include(path, value, number)
    return _requirement(value, number, editable=True)


def _unknown(option: str, number: int) -> BadLine:
    return BadLine(
        message=f"found the option `{option}`, wanted one that requirements files have",
        line=number,
        hint="remove the option from the requirements file",
    )


def _include(path: str, value: str, number: int) -> Entry:
    if "://" in value or value.startswith("/"):
        return BadLine(
            message=f"found `-r {value}`, wanted a path relative to `{path}`",
            line=number,
            hint="copy the file into the project and name it by its relative path",
        )
    joined = posixpath.join(posixpath.dirname(path), value.replace("\\", "/"))
    return Include(path=posixpath.normpath(joined), line=number)


def _requirement(text: str, number: int, *, editable: bool = False) -> Entry:
    if _PROJECT_ITSELF.fullmatch(text.rstrip("/")):
        what = "the project itself is not locked, only what it needs"
        return Note(text=f"`{text}` is left out: {what}", line=number)
    named = _named(text)
    if named is None:
        return _unnamed(text, number)
    try:
        return FileRequirement(requirement=parse_requirement(named), line=number)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        reason = reason[:1].lower() + reason[1:]
        if editable or text.startswith((".", "/")):
            return _unnamed(text, number)
        option = re.search(r"\s(-[a-z])\s", text)
        return BadLine(
            message=f"found `{text}`, wanted a requirement (PEP 508): {reason}",
            line=number,
            hint=f"put `{option[1]}` on a line of its own" if option else None,
        )


def _named(text: str) -> str | None:
    """Return PEP 508 text for a line; None for a path or an address that names no project."""
    egg = _EGG.search(text)
    if re.match(r"(?:git|hg|svn|bzr)\+|https?://|file:", text):
        if egg is not None:
            address = _EGG.sub("", text)
            return f"{egg[1]} @ {address.replace('&', '#', 1) if '#' not in address else address}"
        return _wheel(text)
    return None if text.startswith(("./", "../", "/", "~")) else text


def _wheel(text: str) -> str | None:
    address, _, marker = text.partition(" ;")
    filename = posixpath.basename(address.partition("#")[0]).replace("%2B", "+")
    if len(filename) > LONGEST_NAME:
        return None
    try:
        name = parse_wheel_filename(filename)[0]
    except InvalidWheelFilename:
        return None
    return f"{name} @ {address.strip()}" + (f" ;{marker}" if marker else "")


def _unnamed(text: str, number: int) -> BadLine:
    if "://" in text:
        hint = "write `NAME @ ADDRESS`, or name it in [tool.envbuild.build]: NAME = { git = ... }"
        return BadLine(
            message="found an address without a name, wanted a requirement", line=number, hint=hint
        )
    folder = text.partition("[")[0].rstrip("/")
    if folder.endswith((".whl", ".tar.gz", ".zip")):
        return BadLine(
            message=f"found the file `{text}`, wanted a requirement",
            line=number,
            hint="write `NAME @ ADDRESS` with the address that the file can be had from",
        )
    name = posixpath.basename(folder) or "NAME"
    return BadLine(
        message=f"found the path `{text}`, wanted a requirement",
        line=number,
        hint=f'write under [tool.envbuild.build]: {name} = {{ path = "{folder}" }}',
    )
