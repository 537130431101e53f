"""Reading the data files: late, little, and with a clear word when one is gone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from envbuild.catalog.reader import Catalog
from envbuild.catalog.storage import DATA, Storage
from envbuild.errors import WorldError

if TYPE_CHECKING:
    from pathlib import Path

PROBE = """
import builtins, io, sys, pathlib
opened = []
def audit(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".json"):
        opened.append(pathlib.Path(arguments[0]).name)
sys.addaudithook(audit)
from envbuild.catalog.reader import Catalog
slow = {"packaging", "packaging.version", "lzma", "requests", "importlib.resources", "rich"}
before = sorted(slow & set(sys.modules)), list(opened)
from envbuild.core.indexpages import pytorch_page
from envbuild.model.project import IndexUrls
wheels = Catalog.load().wheels(pytorch_page(IndexUrls(), "cu128"), "torch")
import json
print(json.dumps([before, sorted(slow & set(sys.modules)), sorted(opened), len(wheels)]))
"""


def test_nothing_is_read_or_imported_before_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True)
    before, slow, opened, wheels = json.loads(done.stdout)
    assert before == [[], []]
    assert slow == []
    assert opened == ["cu128.json", "pages.json", "root.json"]
    assert wheels > 50


def test_the_data_is_small() -> None:
    sizes = [path.stat().st_size for path in DATA.rglob("*") if path.is_file()]
    assert 1_000_000 < sum(sizes) < 3_000_000
    assert max(sizes) < 400_000


def test_every_file_is_listed_and_every_listed_page_is_there() -> None:
    pages = Storage().page_list()["pages"]
    listed = {f"{kind}/{key}.json" for kind, keys in pages.items() for key in keys}
    found = {path.relative_to(DATA).as_posix() for path in DATA.glob("*/*")}
    assert found == listed


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match=r"`pages\.json`"):
        _ = Catalog.load(tmp_path).date


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pages.json"
    path.write_text('{"date": "2026-01-01", "pages": {}, "aliases": {}}')
    catalog = Catalog.load(tmp_path)
    assert catalog.date == "2026-01-01"
    path.unlink()
    assert catalog.date == "2026-01-01"
