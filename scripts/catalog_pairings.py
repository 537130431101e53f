"""Which torch the releases of coupled packages work with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from catalog_text import DATE, clean, read_facts
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from catalog_wheels import Wheel

_TABLES = ("torchvision_torch", "torchaudio_torch", "xformers_torch", "vllm_pins", "bitsandbytes")
_COUPLED = frozenset({"torchvision", "torchaudio", "xformers"})


def pairing_data(facts: Path, wheels: list[Wheel]) -> dict[str, Any]:
    """Return pairings by project: computed from symbols, else declared in metadata."""
    others = read_facts(facts, "others.json")
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for project, version, torch, source in (
        *declared_by_wheels(wheels),
        *_from_tables(others),
        *_computed(read_facts(facts, "wheel_torch_compat.json")),
    ):
        row = {"version": version, "torch": torch, "source": f"{source}; {DATE}"}
        rows.setdefault(project, {})[version] = row
    minors = _torchcodec_minors(others["torchcodec_torch"])
    _add_torchcodec(rows.setdefault("torchcodec", {}), minors, wheels)
    return {
        "releases": {name: _newest_first(found) for name, found in sorted(rows.items())},
        "minors": {"torchcodec": minors},
    }


def _newest_first(rows: dict[str, dict[str, str]]) -> list[dict[str, str]]:
    return sorted(rows.values(), key=lambda row: Version(row["version"]), reverse=True)


def declared_by_wheels(wheels: Iterable[Wheel]) -> Iterable[tuple[str, str, str, str]]:
    """Yield what the metadata of known wheels declares."""
    for wheel in wheels:
        if wheel.project in _COUPLED and wheel.requires:
            torch = [
                Requirement(line) for line in wheel.requires if re.match(r"torch\b(?!-)", line)
            ]
            if torch and torch[0].specifier:
                public = wheel.version.partition("+")[0]
                specifier = re.sub(r"\+\w+", "", str(torch[0].specifier))
                yield wheel.project, public, specifier, "declared by the metadata of its wheels"


def _from_tables(others: dict[str, Any]) -> Iterable[tuple[str, str, str, str]]:
    for name in _TABLES:
        project = {"vllm_pins": "vllm"}.get(name, name.removesuffix("_torch"))
        for version, row in others[name]["table"].items():
            if row["torch"]:
                source = f"declared by its metadata ({clean(others[name]['source'])})"
                yield project, version, row["torch"], source


def _computed(compat: dict[str, Any]) -> Iterable[tuple[str, str, str, str]]:
    """Yield the releases of torch that export every symbol a wheel imports."""
    for filename, row in compat.items():
        name, version, _, _ = parse_wheel_filename(filename)
        declared = ", ".join(row["metadata"])
        tail = f"metadata names torch {declared}" if declared else "metadata names no torch"
        source = f"computed from the symbols of {filename}; {tail}"
        yield canonicalize_name(name), str(version), _range(row["compatible"]), source


def _range(text: str) -> str:
    """Return ``2.13.0..2.15.0`` as a specifier that takes in whole minor releases."""
    first, last = (Version(part) for part in text.split(".."))
    lower = first if first.micro else f"{first.major}.{first.minor}"
    return f">={lower},<{last.major}.{last.minor + 1}"


def _torchcodec_minors(table: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return the pairs of torchcodec's README, by its minor release."""
    return {
        minor: {
            "version": minor,
            "torch": torch if torch.startswith(">") else f"=={torch}.*",
            "source": f"{table['source']} (its metadata names no torch); {DATE}",
        }
        for minor, torch in table["table"].items()
    }


def _add_torchcodec(
    rows: dict[str, dict[str, str]], minors: dict[str, dict[str, str]], wheels: list[Wheel]
) -> None:
    """Add the known releases of torchcodec whose symbols were not examined."""
    known = {wheel.version.partition("+")[0] for wheel in wheels if wheel.project == "torchcodec"}
    for version in known - rows.keys():
        row = minors.get(version) or minors.get(".".join(version.split(".")[:2]))
        if row:
            rows[version] = {**row, "version": version}
