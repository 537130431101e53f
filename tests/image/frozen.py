"""Builds an image on top of one that has a torch of its own, for real; see `build.py`.

    python frozen.py [--folder FOLDER] [--ca-file FILE]

The base stands for NVIDIA's: Debian with a small torch under a version such as theirs. Nothing of
it may be installed anew, changed or hidden, and a base whose name leads to another torch by now is
refused before anything is installed.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from build import Buildah, build, build_words, expect, make_base, make_project, parsed, say

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from envmaker import MadeEnv

HERE = Path(__file__).resolve().parent
VENDOR = "localhost/vendor:1"
TORCH = "2.8.0a0+5228986c39.nv25.05"
SITE = "usr/local/lib/python3.11/dist-packages"
VENV_SITE = "opt/venv/lib/python3.11/site-packages"
REFUSED = 24


def make_vendor(buildah: Buildah, folder: Path, torch: str) -> None:
    """Make the image that is kept."""
    root = folder / "vendor"
    made = MadeEnv(prefix=root / "usr/local", site=root / SITE)
    shutil.rmtree(root, ignore_errors=True)
    made.site.mkdir(parents=True)
    made.torch(torch, cuda="12.9", requires=["numpy"])
    made.install("numpy", "1.26.4")
    buildah.image(VENDOR, root, "FROM localhost/base\nCOPY . /\n")


def contents(buildah: Buildah, image: str, folder: str) -> dict[str, str]:
    """Return the hash of each file of a folder of an image."""
    container = buildah.run("from", image).strip()
    try:
        root = Path(buildah.run("mount", container).strip()) / folder
        return {
            str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(root.rglob("*"))
            if path.is_file() and path.suffix != ".pyc"
        }
    finally:
        buildah.run("rm", container)


def lock_around(buildah: Buildah, project: Path) -> str:
    """Lock a copy of the project around what the image holds."""
    container = buildah.run("from", VENDOR).strip()
    try:
        root = buildah.run("mount", container).strip()
        return make_project(HERE / "frozen-project", project, "--base-root", root)
    finally:
        buildah.run("rm", container)


def check_image(buildah: Buildah) -> None:
    """Look at what was built: the base is as it was, and is what is imported."""
    if contents(buildah, "localhost/built", SITE) != contents(buildah, VENDOR, SITE):
        sys.exit(f"found `{SITE}` changed, wanted the base as it was")
    added = contents(buildah, "localhost/built", VENV_SITE)
    twice = sorted({path.split("/")[0] for path in added if path.startswith(("torch/", "numpy"))})
    if twice:
        sys.exit(f"found {twice} in the environment, wanted the base's")
    container = buildah.run("from", "localhost/built").strip()
    try:
        said = buildah.run("run", container, "--", "python", "train.py")
    finally:
        buildah.run("rm", container)
    say(said)
    if f"user 10001, torch {TORCH} of /{SITE}/torch/__init__.py" not in said:
        sys.exit(f"found `{said.strip()}`, wanted the torch of the base")


def check_moved(buildah: Buildah, folder: Path, project: Path, doctor: str) -> None:
    """Have the name of the base lead to another torch: the build stops with a word on it."""
    make_vendor(buildah, folder, "2.9.0a0+50eac811a6.nv25.09")
    code, said = buildah.attempt(*build_words(project, doctor), str(project))
    wanted = f"has torch 2.9.0a0+50eac811a6.nv25.09, the lock is for torch {TORCH}"
    if code == 0 or wanted not in said:
        sys.exit(f"{said}\nfound no word on another torch, wanted `{wanted}`")
    say(f"another torch in the base: refused ({REFUSED})\n")


def main() -> None:
    """Build on a base, look, build again, and let the base change."""
    arguments, _ = parsed(__doc__).parse_known_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    buildah, project = Buildah(arguments.folder, arguments.driver), arguments.folder / "frozen"
    make_base(buildah, arguments.folder, arguments.ca_file)
    make_vendor(buildah, arguments.folder, TORCH)
    doctor = lock_around(buildah, project)
    build(buildah, project, doctor)
    check_image(buildah)
    expect(build(buildah, project, doctor), ())
    check_moved(buildah, arguments.folder, project, doctor)


if __name__ == "__main__":
    main()
