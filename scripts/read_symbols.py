"""Build `envbuild/catalog/data/libraries.json`: since when NVIDIA's libraries export what.

    python scripts/read_symbols.py [--index URL] [--out FILE] [--largest MB] [PACKAGE ...]

Of each wheel its directory and the first bytes of its libraries are read by ranges. A library
that patchelf has rewritten is read to its end, and then not in every release: what lies between
two releases that export the same is taken to do so too. With packages named, only their tables
are made anew.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timezone
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from exported_symbols import MoreWantedError, MovedError, exported_by_file, exported_by_head
from remote_wheels import PYPI, opened, releases
from symbol_tables import sets_of, table_of
from wheel_members import pieces

from envbuild.world.http import HttpClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedRandom

    from envbuild.core.zipdirectory import Member
    from envbuild.model.wheel import WheelFile
    from envbuild.world.remotezip import RemoteZip

OUT = Path(__file__).parents[1] / "envbuild" / "catalog" / "data" / "libraries.json"
SOURCE = "dynamic symbols of the x86_64 wheels on PyPI, each release that is not yanked"
# By package: how its product is called, and which of its libraries others are linked to.
PACKAGES = {
    **{f"nvidia-cudnn-cu{n}": ("cuDNN", r"libcudnn\.so\.\d+") for n in (11, 12, 13)},
    **{f"nvidia-cusparselt-cu{n}": ("cuSPARSELt", r"libcusparseLt\.so\.\d+") for n in (12, 13)},
    **{f"nvidia-nvshmem-cu{n}": ("NVSHMEM", r"libnvshmem_host\.so\.\d+") for n in (12, 13)},
    **{
        f"nvidia-{name}{suffix}": (product, pattern)
        for suffix in ("-cu12", "")
        for name, product, pattern in (
            ("cublas", "cuBLAS", r"libcublas(?:Lt)?\.so\.\d+"),
            ("cuda-cupti", "CUPTI", r"libcupti\.so\.\d+"),
            ("cuda-nvrtc", "NVRTC", r"libnvrtc\.so\.\d+"),
            ("cuda-runtime", "the CUDA runtime", r"libcudart\.so\.\d+"),
            ("cufft", "cuFFT", r"libcufft\.so\.\d+"),
            ("cufile", "cuFile", r"libcufile\.so\.\d+"),
            ("curand", "cuRAND", r"libcurand\.so\.\d+"),
            ("cusolver", "cuSOLVER", r"libcusolver\.so\.\d+"),
            ("cusparse", "cuSPARSE", r"libcusparse\.so\.\d+"),
            ("nvjitlink", "nvJitLink", r"libnvJitLink\.so\.\d+"),
        )
    },
}
# Releases of these exported their insides as well; only names that begin so are kept.
_ONLY = {"cuSPARSELt": "cusparseLt"}


class OpenFile(NamedTuple):
    """A file as the readers of the product want it."""

    file: BufferedRandom
    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes from an offset."""
        self.file.seek(offset)
        return self.file.read(length)


class Library(NamedTuple):
    """A library inside a wheel, and its names where its head tells them."""

    archive: RemoteZip
    member: Member
    names: frozenset[str] | None


def by_head(archive: RemoteZip, member: Member) -> frozenset[str] | None:
    """Return what a library exports by its first bytes, None where they do not tell."""
    head = bytearray()
    for piece in pieces(archive, member):
        head += piece
        try:
            return exported_by_head(bytes(head))
        except MovedError:
            return None
        except MoreWantedError:
            continue
    return None


def to_the_end(library: Library, *, largest: int) -> frozenset[str] | None:
    """Return what a library exports, reading all of it; None where it is too large for that."""
    if library.member.compressed > largest:
        return None
    with tempfile.TemporaryFile() as file:
        for piece in pieces(library.archive, library.member):
            file.write(piece)
        return exported_by_file(OpenFile(file, file.tell()))


def libraries(client: HttpClient, pattern: str, wheel: WheelFile) -> dict[str, Library]:
    """Return the libraries of a wheel whose names match, by name."""
    archive = opened(client, wheel)
    found = {}
    for member in archive.members:
        name = PurePosixPath(member.name).name
        if re.fullmatch(pattern, name):
            found[name] = Library(archive, member, by_head(archive, member))
    return found


def package_table(client: HttpClient, package: str, *, index: str, largest: int) -> dict[str, Any]:
    """Read every release of a package."""
    product, pattern = PACKAGES[package]
    wheels = {wheel.version: wheel for wheel in releases(client, package, index=index)}
    with ThreadPoolExecutor(4) as threads:
        read = threads.map(partial(libraries, client, pattern), wheels.values())
        found = dict(zip(wheels, read, strict=True))
    prefix = _ONLY.get(product, "")
    tables = dict(_tables(found, prefix=prefix, largest=largest))
    return {"product": product, "versions": list(wheels), "libraries": tables}


def _tables(
    found: dict[str, dict[str, Library]], *, prefix: str, largest: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in sorted({name for ones in found.values() for name in ones}):
        having = {version: ones[name] for version, ones in found.items() if name in ones}

        def read(version: str, having: dict[str, Library] = having) -> frozenset[str] | None:
            library = having[version]
            names = library.names or to_the_end(library, largest=largest)
            return names and frozenset(name for name in names if name.startswith(prefix))

        sets = sets_of(tuple(having), read)
        if sets:
            table = table_of(sets)
            unread = [version for version in having if version not in sets]
            yield name, {**table, **({"unread": unread} if unread else {})}


def main(arguments: list[str]) -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description="read since when libraries export what")
    parser.add_argument("packages", nargs="*", help=f"of: {', '.join(PACKAGES)}")
    parser.add_argument("--index", default=PYPI, help="a simple index (PEP 503)")
    parser.add_argument("--out", type=Path, default=OUT, help="file to write")
    parser.add_argument("--largest", type=int, default=400, help="MB of a library read to its end")
    options = parser.parse_args(arguments)
    old = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else {}
    tables = dict(old.get("packages", {}))
    with closing(HttpClient()) as client:
        for package in options.packages or PACKAGES:
            tables[package] = package_table(
                client, package, index=options.index, largest=options.largest * 1_000_000
            )
            print(f"{package}: {len(tables[package]['versions'])} releases", flush=True)
    data = {
        "date": datetime.now(tz=timezone.utc).date().isoformat(),
        "source": SOURCE,
        "packages": {name: tables[name] for name in sorted(tables)},
    }
    options.out.write_text(render(data), encoding="utf-8")
    return 0


def render(data: dict[str, Any]) -> str:
    """Return JSON with a line for each release of a library."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return re.sub(r"\[[^\[\]{}]*\]", lambda one: re.sub(r"\n\s*", "", one[0]), text) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
