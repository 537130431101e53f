"""Reading the catalog's data files, each when it is first asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from envbuild.errors import WorldError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.catalog.layout import (
        BuildRow,
        CodeData,
        DriverData,
        LibraryData,
        NcclData,
        PageData,
        PageList,
        PairData,
        SharedData,
        SymbolData,
    )

DATA = Path(__file__).with_name("data")


class Storage:
    """A folder of catalog files; each is read once, when it is first asked for."""

    def __init__(self, folder: Path = DATA) -> None:
        self._folder = folder
        self._read: dict[str, object] = {}

    def _load(self, name: str) -> object:
        if name not in self._read:
            path = self._folder / f"{name}.json"
            try:
                text = path.read_text(encoding="utf-8")
            except OSError as error:
                raise WorldError(
                    f"the catalog file `{name}.json` cannot be read, wanted it beside the program",
                    hint="install envbuild again",
                ) from error
            self._read[name] = json.loads(text)
        return self._read[name]

    def page(self, kind: str, key: str) -> PageData:
        """Return one page; it must be in the page list."""
        return cast("PageData", self._load(f"{kind}/{key}"))

    def page_list(self) -> PageList:
        """Return the keys of every page."""
        return cast("PageList", self._load("pages"))

    def code(self) -> CodeData:
        """Return the GPU code found in real wheels."""
        return cast("CodeData", self._load("code"))

    def builds(self) -> list[BuildRow]:
        """Return every known build of torch, newest first."""
        return cast("Mapping[str, list[BuildRow]]", self._load("torch"))["builds"]

    def pairings(self) -> PairData:
        """Return which torch the releases of coupled packages work with."""
        return cast("PairData", self._load("pairings"))

    def symbols(self) -> SymbolData:
        """Return the symbols that torch releases import."""
        return cast("SymbolData", self._load("symbols"))

    def nccl(self) -> NcclData:
        """Return the first NCCL version of every symbol."""
        return cast("NcclData", self._load("nccl"))

    def libraries(self) -> LibraryData:
        """Return since when NVIDIA's other libraries export which symbols."""
        return cast("LibraryData", self._load("libraries"))

    def shared(self) -> SharedData:
        """Return the paths that two distributions own."""
        return cast("SharedData", self._load("shared"))

    def drivers(self) -> DriverData:
        """Return the oldest driver of each CUDA version."""
        return cast("DriverData", self._load("drivers"))
