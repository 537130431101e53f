"""The ``[tool.envbuild.targets.NAME]`` tables: text to targets, one reader for each key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.core.gpus import UnknownGpuError, known_gpu, parse_gpu
from envbuild.core.lockvalues import IMAGE
from envbuild.core.project.fields import listed, nearest
from envbuild.core.project.targetversions import cuda_of, driver_of, glibc_of, torch_of
from envbuild.model.target import Platform, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.core.project.fields import Fields
    from envbuild.model.target import Gpu

TARGET_KEYS = (
    "python",
    "platform",
    "gpus",
    "cuda",
    "torch",
    "driver",
    "glibc",
    "extras",
    "groups",
    "base",
    "base-python",
)
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_PYTHON_PATCH = re.compile(r"(3\.\d{1,2})\.\d+")
_FOREIGN = re.compile(r"win|mac|darwin|osx")
_PLATFORM_ALIASES: Mapping[str, Platform] = {
    "linux": Platform.LINUX_X86_64,
    "linux-amd64": Platform.LINUX_X86_64,
    "x86_64": Platform.LINUX_X86_64,
    "linux-arm64": Platform.LINUX_AARCH64,
    "aarch64": Platform.LINUX_AARCH64,
}


def targets_of(
    tables: Fields, *, extras: tuple[str, ...], groups: tuple[str, ...]
) -> tuple[Target, ...]:
    """Read every target; ``extras`` and ``groups`` are the names that the project has."""
    seen: dict[str, str] = {}
    found: list[Target] = []
    for name in tables.raw:
        _check_name(tables, name, seen)
        target = _target(tables.table(name), name, extras=extras, groups=groups)
        if target is not None:
            found.append(target)
    return tuple(found)


def _check_name(tables: Fields, name: str, seen: dict[str, str]) -> None:
    if not _NAME.fullmatch(name):
        tables.problem(
            name,
            message=f"found the target name `{name}`, wanted lower-case letters, digits, `-`"
            " and `_`, because it becomes part of file names",
            hint=f"[tool.envbuild.targets.{re.sub('[^a-z0-9_-]+', '-', name.lower()).strip('-')}]",
        )
    twin = seen.setdefault(canonicalize_name(name), name)
    if twin != name:
        tables.problem(name, message=f"found the same target twice, also as `{twin}`")


def _target(
    fields: Fields, name: str, *, extras: tuple[str, ...], groups: tuple[str, ...]
) -> Target | None:
    fields.only(TARGET_KEYS)
    python = _python(fields)
    platform = _platform(fields)
    gpus = _gpus(fields, platform)
    cuda = cuda_of(fields, gpus)
    torch = torch_of(fields)
    driver = driver_of(fields)
    chosen_extras = _names(fields, "extras", extras, "extra")
    chosen_groups = _names(fields, "groups", groups, "dependency group")
    base = _base(fields)
    base_python = _base_python(fields)
    glibc = glibc_of(fields)
    if python is None:
        return None
    return Target(
        name=name,
        python=python,
        platform=platform,
        gpus=gpus,
        cuda=cuda,
        torch=torch,
        driver=driver,
        extras=chosen_extras,
        groups=chosen_groups,
        base=base,
        base_python=base_python,
        glibc=glibc,
    )


def _python(fields: Fields) -> str | None:
    if "python" not in fields.raw:
        fields.problem(
            message="found no `python`, wanted the version to lock for", hint='python = "3.11"'
        )
        return None
    text = fields.text("python")
    if text is None or text in PYTHONS:
        return text
    patch = _PYTHON_PATCH.fullmatch(text)
    hint = f'python = "{patch[1]}"' if patch and patch[1] in PYTHONS else None
    fields.problem("python", message=f"found `{text}`, wanted {listed(PYTHONS)}", hint=hint)
    return None


def _platform(fields: Fields) -> Platform:
    text = fields.text("platform")
    default = Platform.LINUX_X86_64
    if text is None:
        return default
    hint = None
    if text in _PLATFORM_ALIASES:
        hint = f'platform = "{_PLATFORM_ALIASES[text].value}"'
    elif _FOREIGN.search(text.lower()):
        fields.problem(
            "platform",
            message=f"found `{text}`, but only linux is locked:"
            f" wanted {listed(member.value for member in Platform)}",
        )
        return default
    if hint is None:
        return fields.choice("platform", Platform, default)
    wanted = listed(member.value for member in Platform)
    fields.problem("platform", message=f"found `{text}`, wanted {wanted}", hint=hint)
    return _PLATFORM_ALIASES[text]


def _gpus(fields: Fields, platform: Platform) -> tuple[Gpu, ...]:
    found: dict[str, Gpu] = {}
    for index, text in fields.texts("gpus"):
        try:
            gpu = parse_gpu(text)
        except UnknownGpuError as error:
            guess = f"; did you mean {listed(error.choices)}?" if error.choices else ""
            fields.problem("gpus", index, message=f"{error}{guess}")
            continue
        _check_arm(fields, index, gpu, platform)
        found.setdefault(gpu.name, gpu)
    return tuple(found.values())


def _check_arm(fields: Fields, index: int, gpu: Gpu, platform: Platform) -> None:
    try:
        arm = known_gpu(gpu.name).arm
    except UnknownGpuError:
        return  # a capability, which says nothing of the processor
    if arm and platform is not Platform.LINUX_AARCH64:
        fields.problem(
            "gpus",
            index,
            message=f"found `{gpu.name}` with platform `{platform.value}`, wanted"
            f" `{Platform.LINUX_AARCH64.value}`: its machines have Arm processors",
            hint=f'platform = "{Platform.LINUX_AARCH64.value}"',
        )


def _base(fields: Fields) -> str | None:
    text = fields.text("base")
    if text is None or IMAGE.fullmatch(text):
        return text
    fields.problem(
        "base",
        message=f"found `{text}`, wanted the reference of an image",
        hint='base = "nvcr.io/nvidia/pytorch:25.05-py3"; an interpreter is named by `base-python`',
    )
    return None


def _base_python(fields: Fields) -> str | None:
    text = fields.text("base-python")
    if text is None or (text.startswith("/") and text.isprintable()):
        return text
    fields.problem(
        "base-python",
        message=f"found `{text}`, wanted the absolute path of an interpreter",
        hint='base-python = "/usr/bin/python3"',
    )
    return None


def _names(fields: Fields, key: str, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for index, text in fields.texts(key):
        name = canonicalize_name(text)
        if name in known:
            found[name] = None
            continue
        has = f", wanted one of {listed(known)}" if known else ", and the project has none"
        guess = nearest(name, known) or has
        fields.problem(key, index, message=f"found the unknown {what} `{text}`{guess}")
    return tuple(found)
