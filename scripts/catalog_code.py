"""GPU code found in real wheels, one entry for each file or release."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from catalog_text import DATE, read_facts
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_NAME = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")
_MAIN = "libtorch_cuda.so"
_MACHINE = re.compile(r"(x86_64|aarch64)\.whl$")


def code_data(facts: Path) -> dict[str, Any]:
    """Return GPU code by file name, and by release for files that were not examined.

    Wheels that were examined and hold none are listed with none. Only `.nv_fatbin` counts:
    PTX in `__nv_relfatbin` is linker input that no driver compiles.
    """
    data = read_facts(facts, "archs.json")
    examined = {
        name: row["archs"] for name, row in read_facts(facts, "torch_needs.json")["others"].items()
    }
    files = {
        name: _merged(objects, "the wheel's shared objects")
        for name, objects in sorted({**examined, **data["nvidia"], **data["others"]}.items())
    }
    releases = {f"{_release(name)} {_MACHINE.search(name)[1]}": row for name, row in files.items()}  # type: ignore[index]
    for name, sections in data["nccl"].items():
        suffix, version = name.split("-", 1)
        key = f"nvidia-nccl-{suffix}=={version} x86_64"
        releases[key] = _merged({"libnccl.so.2": sections}, "libnccl.so.2 of the PyPI wheel")
    for version, objects in data["torch"].items():
        # NOTE: libtorch_cuda_linalg.so keeps old GPUs that the rest of torch no longer runs on
        main = {_MAIN: objects[_MAIN]}
        releases[f"torch=={version} x86_64"] = _merged(main, f"{_MAIN} of the PyPI wheel")
    return {"files": files, "releases": dict(sorted(releases.items()))}


def _release(filename: str) -> str:
    project, version = filename.split("-")[:2]
    return f"{canonicalize_name(project)}=={version}"


def _merged(objects: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the union over a wheel's own shared objects.

    Bundled third-party libraries (`torchvision.libs/libnvjpeg`) speak for themselves only.
    """
    own = {path: found for path, found in objects.items() if ".libs/" not in path} or objects
    names = {name for found in own.values() for name in found.get(".nv_fatbin", {})}
    isa = _versions(own.values())
    return {
        "sass": _capabilities(names, "sm"),
        "ptx": _capabilities(names, "compute"),
        **({"isa": isa} if isa else {}),
        "source": f"read from {what}; {DATE}",
    }


def _versions(objects: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the version of the PTX for each capability, the newest of all objects.

    The facts name the versions of an object, not those of its capabilities.
    """
    found: dict[str, str] = {}
    for one in objects:
        newest = max(one.get("ptx_isa", ()), key=_number, default=None)
        for capability in _capabilities(one.get(".nv_fatbin", {}), "compute") if newest else ():
            found[capability] = max(found.get(capability, newest), newest, key=_number)
    return dict(sorted(found.items()))


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _capabilities(names: Iterable[str], kind: str) -> list[str]:
    matches = [match for name in names if (match := _NAME.fullmatch(name)) and match[1] == kind]
    found = sorted((int(match[2]), int(match[3]), match[4]) for match in matches)
    return [f"{major}.{minor}{suffix}" for major, minor, suffix in found]
