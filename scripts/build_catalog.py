"""Build the data files of `envbuild/catalog/data` from a folder of collected facts.

    python scripts/build_catalog.py FACTS_DIR [--out DIR]

The same facts give the same bytes. Files that the facts no longer give are removed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog_code import code_data
from catalog_libraries import driver_data, nccl_data, shared_data, symbol_data
from catalog_pairings import pairing_data
from catalog_sources import flash_attn_wheels, pyg_wheels, pytorch_wheels, spconv_wheels
from catalog_text import DATE
from catalog_torch import matrix_sources, torch_builds
from catalog_wheels import merge, page_data

from envbuild.catalog.order import release_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from catalog_wheels import Wheel

OUT = Path(__file__).parents[1] / "envbuild" / "catalog" / "data"
_SHORT = 7
_MADE_ELSEWHERE = {"libraries"}  # by read_symbols.py
KINDS = ("flash-attn", "pyg", "pypi", "pytorch")


def catalog_files(facts: Path) -> dict[str, Any]:
    """Return every data file by its name without the ending."""
    pyg, aliases = pyg_wheels(facts)
    every = [*pytorch_wheels(facts), *pyg, *flash_attn_wheels(facts), *spconv_wheels(facts)]
    wheels = merge(every)
    pages: dict[tuple[str, str], list[Wheel]] = {}
    for wheel in wheels:
        pages.setdefault((wheel.kind, wheel.key), []).append(wheel)
    files = {f"{kind}/{key}": page_data(found) for (kind, key), found in pages.items()}
    return {
        **files,
        "pages": page_list(pages, aliases),
        "torch": {
            "date": DATE,
            "sources": matrix_sources(facts),
            "builds": torch_builds(facts, wheels),
        },
        "code": code_data(facts),
        "pairings": pairing_data(facts, wheels),
        "symbols": symbol_data(facts),
        "nccl": nccl_data(facts),
        "shared": shared_data(facts),
        "drivers": driver_data(facts),
    }


def page_list(pages: Iterable[tuple[str, str]], aliases: dict[str, str]) -> dict[str, Any]:
    """Return the keys of each kind, newest first, and PyG's alias pages."""
    keys: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for kind, key in pages:
        keys[kind].append(key)
    keys["pypi"].sort()
    keys["pytorch"].sort(key=lambda key: release_key(f"0+{key}"), reverse=True)
    for kind in ("flash-attn", "pyg"):
        keys[kind].sort(key=release_key, reverse=True)
    return {"date": DATE, "pages": keys, "aliases": dict(sorted(aliases.items()))}


def render(value: Any, depth: int = 4) -> str:  # noqa: ANN401  (any JSON value)
    """Return JSON whose outer levels have a line for each entry, for readable differences."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, dict):
        if "file" in value or not any(isinstance(item, dict | list) for item in value.values()):
            return render(value, depth=0)
        entries = [f"{json.dumps(key)}:{render(item, depth - 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(entries) + "\n}"
    if all(isinstance(item, str) for item in value) and len(value[0]) <= _SHORT:
        return render(value, depth=0)
    return "[\n" + ",\n".join(render(item, depth - 1) for item in value) + "\n]"


def write(files: dict[str, Any], out: Path) -> None:
    """Write every file, and remove those that are no longer made."""
    kept = {*files, *_MADE_ELSEWHERE}
    for path in sorted(out.rglob("*.json")):
        if path.relative_to(out).as_posix().removesuffix(".json") not in kept and path.is_file():
            path.unlink()
    for name, value in sorted(files.items()):
        path = out / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(value) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Build the catalog and say how large it is."""
    parser = argparse.ArgumentParser(description="build the embedded catalog from facts")
    parser.add_argument("facts", type=Path, help="folder of the collected facts")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to")
    options = parser.parse_args(arguments)
    files = catalog_files(options.facts)
    write(files, options.out)
    size = sum(path.stat().st_size for path in options.out.rglob("*.json"))
    print(f"{len(files)} files, {size / 1e6:.2f} MB in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
