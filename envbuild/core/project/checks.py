"""What the parts of a project file say about each other: contradictions seen before solving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from envbuild.core.wanted import holds
from envbuild.model.cuda import CudaVersion

if TYPE_CHECKING:
    from envbuild.core.project.fields import Fields
    from envbuild.model.project import BuildSpec, DeclaredRequirement
    from envbuild.model.target import Target

_PATCHES = range(60)


def check_python(tables: Fields, targets: tuple[Target, ...], requires_python: object) -> None:
    """Record each target whose Python the project does not support, and a broken specifier."""
    if not isinstance(requires_python, str):
        return
    try:
        supported = SpecifierSet(requires_python)
    except InvalidSpecifier:
        path = ("project", "requires-python")
        message = f"found `{requires_python}`, wanted a version specifier like `>=3.10`"
        tables.problems.add(path, message)
        return
    for target in targets:
        if not any(supported.contains(f"{target.python}.{patch}") for patch in _PATCHES):
            line = tables.problems.line(("project", "requires-python"))
            tables.problem(
                target.name,
                "python",
                message=f"found `{target.python}`, wanted one that `requires-python"
                f' = "{requires_python}"` (line {line}) allows',
            )


def check_torch(
    tables: Fields, targets: tuple[Target, ...], requirements: tuple[DeclaredRequirement, ...]
) -> None:
    """Record each target whose torch contradicts its own CUDA or a requirement on torch."""
    for target in targets:
        if target.torch is None:
            continue
        _check_local(tables, target, target.torch)
        for declared in torch_requirements(target, requirements):
            if not may_agree(target.torch, declared.requirement.specifier):
                file = tables.problems.file
                file = file if declared.where.startswith("[") else declared.where
                tables.problem(
                    target.name,
                    "torch",
                    message=f"found `{target.torch}`, which no version has in common with"
                    f" `{declared.requirement}` ({file}:{declared.line}, {declared.where})",
                    hint="remove one of the two",
                )


def torch_requirements(
    target: Target, requirements: tuple[DeclaredRequirement, ...]
) -> tuple[DeclaredRequirement, ...]:
    """Return the requirements on torch that apply to a target."""
    return tuple(
        declared
        for declared in requirements
        if canonicalize_name(declared.requirement.name) == "torch"
        and declared.group in _groups(target)
        and holds(declared.requirement, target)
    )


def _groups(target: Target) -> frozenset[str]:
    extras = (f"extra:{name}" for name in target.extras)
    return frozenset(["", *extras, *(f"group:{name}" for name in target.groups)])


def _check_local(tables: Fields, target: Target, torch: SpecifierSet) -> None:
    for specifier in torch:
        local = specifier.version.partition("+")[2]
        if not local:
            continue
        if local == "cpu":
            clash = not target.is_cpu
        else:
            clash = local.startswith("cu") and not _cuda_allows(target, local)
        if clash:
            has = f"CUDA `{target.cuda}`" if target.cuda else "the GPUs of the target"
            wanted = "the CPU build" if target.is_cpu else f"a build for {has}"
            tables.problem(
                target.name, "torch", message=f"found a `+{local}` build, wanted {wanted}"
            )


def _cuda_allows(target: Target, tag: str) -> bool:
    try:
        cuda = CudaVersion.parse(tag)
    except ValueError:
        return True
    return not target.is_cpu and (target.cuda is None or target.cuda.contains(str(cuda)))


def may_agree(first: SpecifierSet, second: SpecifierSet) -> bool:
    """Say whether two specifiers may have a version in common; local versions do not count.

    Only an exact version or a prefix (``==2.7.*``) can prove that they have none.
    """
    left, right = _public(first), _public(second)
    if not all(right.contains(version, prereleases=True) for version in _exact(left)):
        return False
    if not all(left.contains(version, prereleases=True) for version in _exact(right)):
        return False
    return all(_same_start(a, b) for a in _prefixes(left) for b in _prefixes(right))


def _public(specifiers: SpecifierSet) -> SpecifierSet:
    return SpecifierSet(
        ",".join(f"{one.operator}{one.version.partition('+')[0]}" for one in specifiers)
    )


def _exact(specifiers: SpecifierSet) -> tuple[str, ...]:
    return tuple(
        one.version
        for one in specifiers
        if one.operator in {"==", "==="} and not one.version.endswith(".*")
    )


def _prefixes(specifiers: SpecifierSet) -> tuple[tuple[int, ...], ...]:
    return tuple(
        Version(one.version.removesuffix(".*")).release
        for one in specifiers
        if one.operator == "==" and one.version.endswith(".*")
    )


def _same_start(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    shorter = min(len(a), len(b))
    return a[:shorter] == b[:shorter]


def check_builds(
    tables: Fields, builds: tuple[BuildSpec, ...], requirements: tuple[DeclaredRequirement, ...]
) -> None:
    """Record each extension built from a folder or a commit that is a requirement as well."""
    places = {canonicalize_name(one.requirement.name): one for one in requirements}
    for build in builds:
        declared = places.get(canonicalize_name(build.name))
        if declared is None or not (build.path or build.git):
            continue
        key = next(key for key in tables.raw if canonicalize_name(key) == build.name)
        in_table = declared.where.startswith("[")
        place = f"{tables.problems.file if in_table else declared.where}:{declared.line}"
        tables.problem(
            key,
            message=f"found `{declared.requirement}` also in {declared.where} ({place});"
            " envbuild compiles it after the install",
            hint=f"remove `{build.name}` from {declared.where}",
        )


def check_layer(tables: Fields, targets: tuple[Target, ...]) -> None:
    """Check that no target of the layer `project` is locked around a base.

    uv.lock knows of no base: `uv run` would install what is in it once more.
    """
    for target in targets:
        if target.is_frozen:
            tables.problem(
                target.name,
                "base" if target.base is not None else "base-python",
                message="found a base that is kept in layer `project`, wanted layer `pip`",
                hint='layer = "pip" in `[tool.envbuild]`',
            )
