"""The builds of torch: the release matrix, and what the wheels add to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from catalog_pairings import declared_by_wheels
from catalog_text import DATE, clean, read_facts
from packaging.requirements import Requirement
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from catalog_wheels import Wheel

AARCH64 = {"platform_machine": "aarch64", "platform_system": "Linux", "sys_platform": "linux"}
_FIRST_NEW_ABI = Version("2.6")
_UNVERIFIED = "not confirmed to be published"


def torch_builds(facts: Path, wheels: list[Wheel]) -> list[dict[str, Any]]:
    """Return every build of torch, newest release first, newest CUDA first, CPU last."""
    rows = read_facts(facts, "torch_matrix.json")["rows"]
    others = read_facts(facts, "others.json")
    builds = {(row["torch"], row["cuda"]): _from_matrix(row) for row in rows}
    for public, cuda, pythons in _released(wheels):
        if (public, cuda) not in builds:
            builds[public, cuda] = _from_wheels(public, cuda, pythons, list(builds.values()))
    exact = _exact_companions(wheels, others)
    for build in builds.values():
        build["companions"] = build["companions"] or exact.get(build["torch"], {})
        _add_pypi(build, others["torch_pypi"]["table"].get(build["torch"]))
    return sorted(builds.values(), key=_newest, reverse=True)


def matrix_sources(facts: Path) -> dict[str, str]:
    """Return what the short names of the matrix's sources stand for."""
    table = read_facts(facts, "torch_matrix.json")["sources"]
    return {name: clean(text) for name, text in sorted(table.items())}


def _newest(build: dict[str, Any]) -> tuple[Version, Version]:
    return Version(build["torch"]), Version(build["cuda"] or "0")


def _from_matrix(row: dict[str, Any]) -> dict[str, Any]:
    names = ", ".join(row["source"])
    status = "" if row["published"] == "yes" else f"; {_UNVERIFIED}: {row['published'].lower()}"
    code = {"x86_64": _code(row["sm_x86_64"], row["ptx_x86_64"], names)}
    if row["arch_list_aarch64"]:
        code["aarch64"] = _arch_list(row["arch_list_aarch64"], names)
    companions = {name: row[name] for name in ("torchaudio", "torchvision") if row[name]}
    notes = f"; {clean(row['notes'])}" if row["notes"] else ""
    return {
        "torch": row["torch"],
        "cuda": row["cuda"],
        "on_pypi": row["default_on_pypi"],
        "on_pypi_aarch64": False,
        "companions": companions,
        "cxx11_abi": row["cxx11_abi"],
        "code": code,
        "pythons": row["python"],
        "confidence": row["confidence"],
        "source": f"release matrix ({names}; {DATE}){status}{notes}",
    }


def _code(sass: list[str], ptx: list[str], names: str) -> dict[str, Any]:
    plain = [re.sub(r"^sm_(\d+)(\d)", r"\1.\2", name) for name in sass]
    return {"sass": plain, "ptx": ptx, "source": f"arch list of the build ({names}; {DATE})"}


def _arch_list(text: str, names: str) -> dict[str, Any]:
    entries = text.split(";")
    ptx = [entry.removesuffix("+PTX") for entry in entries if entry.endswith("+PTX")]
    return _code([entry.removesuffix("+PTX") for entry in entries], ptx, names)


def _released(wheels: Iterable[Wheel]) -> list[tuple[str, str | None, list[str]]]:
    """Return the builds on PyTorch's index with the Pythons of their x86_64 wheels."""
    pythons: dict[tuple[str, str | None], set[str]] = {}
    for wheel in wheels:
        local = wheel.version.partition("+")[2]
        if wheel.kind == "pytorch" and wheel.project == "torch" and local == wheel.key:
            cuda = None if local == "cpu" else f"{local[2:-1]}.{local[-1]}"
            found = pythons.setdefault((wheel.version.partition("+")[0], cuda), set())
            if wheel.filename.endswith("x86_64.whl"):
                found.add(_python(wheel.filename))
    order = sorted(pythons.items(), key=lambda item: (Version(item[0][0]), item[0][1] or ""))
    return [(public, cuda, _by_number(found)) for (public, cuda), found in order]


def _python(filename: str) -> str:
    """Return the Python of a wheel's ABI tag: ``3.13t`` for ``cp313t``."""
    abi = filename.split("-")[-2]
    return f"{abi[2]}.{abi[3:]}"


def _by_number(pythons: Iterable[str]) -> list[str]:
    return sorted(pythons, key=lambda text: (int(text.split(".")[1].rstrip("t")), text))


def _from_wheels(
    public: str, cuda: str | None, pythons: list[str], known: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a build that the matrix leaves out: the CPU build, or an old release."""
    siblings = [build for build in known if build["torch"] == public]
    abis = {build["cxx11_abi"] for build in siblings}
    companions: dict[str, str] = {}
    for build in siblings:
        companions |= build["companions"]
    return {
        "torch": public,
        "cuda": cuda,
        "on_pypi": False,
        "on_pypi_aarch64": False,
        "companions": companions,
        "cxx11_abi": _abi(public, abis),
        "code": {},
        "pythons": pythons,
        "confidence": "medium" if siblings else "low",
        "source": f"wheels on PyTorch's index, companions of the release ({DATE})",
    }


def _abi(public: str, siblings: set[bool | None]) -> bool | None:
    """Return the C++ ABI of a build: its siblings' where they agree, the old one before 2.6."""
    if len(siblings) == 1:
        return siblings.pop()
    return False if Version(public) < _FIRST_NEW_ABI else None


def _exact_companions(wheels: list[Wheel], others: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return by torch release the companions whose metadata names exactly that release."""
    declared = [
        (project, version, torch) for project, version, torch, _ in declared_by_wheels(wheels)
    ]
    for project in ("torchaudio", "torchvision"):
        table = others[f"{project}_torch"]["table"]
        declared += [(project, version, row["torch"] or "") for version, row in table.items()]
    exact: dict[str, dict[str, str]] = {}
    for project, version, torch in sorted(declared):
        if torch.startswith("==") and project != "xformers":
            exact.setdefault(torch.removeprefix("=="), {})[project] = version
    return exact


def _add_pypi(build: dict[str, Any], table: dict[str, Any] | None) -> None:
    """Say which of PyPI's wheels are this build, by the CUDA libraries they require."""
    if table is None:
        return
    lines = [Requirement(line) for line in table["requires_dist"]]
    nvidia = [line for line in lines if line.name.startswith(("nvidia-", "cuda-"))]
    runtime = [line for line in nvidia if line.name == "nvidia-cuda-runtime-cu12"]
    if build["cuda"] and any(f"=={build['cuda']}." in str(line) for line in runtime):
        build["on_pypi"] = True
    has_cuda = any(line.marker is None or line.marker.evaluate(AARCH64) for line in nvidia)
    build["on_pypi_aarch64"] = build["on_pypi"] if has_cuda else build["cuda"] is None
