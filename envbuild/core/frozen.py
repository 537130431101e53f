"""A base that is kept: from what lies there to stubs that uv resolves around.

No index serves the builds of NVIDIA's images, and none is asked: each distribution of the base
stands as a stub of exactly its version on the local index, with no requirements but those of its
extras, for what else it needs lies in the base too.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envbuild.core.wheeltags import local_of
from envbuild.errors import InputError
from envbuild.model.cuda import CudaVersion
from envbuild.model.frozen import Frozen, FrozenPackage
from envbuild.model.stack import Candidate, IndexPin
from envbuild.model.wheel import IndexPage, PageKind, WheelFile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    from envbuild.model.installed import Distribution, Installed
    from envbuild.model.target import Target

    Extras: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

PAGE = "base"
"""The name of the local index that holds the stubs."""

_EXTRA = re.compile(r"""\bextra == ["']([^"']+)["']""")
_REASON = "the base has it, and it is kept"


def frozen_of(installed: Installed, target: Target) -> Frozen:
    """Return what an environment holds; raise InputError where it is not for the target."""
    _check(installed, target)
    found: dict[str, FrozenPackage] = {}
    unversioned: set[str] = set()
    for one in installed.distributions:
        if one.name in found or one.name in unversioned:
            continue
        version = _normal(one.version)
        if version is None:
            unversioned.add(one.name)
        else:
            found[one.name] = FrozenPackage(name=one.name, version=version, extras=_extras(one))
    torch = installed.torch if "torch" in found else None
    return Frozen(
        packages=tuple(found[name] for name in sorted(found)),
        python=installed.executable,
        torch=None if torch is None else torch.version,
        cuda=None if torch is None else torch.cuda,
        unversioned=tuple(sorted(unversioned)),
    )


def _check(installed: Installed, target: Target) -> None:
    where = installed.executable
    if not where:
        raise InputError(
            f"found no interpreter in `{installed.prefix}` of the base, wanted the one that sees "
            "its packages",
            hint="name it: `--base-python /usr/bin/python3`",
        )
    python = ".".join(installed.python.split(".")[:2])
    if python != target.python:
        raise InputError(
            f"the base's `{where}` is Python {python or 'of no known version'}, target "
            f"`{target.name}` wants {target.python}",
            hint=f'python = "{python}"' if python else "name the base's interpreter",
        )
    if installed.machine != target.platform.machine:
        raise InputError(
            f"the base's `{where}` is for {installed.machine}, target `{target.name}` for "
            f"{target.platform.machine}",
            hint="`platform` of the target names the machine",
        )


def _normal(version: str) -> str | None:
    try:
        return str(Version(version))
    except InvalidVersion:
        return None


def _extras(one: Distribution) -> Extras:
    found: dict[str, list[str]] = {}
    for text in one.requires:
        for extra in _extras_of(text):
            found.setdefault(extra, []).append(text)
    return tuple((extra, tuple(found[extra])) for extra in sorted(found))


def _extras_of(text: str) -> frozenset[str]:
    """Return the names that a requirement's marker compares ``extra`` with."""
    try:
        marker = Requirement(text).marker
    except InvalidRequirement:
        return frozenset()
    return frozenset(map(canonicalize_name, _EXTRA.findall(str(marker))))


def base_changes(frozen: Frozen, installed: Installed) -> tuple[str, ...]:
    """Return what an environment on top of the base does not see as it was locked."""
    changes = []
    for package in frozen.packages:
        one = installed.find(package.name)
        if one is None:
            changes.append(f"{package.name} {package.version} is not there")
        elif _normal(one.version) != package.version:
            changes.append(f"{package.name} is {one.version}, locked was {package.version}")
    build = None if installed.torch is None else installed.torch.version
    if not changes and frozen.torch is not None and build != frozen.torch:
        changes.append(f"torch is the build {build}, locked was {frozen.torch}")
    return tuple(changes)


def base_page(frozen: Frozen) -> IndexPage:
    """Return the page of the stubs; its key tells whether the torch is a build of PyTorch's own.

    PyTorch's builds name their accelerator in ``torch/version.py``; what is known of them holds
    for the torch of such a base, and for that of no other.
    """
    local = local_of(frozen.torch or "")
    own = "cpu" if frozen.cuda is None else CudaVersion.parse(frozen.cuda).tag
    key = local if local == own and not Version(frozen.torch or "0").is_prerelease else ""
    return IndexPage(kind=PageKind.BASE, key=key, name=PAGE, url="https://base.invalid/simple")


def stubs(frozen: Frozen) -> Iterator[WheelFile]:
    """Yield a wheel in the place of each distribution of the base."""
    page = base_page(frozen)
    for package in frozen.packages:
        filename = f"{package.name.replace('-', '_')}-{package.version}-py3-none-any.whl"
        yield WheelFile(
            project=package.name,
            version=package.version,
            filename=filename,
            url=f"https://base.invalid/{filename.replace('+', '%2B')}",
            page=page,
            requires_dist=_requires(package),
            origin="the base",
        )


def _requires(package: FrozenPackage) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for _, texts in package.extras for text in texts))


def frozen_pins(frozen: Frozen, *, project: str | None) -> tuple[IndexPin, ...]:
    """Return the pins of everything in the base but the user's own project."""
    own = canonicalize_name(project or "")
    return tuple(
        IndexPin(wheel=stub, reason=_REASON) for stub in stubs(frozen) if stub.project != own
    )


def base_candidate(frozen: Frozen) -> Candidate | None:
    """Return the torch of the base as a candidate, or None where the base has none."""
    torch = next((stub for stub in stubs(frozen) if stub.project == "torch"), None)
    if torch is None:
        return None
    return Candidate(
        torch=torch, cuda=None if frozen.cuda is None else CudaVersion.parse(frozen.cuda)
    )


def is_foreign(candidate: Candidate) -> bool:
    """Whether a torch is a build of its base's maker, which no published wheel is made for."""
    page = candidate.torch.page
    return page.kind is PageKind.BASE and not page.key


def with_asked_extras(
    frozen: Frozen, uv_lock: str, *, absent: Iterable[tuple[str, str]] = ()
) -> Frozen:
    """Return the base with no extras but those that something in a lock asks for.

    ``absent`` are those of them that uv did not know.

    Raises InputError where it is not known what one of them brings.
    """
    asked = _asked_extras(uv_lock, absent)
    unknown = [
        f"`{package.name}[{extra}]`"
        for package in frozen.packages
        for extra in sorted(asked.get(package.name, ()))
        if not frozen.complete and extra not in dict(package.extras)
    ]
    if unknown:
        raise InputError(
            f"{', '.join(unknown)} is asked for, and the lock does not say what the base's "
            "package needs for it",
            hint="read the base again: `envbuild lock --base-python PATH` or `--base-root FOLDER`",
        )
    kept = (_with_extras(one, asked.get(one.name, frozenset())) for one in frozen.packages)
    return replace(frozen, packages=tuple(kept))


def _with_extras(package: FrozenPackage, asked: frozenset[str]) -> FrozenPackage:
    known = dict(package.extras)
    return replace(package, extras=tuple((name, known.get(name, ())) for name in sorted(asked)))


def _asked_extras(uv_lock: str, absent: Iterable[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, extra in absent:
        found.setdefault(name, set()).add(canonicalize_name(extra))
    for package in tomllib.loads(uv_lock).get("package", ()):
        for needed in package.get("dependencies", ()):
            extras = map(canonicalize_name, needed.get("extra", ()))
            found.setdefault(canonicalize_name(needed["name"]), set()).update(extras)
    return {name: frozenset(extras) for name, extras in found.items()}


def frozen_table(frozen: Frozen) -> dict[str, Any]:
    """Return the keys of the pylock's ``[tool.envbuild]`` that hold a base."""
    table: dict[str, Any] = {
        "base-python": frozen.python,
        "frozen": [package.pin for package in frozen.packages],
    }
    if frozen.torch is not None:
        table["frozen-torch"] = frozen.torch
    if frozen.unversioned:
        table["frozen-unversioned"] = list(frozen.unversioned)
    extras = {
        f"{one.name}[{extra}]": list(texts)
        for one in frozen.packages
        for extra, texts in one.extras
    }
    if extras:
        table["frozen-extras"] = extras
    return table


def read_frozen(table: Mapping[str, Any]) -> Frozen | None:
    """Read those keys back; None where the lock is of no base."""
    if "frozen" not in table:
        return None
    extras: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for key, texts in table.get("frozen-extras", {}).items():
        name, _, extra = key.rstrip("]").partition("[")
        extras.setdefault(name, []).append((extra, tuple(texts)))
    pins = [text.partition("==") for text in table["frozen"]]
    return Frozen(
        packages=tuple(
            FrozenPackage(name=name, version=version, extras=tuple(extras.get(name, ())))
            for name, _, version in pins
        ),
        python=table.get("base-python", ""),
        torch=table.get("frozen-torch"),
        cuda=table.get("cuda") if "frozen-torch" in table else None,
        unversioned=tuple(table.get("frozen-unversioned", ())),
        complete=False,
    )
