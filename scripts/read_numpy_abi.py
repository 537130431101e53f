"""Build `envbuild/checks/data/numpy2.toml`: the first release that is compiled against numpy 2.

    python scripts/read_numpy_abi.py [--index URL] [--out FILE] [PACKAGE ...]

Code that is compiled with numpy's headers names the module that it imports numpy's functions
from: `numpy.core._multiarray_umath` with those of numpy 1, `numpy._core._multiarray_umath` as
well with those of numpy 2. Modules that use numpy by way of pybind11's own headers name neither
and prove nothing: numpy 2 lets the old ones load. Of a package's releases the border between the
two is searched by halves. Of each wheel its compiled modules are read, the smallest first, until
one names either.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from remote_wheels import PYPI, opened, releases
from wheel_members import pieces

from envbuild.world.http import HttpClient

if TYPE_CHECKING:
    from envbuild.model.wheel import WheelFile

OUT = Path(__file__).parents[1] / "envbuild" / "checks" / "data" / "numpy2.toml"
PACKAGES = {
    "bottleneck": "1.3",
    "h5py": "3.8",
    "ml-dtypes": "0.2",
    "matplotlib": "3.6",
    "numba": "0.57",
    "numexpr": "2.8",
    "opencv-contrib-python": "4.8",
    "opencv-contrib-python-headless": "4.8",
    "opencv-python": "4.8",
    "opencv-python-headless": "4.8",
    "pandas": "1.5",
    "pyarrow": "12.0",
    "pywavelets": "1.4",
    "scikit-learn": "1.2",
    "scipy": "1.10",
    "shapely": "2.0",
    "torch": "2.0",
    "jaxlib": "0.4.20",
}
_OLD, _NEW = b"numpy.core._multiarray_umath\0", b"numpy._core._multiarray_umath\0"
_LARGEST = 200_000_000
_HEAD = """\
# The first release of a package that is compiled against numpy 2: the last one before it fails
# beside numpy 2. Written by scripts/read_numpy_abi.py: do not edit.
"""


class Border(NamedTuple):
    """The last release for numpy 1, the first that is not, and the file of the last that tells."""

    last: str
    first: str
    file: str


def compiled_for(client: HttpClient, wheel: WheelFile) -> tuple[int, str] | None:
    """Return the major of numpy that a wheel is compiled against, and the file that tells."""
    archive = opened(client, wheel)
    modules = [one for one in archive.members if ".so" in one.name and ".libs/" not in one.name]
    for member in sorted(modules, key=lambda one: one.compressed):
        if member.compressed > _LARGEST:
            break
        found = major_of(b"".join(pieces(archive, member)))
        if found is not None:
            return found, member.name
    return None


def major_of(code: bytes) -> int | None:
    """Return the major of numpy that code is compiled against, None where it uses none."""
    if _NEW in code:
        return 2
    return 1 if _OLD in code else None


def border(client: HttpClient, wheels: tuple[WheelFile, ...]) -> Border | None:
    """Search where a package left numpy 1; None where it never did, or was never compiled for it.

    Newer releases may have no module that tells, having gone over to pybind11.
    """
    low, high, file = -1, len(wheels), ""
    while high - low > 1:
        middle = (low + high) // 2
        found = compiled_for(client, wheels[middle])
        if found is not None and found[0] == 1:
            low, file = middle, found[1]
        else:
            high = middle
    if low < 0 or high == len(wheels):
        return None
    return Border(wheels[low].version, wheels[high].version, file)


def main(arguments: list[str]) -> int:
    """Write the table."""
    parser = argparse.ArgumentParser(description="read which releases are made for numpy 2")
    parser.add_argument("packages", nargs="*", help="only these, printed and not written")
    parser.add_argument("--index", default=PYPI, help="a simple index (PEP 503)")
    parser.add_argument("--out", type=Path, default=OUT, help="file to write")
    options = parser.parse_args(arguments)
    lines = [
        f'date = "{datetime.now(tz=timezone.utc).date().isoformat()}"',
        'source = "compiled modules of the wheels on PyPI"',
    ]
    with closing(HttpClient()) as client:
        for package in options.packages or PACKAGES:
            since = PACKAGES.get(package, "0")
            wheels = releases(client, package, index=options.index, since=since)
            found = border(client, wheels)
            print(f"{package}: {found}", flush=True)
            if found is not None:
                row = f'last = "{found.last}"\nfirst = "{found.first}"\nfile = "{found.file}"'
                lines.append(f"\n[releases.{package}]\n{row}")
    if not options.packages:
        options.out.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
