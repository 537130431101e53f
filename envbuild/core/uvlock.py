"""uv.lock as text: what is rewritten in it before it is written, and what is read from it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from envbuild.core.scratch import stand_in_sha256, with_real_pages
from envbuild.core.tomltext import TomlError, parse_toml
from envbuild.core.wheellines import without_foreign
from envbuild.errors import WorldError
from envbuild.model.layers import UV_LOCK_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envbuild.core.scratch import ScratchIndex
    from envbuild.model.lock import TargetLock
    from envbuild.model.target import Target
    from envbuild.model.wheel import WheelFile

_METADATA = re.compile(r'\[\[manifest\.dependency-metadata\]\]\nname = "([^"]+)"\n(?:[^\n]+\n)*\n?')
_REQUIRES_PYTHON = re.compile(r'^requires-python = "[^"]*"$', re.MULTILINE)


def finish_uv_lock(
    text: str,
    *,
    index: ScratchIndex,
    wheels: Iterable[WheelFile],
    requires_python: str,
    target: Target,
) -> str:
    """Turn the scratch project's uv.lock into the project's own.

    Addresses become the real ones, the requirements that were given by hand go, files that do
    not fit the target are left out, and a hash that was not known is not there.
    """
    wheels = tuple(wheels)
    given = {wheel.project for wheel in wheels}
    text = _METADATA.sub(lambda m: "" if canonicalize_name(m[1]) in given else m[0], text)
    text = text.replace("[manifest]\n\n[[package]]", "[[package]]")
    text = with_real_pages(text, index)
    for wheel in wheels:
        text = text.replace(f', hash = "sha256:{stand_in_sha256(wheel.url)}"', "")
    text = _REQUIRES_PYTHON.sub(f'requires-python = "{requires_python}"', text, count=1)
    return without_foreign(text, target)


def preferences_lock(lock: TargetLock, *, without: Iterable[str] = ()) -> str:
    """Render the least uv.lock that makes uv prefer the versions locked before."""
    left_out = {canonicalize_name(name) for name in without}
    lines = ["version = 1", "revision = 3", 'requires-python = ">=3.8"']
    for package in lock.packages:
        if package.name not in left_out and package.index:
            lines += [
                "",
                "[[package]]",
                f'name = "{package.name}"',
                f'version = "{package.version}"',
                f'source = {{ registry = "{package.index}" }}',
            ]
    return "\n".join(lines) + "\n"


def requires_python_in(text: str) -> str:
    """Return the Pythons that a uv.lock is for; empty where it does not say."""
    found = _REQUIRES_PYTHON.search(text)
    return found[0].partition('"')[2].rstrip('"') if found else ""


def versions_in(text: str) -> dict[str, str]:
    """Return the version of each package that a uv.lock takes from an index or an address.

    Raises WorldError where the text is no lock file.
    """
    return {
        package["name"]: package["version"]
        for package in uv_lock_document(text).get("package", [])
        if "version" in package and not {"virtual", "editable"} & set(package["source"])
    }


def uv_lock_document(text: str) -> dict[str, Any]:
    """Return what a uv.lock holds; raise WorldError where the text is no lock file."""
    try:
        document = parse_toml(text)
    except TomlError as error:
        raise _unreadable(str(error)) from None
    version = document.get("version")
    if version != UV_LOCK_SCHEMA:
        raise _unreadable(f"found `version = {version}`, wanted {UV_LOCK_SCHEMA}")
    packages = document.get("package", [])
    if not (isinstance(packages, list) and all(map(_is_package, packages))):
        raise _unreadable("found a `package` without a name or a source")
    return document


def _is_package(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    named = isinstance(entry.get("name"), str) and isinstance(entry.get("version", ""), str)
    return named and isinstance(entry.get("source"), dict)


def _unreadable(why: str) -> WorldError:
    return WorldError(f"`uv.lock` is not readable: {why}", hint="delete it and run `envbuild lock`")
