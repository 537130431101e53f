"""Build `envbuild/core/data/toolkits.toml`: what each release of nvcc accepts and compiles for.

    python scripts/read_toolkits.py [--index URL] [--out FILE]

Of the last release for each minor of CUDA are read: which host compilers `crt/host_config.h`
refuses, which architectures its `ptxas` names, and what that `ptxas` says when it is given PTX of
a version that does not exist (it is run for that, on Linux for x86_64).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.version import Version
from remote_wheels import PYPI, opened, releases
from wheel_members import pieces

from envbuild.world.http import HttpClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.wheel import WheelFile

OUT = Path(__file__).parents[1] / "envbuild" / "core" / "data" / "toolkits.toml"
# The assembler, and where its header lies.
_PACKAGES = (
    ("nvidia-cuda-nvcc-cu11", "nvidia-cuda-nvcc-cu11"),
    ("nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvcc-cu12"),
    ("nvidia-cuda-nvcc", "nvidia-cuda-crt"),
)
_GCC = re.compile(r"#if __GNUC__ > (\d+)\b")
_CLANG = re.compile(r"#if \(?\(?__clang_major__ >= (\d+)\)")
_ARCH = re.compile(rb"compute_(\d+)(\d)([af]?)(?![0-9a-z])")
_ISA = re.compile(r"current version is '(\d+\.\d+)'")
_NO_SUCH_PTX = ".version 99.9\n.target sm_80\n.address_size 64\n"
_HEAD = """\
# What each release of nvcc accepts and compiles for. Written by scripts/read_toolkits.py: do not
# edit. `gcc` and `clang` are the newest major that is accepted, `isa` is the version of the PTX
# that it writes, `archs` are the capabilities that it compiles for.
"""


class Toolkit(NamedTuple):
    """What one release of nvcc accepts and compiles for."""

    release: str
    gcc: int | None
    clang: int | None
    isa: str
    archs: tuple[str, ...]


def host_limits(header: str) -> tuple[int | None, int | None]:
    """Return the newest major of gcc and of clang that `host_config.h` lets pass."""
    gcc, clang = _GCC.search(header), _CLANG.search(header)
    return (int(gcc[1]) if gcc else None, int(clang[1]) - 1 if clang else None)


def architectures(ptxas: bytes) -> tuple[str, ...]:
    """Return the capabilities that an assembler names."""
    found = {(int(a), int(b), c.decode()) for a, b, c in _ARCH.findall(ptxas)}
    return tuple(f"{major}.{minor}{suffix}" for major, minor, suffix in sorted(found))


def newest_ptx(ptxas: bytes, folder: Path) -> str:
    """Run an assembler on PTX of no version, and return which version it knows."""
    program, source = folder / "ptxas", folder / "none.ptx"
    program.write_bytes(ptxas)
    program.chmod(0o755)
    source.write_text(_NO_SUCH_PTX, encoding="ascii")
    command = [str(program), "-arch", "sm_80", str(source), "-o", str(folder / "none")]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    found = _ISA.search(said.stderr + said.stdout)
    if found is None:
        sys.exit(f"ptxas says `{said.stderr.strip()}`, wanted the version it knows")
    return found[1]


def last_of_each_minor(wheels: tuple[WheelFile, ...]) -> dict[str, WheelFile]:
    """Return the newest wheel for each minor of CUDA, by `12.8`."""
    return {
        f"{version.major}.{version.minor}": wheel
        for wheel in wheels
        if (version := Version(wheel.version)).major
    }


def member_of(client: HttpClient, wheel: WheelFile, ending: str) -> bytes:
    """Return a file of a wheel."""
    archive = opened(client, wheel)
    member = next(one for one in archive.members if one.name.endswith(ending))
    return b"".join(pieces(archive, member))


def toolkits(client: HttpClient, *, index: str) -> Iterator[tuple[str, Toolkit]]:
    """Read the toolkits, oldest first."""
    for tools, headers in _PACKAGES:
        found = last_of_each_minor(releases(client, tools, index=index))
        beside = last_of_each_minor(releases(client, headers, index=index))
        for cuda in sorted(found, key=Version):
            ptxas = member_of(client, found[cuda], "/bin/ptxas")
            header = member_of(client, beside[cuda], "/crt/host_config.h").decode()
            gcc, clang = host_limits(header)
            with tempfile.TemporaryDirectory() as folder:
                isa = newest_ptx(ptxas, Path(folder))
            release = f"{found[cuda].project} {found[cuda].version}"
            yield cuda, Toolkit(release, gcc, clang, isa, architectures(ptxas))


def written(cuda: str, one: Toolkit) -> str:
    """Return the table of one toolkit."""
    limits = [
        f"{key} = {value}" for key, value in (("gcc", one.gcc), ("clang", one.clang)) if value
    ]
    archs = ", ".join(f'"{arch}"' for arch in one.archs)
    lines = [f'release = "{one.release}"', *limits, f'isa = "{one.isa}"', f"archs = [{archs}]"]
    return "\n".join((f'\n[toolkits."{cuda}"]', *lines)) + "\n"


def main(arguments: list[str]) -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description="read what each nvcc accepts and compiles for")
    parser.add_argument("--index", default=PYPI, help="a simple index (PEP 503)")
    parser.add_argument("--out", type=Path, default=OUT, help="file to write")
    options = parser.parse_args(arguments)
    date = datetime.now(tz=timezone.utc).date().isoformat()
    head = f'date = "{date}"\nsource = "crt/host_config.h and bin/ptxas of the wheels on PyPI"\n'
    tables = []
    with closing(HttpClient()) as client:
        for cuda, one in toolkits(client, index=options.index):
            print(f"CUDA {cuda}: {one}", flush=True)
            tables.append(written(cuda, one))
    options.out.write_text(_HEAD + head + "".join(tables), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
