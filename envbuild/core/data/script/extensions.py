"""Look at the compiled parts of a package that was built: are they there, and for these GPUs.

Run by the install script: ``extensions.py SITE NAME KIND CAPABILITIES CUDA_MAJOR``, where KIND is
``cuda``, ``native``, ``python`` or ``any``, as its source says. Nothing is imported or loaded.
"""

from __future__ import annotations

import csv
import re
import struct
import sys
from pathlib import Path

Codes = set[tuple[int, int]]
SASS, PTX = 2, 1
MAGIC = 0xBA55ED50
ONLY_THIS = 0x100000 | 0x200000


class Elf:
    """The sections of a 64-bit little-endian shared object."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("is no 64-bit ELF file")
        (start,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        rows = [struct.unpack_from("<IIQQQQII", data, start + n * size) for n in range(count)]
        table = rows[names][4]
        self.sections = {
            self.text(table + row[0]): (row[4], row[5], row[6]) for row in rows if row[1] != 8
        }
        self.order = rows

    def text(self, at: int) -> str:
        """Return the string that begins at an offset."""
        return self.data[at : self.data.index(b"\0", at)].decode("utf-8", "replace")

    def needed(self) -> list[str]:
        """Return the libraries that it is linked to."""
        start, size, link = self.sections.get(".dynamic", (0, 0, 0))
        strings = self.order[link][4]
        found = []
        for at in range(start, start + size, 16):
            tag, value = struct.unpack_from("<qQ", self.data, at)
            if tag == 1:
                found.append(self.text(strings + value))
        return found

    def codes(self) -> tuple[Codes, Codes]:
        """Return for what it has machine code, and PTX; 1 beside code for that GPU alone."""
        start, size, _ = self.sections.get(".nv_fatbin", (0, 0, 0))
        end, found = start + size, {SASS: set[tuple[int, int]](), PTX: set[tuple[int, int]]()}
        while start + 16 <= end:
            magic, _, length, extent = struct.unpack_from("<IHHQ", self.data, start)
            if magic != MAGIC:
                start = self.data.find(MAGIC.to_bytes(4, "little"), start + 1, end)
                if start < 0:
                    break
                continue
            at, stop = start + length, start + length + extent
            while at + 64 <= stop:
                row = struct.unpack_from("<HHIQIIHHIIIQQQ", self.data, at)
                if row[0] in found:
                    found[row[0]].add((row[8], 1 if row[11] & ONLY_THIS else 0))
                at += row[2] + row[3]
            start = (stop + 7) & ~7
        return found[SASS], found[PTX]


def runs_on(capability: str, sass: Codes, ptx: Codes) -> bool:
    """Whether a GPU runs machine code of its own generation, or PTX that is no newer."""
    major, minor = (int(part) for part in re.sub("[af]$", "", capability).split("."))
    arch = major * 10 + minor
    own = any(a == arch or (not only and a // 10 == major and a <= arch) for a, only in sass)
    return own or any(not only and a <= arch for a, only in ptx)


def shared_objects(site: Path, name: str) -> list[Path] | None:
    """Return the shared objects that a distribution records, None where it is not installed."""
    for folder in site.glob("*.dist-info"):
        if re.sub(r"[-_.]+", "-", folder.name.partition("-")[0]).lower() == name:
            with (folder / "RECORD").open(encoding="utf-8", newline="") as file:
                paths = [row[0] for row in csv.reader(file) if row]
            return [site / path for path in paths if re.search(r"\.so(\.\d+)*$", path)]
    return None


def links(site: Path, path: Path, elf: Elf, cuda_major: str) -> list[str]:
    """Return what an extension is linked to and cannot be had from the torch installed."""
    found = []
    for library in elf.needed():
        runtime = re.fullmatch(r"libcudart\.so\.(\d+)(\.\d+)?", library)
        if runtime and cuda_major and runtime[1] != cuda_major:
            found.append(f"`{path.name}` needs {library}, torch is built for CUDA {cuda_major}")
        ours = re.fullmatch(r"lib(torch\w*|c10\w*)\.so", library)
        if ours and (site / "torch").is_dir() and not (site / "torch" / "lib" / library).exists():
            found.append(f"`{path.name}` needs {library}, which the torch installed lacks")
    return found


def problems(site: Path, name: str, kind: str, capabilities: list[str], major: str) -> list[str]:
    """Return what is wrong with the compiled parts of a package."""
    objects = shared_objects(site, name)
    if objects is None:
        return ["is not installed"]
    if not objects and kind in {"cuda", "native"}:
        return ["is hollow: its source has code to compile, and nothing compiled was installed"]
    found, with_code = [], 0
    for path in objects:
        try:
            elf = Elf(path.read_bytes())
            sass, ptx = elf.codes()
        except (OSError, ValueError, IndexError, struct.error) as error:
            found.append(f"`{path.name}` cannot be read: {error}")
            continue
        found += links(site, path, elf, major)
        with_code += bool(sass or ptx)
        lacking = [c for c in capabilities if (sass or ptx) and not runs_on(c, sass, ptx)]
        if lacking:
            has = ", ".join(f"sm_{arch}" for arch, _ in sorted(sass)) or "PTX alone"
            found.append(f"`{path.name}` has no code for {', '.join(lacking)}; it has {has}")
    if kind == "cuda" and capabilities and not with_code:
        found.append("was built without its CUDA code")
    return found


def main(arguments: list[str]) -> int:
    """Print what is wrong; the answer is 1 where something is."""
    site, name, kind, capabilities, major = arguments
    words = [word for word in capabilities.split(";") if word]
    found = problems(Path(site), name, kind, words, major)
    sys.stdout.writelines(f"{name} {line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
