"""The keys of a target that name versions: ``cuda``, ``torch``, ``driver`` and ``glibc``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from envbuild.core.project.fields import Fields
    from envbuild.model.target import Gpu

CPU = "cpu"
_CUDA_TAG = re.compile(r"cu(\d{2})(\d)")
_CUDA_BARE = re.compile(r"(\d{1,2}(?:\.\d)?)(?:\.\d+|\.\*)?")
_RELEASE_PREFIX = re.compile(r"\d+(?:\.\d+)?(?:\.\*)?")
_DRIVER_BARE = re.compile(r"\d+(?:\.\d+){0,2}")
_GLIBC = re.compile(
    r"(?:>=|(?:x86_64|aarch64)-)?(?:manylinux(?P<old>1|2010|2014)"
    r"|(?:manylinux_)?2[._](?P<minor>[1-9]\d?))(?:_x86_64|_aarch64)?"
)
_OLD_GLIBC = {"1": 5, "2010": 12, "2014": 17}


def cuda_of(fields: Fields, gpus: tuple[Gpu, ...]) -> SpecifierSet | None:
    """Return the CUDA versions that a target admits; None for the CPU build too."""
    text = fields.text("cuda")
    if text is None:
        return None
    if text.lower() == CPU:
        if gpus:
            fields.problem(
                "cuda",
                message="found `cpu`, which means the CPU build, together with `gpus`",
                hint="remove either `cuda` or `gpus`",
            )
        return None
    if tag := _CUDA_TAG.fullmatch(text.lower()):
        return SpecifierSet(f"=={tag[1]}.{tag[2]}.*")
    if bare := _CUDA_BARE.fullmatch(text):
        return SpecifierSet(f"=={bare[1]}.*")
    return _specifier(
        fields, "cuda", text, wanted="one like `12.8`, `cu128`, `>=12.6,<13` or `cpu`"
    )


def torch_of(fields: Fields) -> SpecifierSet | None:
    """Return the torch releases that a target admits."""
    text = fields.text("torch")
    if text is None:
        return None
    if _RELEASE_PREFIX.fullmatch(text):
        return SpecifierSet(f"=={text.removesuffix('.*')}.*")
    try:
        return SpecifierSet(f"=={Version(text)}")
    except InvalidVersion:
        return _specifier(fields, "torch", text, wanted="one like `2.7.*`, `2.7.0` or `>=2.6,<2.9`")


def driver_of(fields: Fields) -> SpecifierSet | None:
    """Return the drivers that a target admits; they have an oldest one."""
    text = fields.text("driver")
    if text is None:
        return None
    if _DRIVER_BARE.fullmatch(text):
        return SpecifierSet(f">={text}")
    driver = _specifier(fields, "driver", text, wanted="one like `>=570`")
    if driver is not None and oldest_driver(driver) is None:
        fields.problem(
            "driver",
            message=f"found `{text}`, which names no oldest driver, wanted one like `>=570`",
        )
    return driver


def oldest_driver(driver: SpecifierSet | None) -> Version | None:
    """Return the oldest driver that a specifier admits; None when it names no lower bound."""
    bounds = [
        Version(spec.version.removesuffix(".*"))
        for spec in driver or ()
        if spec.operator in (">=", ">", "==", "~=")
    ]
    return max(bounds, default=None)


def glibc_of(fields: Fields) -> str | None:
    """Return the oldest glibc of a target's machines (``2.35``), however it is written."""
    text = fields.text("glibc")
    if text is None:
        return None
    match = _GLIBC.fullmatch(text.lower())
    if match is None:
        fields.problem(
            "glibc",
            message=f"found `{text}`, wanted the oldest glibc of the machines, like `2.35` or"
            " `manylinux_2_35`",
            hint="`ldd --version` says it: 2.31 on Ubuntu 20.04, 2.35 on 22.04, 2.39 on 24.04",
        )
        return None
    return f"2.{_OLD_GLIBC[match['old']] if match['old'] else match['minor']}"


def _specifier(fields: Fields, key: str, text: str, *, wanted: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        fields.problem(key, message=f"found `{text}`, wanted a version specifier, {wanted}")
        return None
