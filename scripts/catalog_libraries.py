"""Facts about NVIDIA's libraries: symbols, shared paths and drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from catalog_text import DATE, read_facts

if TYPE_CHECKING:
    from pathlib import Path


def symbol_data(facts: Path) -> dict[str, Any]:
    """Return the symbols that torch releases cannot do without, equal sets stored once."""
    torch = read_facts(facts, "torch_needs.json")["torch"]
    needed = {
        version: {
            library.lower(): tuple(sorted(set(symbols) - set(row["weak"])))
            for library, symbols in sorted(row["symbols"].items())
        }
        for version, row in sorted(torch.items())
    }
    sets = sorted({symbols for libraries in needed.values() for symbols in libraries.values()})
    numbers = {symbols: number for number, symbols in enumerate(sets)}
    return {
        "date": DATE,
        "source": "dynamic symbols of torch's PyPI wheels for x86_64",
        "sets": [list(symbols) for symbols in sets],
        "releases": {
            version: {library: numbers[symbols] for library, symbols in libraries.items()}
            for version, libraries in needed.items()
        },
    }


def nccl_data(facts: Path) -> dict[str, Any]:
    """Return the first NCCL release that exports each symbol, by CUDA major."""
    data = read_facts(facts, "nccl_symbols.json")
    versions = data["_meta"]["versions"]
    return {
        "date": DATE,
        "source": "dynamic symbols of all nvidia-nccl-cu12 and -cu13 wheels on PyPI",
        "versions": versions,
        "first": {
            cuda: {
                symbol: row[f"first_{cuda}"]
                for symbol, row in sorted(data["symbols"].items())
                if row.get(f"first_{cuda}")
            }
            for cuda in sorted(versions)
        },
    }


def shared_data(facts: Path) -> dict[str, Any]:
    """Return the paths that two distributions own with different content."""
    paths: dict[str, set[str]] = {}
    for row in read_facts(facts, "clobber.json")["overlaps"]:
        found = {*row["different_so"], *row["different_same_size"]}
        if found:
            names = sorted(text.partition("==")[0] for text in (row["a"], row["b"]))
            paths.setdefault(" ".join(names), set()).update(found)
    nccl = read_facts(facts, "torch_matrix.json")["paths_shared_by_cu12_and_cu13_wheels"]
    plain = {path for path in nccl["clobber"] if "*" not in path}
    paths.setdefault("nvidia-nccl-cu12 nvidia-nccl-cu13", set()).update(plain)
    return {
        "date": DATE,
        "source": "files of the PyPI wheels compared; nccl: both wheels installed side by side",
        "paths": {names: sorted(found) for names, found in sorted(paths.items())},
    }


def driver_data(facts: Path) -> dict[str, Any]:
    """Return the oldest Linux driver of each CUDA version."""
    table = read_facts(facts, "others.json")["cuda_min_driver"]
    systems = {"linux": dict(sorted(table["linux"].items()))}
    return {"date": DATE, "source": table["source"], "systems": systems}
