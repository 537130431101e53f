"""``[tool.envbuild.build]`` and ``[tool.envbuild.indexes]``: what is compiled, and mirrors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement
from packaging.utils import InvalidName, canonicalize_name

from envbuild.core.lockvalues import GIT, leads_out
from envbuild.core.project.fields import Problem, listed, shown
from envbuild.core.requirementtext import parse_requirement
from envbuild.model.project import BuildSpec, IndexUrls, Prefer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from packaging.requirements import Requirement

    from envbuild.core.project.fields import Fields

BUILD_KEYS = ("path", "git", "prefer", "requires")
INDEX_KEYS = ("pytorch", "pyg", "flash-attn", "pypi")
ENVIRONMENT = {key: f"ENVBUILD_INDEX_{key.upper().replace('-', '_')}" for key in INDEX_KEYS}
DEFAULT_INDEX_ALONE = "pypi"

_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]|\A\s*\Z")
_SECRET = re.compile(r"https?://[^/@]*@|\w+://[^/@:]*:[^/@]*@")
"""An address with a name for HTTP, which may be a token, or with a password."""

_ACCELERATOR = re.compile(r"/(?:cu\d{2,3}|cpu|nightly)/?$")


def builds_of(tables: Fields) -> tuple[BuildSpec, ...]:
    """Read every build, in the order of the file; names come normalised."""
    found: dict[str, BuildSpec] = {}
    for key in tables.raw:
        try:
            name = str(canonicalize_name(key, validate=True))
        except InvalidName:
            tables.problem(key, message=f"found `{key}`, wanted the name of a package")
            continue
        if name in found:
            tables.problem(key, message=f"found the same package twice, as `{name}`")
        found[name] = _build(tables, key, name)
    return tuple(found.values())


def _build(tables: Fields, key: str, name: str) -> BuildSpec:
    if isinstance(tables.raw[key], str):
        return BuildSpec(name=name, prefer=tables.choice(key, Prefer, Prefer.WHEEL_OR_SOURCE))
    fields = tables.table(key)
    fields.only(BUILD_KEYS)
    path, git = _path(fields), _git(fields)
    prefer = fields.choice("prefer", Prefer, Prefer.WHEEL_OR_SOURCE)
    if "path" in fields.raw and "git" in fields.raw:
        fields.problem("git", message="found both `path` and `git`, wanted one of them")
    if prefer is Prefer.WHEEL and (path or git):
        fields.problem(
            "prefer",
            message="found `wheel` for a package that is built from its source",
            hint="remove `prefer`",
        )
    return BuildSpec(name=name, path=path, git=git, prefer=prefer, requires=_requires(fields))


def _path(fields: Fields) -> str | None:
    text = fields.text("path")
    if text is None:
        return None
    if text.startswith(("/", "~", "$")) or re.match(r"[A-Za-z]:|\w+://", text) or _ODD.search(text):
        fields.problem("path", message=f"found `{text}`, wanted a folder relative to the project")
        return None
    return text.replace("\\", "/").rstrip("/")


def _git(fields: Fields) -> str | None:
    text = fields.text("git")
    if text is None:
        return None
    match = GIT.fullmatch(text)
    if match is None:
        fields.problem(
            "git",
            message=f"found `{text}`, wanted an address and a full commit",
            hint='git = "https://HOST/OWNER/NAME@COMMIT", with the 40 digits of the commit',
        )
        return None
    if leads_out(match["folder"] or ""):
        fields.problem("git", message=f"found `{match['folder']}`, wanted a folder of the commit")
        return None
    address = text.removeprefix("git+")
    if _SECRET.match(address):
        fields.problem(
            "git",
            message="found a user or password in the address, which would get into the lock",
            hint="leave it out: git asks its credential helper, or takes a key (`git@HOST:...`)",
        )
        return None
    return address


def _requires(fields: Fields) -> tuple[str, ...]:
    parsed = (_requirement(fields, index, text) for index, text in fields.texts("requires"))
    return tuple(str(requirement) for requirement in parsed if requirement is not None)


def _requirement(fields: Fields, index: int, text: str) -> Requirement | None:
    try:
        return parse_requirement(text)
    except InvalidRequirement:
        message = f"found `{text}`, wanted a requirement (PEP 508)"
        fields.problem("requires", index, message=message)
        return None


def indexes_of(fields: Fields, environ: Mapping[str, str]) -> IndexUrls:
    """Read the addresses; an environment variable goes before the key of the file."""
    fields.only(INDEX_KEYS)
    found = {key: _address(fields, key, environ) for key in INDEX_KEYS}
    default = IndexUrls()
    pytorch = found["pytorch"] or default.pytorch
    return IndexUrls(
        pytorch=None if pytorch == DEFAULT_INDEX_ALONE else pytorch,
        pyg=found["pyg"] or default.pyg,
        flash_attn=found["flash-attn"] or default.flash_attn,
        pypi=found["pypi"],
    )


def _address(fields: Fields, key: str, environ: Mapping[str, str]) -> str | None:
    text = fields.text(key)
    wrong = _wrong(key, text) if text is not None else None
    if wrong is not None:
        fields.problem(key, message=wrong, hint=_hint(key))
    variable = ENVIRONMENT[key]
    override = environ.get(variable, "").strip()
    if not override:
        return None if text is None or wrong else text.rstrip("/")
    wrong = _wrong(key, override)
    if wrong is not None:
        fields.problems.record(
            Problem(file="environment", line=None, where=variable, message=wrong, hint=_hint(key))
        )
        return None
    return override.rstrip("/")


def _wrong(key: str, text: str) -> str | None:
    """Say what is wrong with an address, without its credentials."""
    if key == "pytorch" and text == DEFAULT_INDEX_ALONE:
        return None
    found = shown(text if "://" in text else text.rpartition("@")[2])
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname if parts.scheme != "file" else parts.path)
    except ValueError:
        return f"found {found}, wanted a valid address"
    if parts.scheme not in {"http", "https", "file"} or not usable:
        return f"found {found}, wanted an address with {listed(('https://', 'http://', 'file://'))}"
    if key == "pytorch" and _ACCELERATOR.search(parts.path):
        return f"found {found}, wanted the folder above: envbuild chooses `cu128`, `cpu` ... itself"
    return None


def _hint(key: str) -> str | None:
    default = IndexUrls()
    example = {"pytorch": default.pytorch, "pyg": default.pyg, "flash-attn": default.flash_attn}
    return f'{key} = "{example.get(key) or "https://pypi.org/simple"}"'
