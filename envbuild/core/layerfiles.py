"""The files around an environment that say what should be in it, read and never judged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from envbuild.core.installedrequires import parsed
from envbuild.core.locktexts import read_pylock, read_requirements, read_uv_lock
from envbuild.core.redact import redact_text
from envbuild.core.tomltext import TomlError, parse_toml
from envbuild.core.uvhazards import hazards_of, is_pytorch
from envbuild.errors import EnvbuildError
from envbuild.model.layers import UV_LOCK_SCHEMA, Layers
from envbuild.model.project import IndexUrls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeAlias

    from envbuild.core.installedrequires import Environments
    from envbuild.model.layers import LockFile

    Named: TypeAlias = tuple[tuple[str, str], ...]
    Reader: TypeAlias = Callable[[str, str, Environments], LockFile | None]

COMPANIONS = ("torchvision", "torchaudio", "torchcodec", "torchtext")
"""Packages that PyTorch's index serves for the same build as torch."""

_BROKEN = (EnvbuildError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
_LONGEST_REASON = 200
_FORMAT = re.compile(
    r"""^(?P<key>version|lock-version)[ ]=[ ]"?(?P<format>(?P<major>\d{1,3})(?:\.\d{1,3})?)"?$""",
    re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerTexts:
    """The files' texts: each None or empty where there is no such file.

    ``pylocks`` and ``requirements`` pair paths, relative to the project, with texts.
    ``unreadable`` pairs the path of a file that could not be read with the reason, ``unread`` that
    of one which is larger than is read.
    """

    pyproject: str | None = None
    uv_lock: str | None = None
    pylocks: Named = ()
    requirements: Named = ()
    unreadable: Named = ()
    unread: Named = ()


def layers_of(
    texts: LayerTexts, *, directory: str, environments: Environments, owned: bool = True
) -> Layers:
    """Read the layers of a project for the environments that its markers may be judged in.

    What cannot be read is in ``unreadable``, with the reason; nothing is raised.
    """
    unreadable: list[tuple[str, str]] = list(texts.unreadable)
    newer: list[tuple[str, str]] = []
    document = _document(texts.pyproject, unreadable)
    uv = _table(document, "tool", "uv")
    envbuild = _table(document, "tool", "envbuild")

    def read(reader: Reader, path: str, text: str | None) -> Iterator[LockFile]:
        found = newer_format(text or "")
        if found:
            newer.append((path, found))
            return
        try:
            lock = reader(path, text, environments) if text is not None else None
        except _BROKEN as error:
            unreadable.append((path, _reason(error)))
        else:
            yield from () if lock is None else (lock,)

    def uv_reader(path: str, text: str, environments: Environments) -> LockFile:
        return read_uv_lock(path, text, environments, groups=default_groups(document))

    uv_lock = next(read(uv_reader, "uv.lock", texts.uv_lock), None)
    return Layers(
        directory=directory,
        managed=uv.get("managed") is not False,
        uv_lock=uv_lock,
        pylocks=tuple(one for named in texts.pylocks for one in read(read_pylock, *named)),
        requirements=tuple(
            one for named in texts.requirements for one in read(read_requirements, *named)
        ),
        has_pyproject=texts.pyproject is not None,
        uses_envbuild=bool(envbuild.get("targets")),
        index_strategy=_text(uv, "index-strategy"),
        torch_backend=_text(uv, "torch-backend"),
        owned=owned,
        requires_python=_text(_table(document, "project"), "requires-python") or "",
        default_target=_default_target(envbuild),
        hazards=_hazards(document),
        unrouted=unrouted(document),
        unreadable=tuple(unreadable),
        unread=texts.unread,
        newer=tuple(newer),
    )


def newer_format(text: str) -> str:
    """Return the format that a lock says it is of, where that is newer than those that are read."""
    match = _FORMAT.search(text.partition("[[")[0])
    if match is None or int(match["major"]) <= UV_LOCK_SCHEMA:
        return ""
    return f"{match['key']} {match['format']}"


def _document(text: str | None, unreadable: list[tuple[str, str]]) -> dict[str, Any]:
    try:
        return parse_toml(text or "")
    except TomlError as error:
        unreadable.append(("pyproject.toml", _reason(error)))
        return {}


def _reason(error: Exception) -> str:
    text = error.message if isinstance(error, EnvbuildError) else str(error)
    if isinstance(error, RecursionError):
        text = "too many brackets in one another"
    return redact_text(" ".join(text.split()))[:_LONGEST_REASON] or type(error).__name__


def _table(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    found: Any = table
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _text(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    return value if isinstance(value, str) else None


def _default_target(envbuild: Mapping[str, Any]) -> str:
    first = next(iter(_table(envbuild, "targets")), "")
    return _text(envbuild, "default-target") or first


def _hazards(document: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        return hazards_of(document, IndexUrls())
    except (TypeError, AttributeError, KeyError):
        return ()


def default_groups(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the dependency groups that `uv sync` installs unasked."""
    defined = _table(document, "dependency-groups")
    named = _table(document, "tool", "uv").get("default-groups", ["dev"])
    names = list(defined) if named == "all" else named
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def unrouted(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the companions that the project asks for and that may come from another index.

    They are those without an entry in ``[tool.uv.sources]``, where torch has one that leads to
    PyTorch's index.
    """
    uv = _table(document, "tool", "uv")
    indexes = uv.get("index", [])
    urls = {
        table.get("name"): table.get("url")
        for table in (indexes if isinstance(indexes, list) else [])
        if isinstance(table, dict)
    }
    sources: dict[str, Any] = {
        canonicalize_name(name): entry for name, entry in _table(uv, "sources").items()
    }
    entries = sources.get("torch", [])
    names = [
        one.get("index")
        for one in (entries if isinstance(entries, list) else [entries])
        if isinstance(one, dict)
    ]
    found = [urls.get(name) for name in names]
    if not any(isinstance(url, str) and is_pytorch(url, IndexUrls()) for url in found):
        return ()
    asked = set(_asked(document))
    return tuple(name for name in COMPANIONS if name in asked and name not in sources)


def _asked(document: Mapping[str, Any]) -> Iterator[str]:
    project = _table(document, "project")
    lists = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    lists += list(_table(document, "dependency-groups").values())
    for texts in lists:
        for text in texts if isinstance(texts, list) else ():
            requirement = parsed(text) if isinstance(text, str) else None
            if requirement is not None:
                yield canonicalize_name(requirement.name)
