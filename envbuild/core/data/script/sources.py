"""Sources of what is compiled: their hash, a clean copy, and what kind of code they hold.

Run by the install script: ``sources.py key FOLDER [WORD ...]``, ``copy FOLDER GOAL``,
``kind FOLDER``, ``unpack ARCHIVE GOAL``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

LEFT_OUT = re.compile(
    r"(build|dist|__pycache__|\.git|\.hg|\.svn|\.venv|venv|\.eggs|.*\.egg-info|.*\.py[cod]"
    r"|.*\.o|.*\.so)"
)
CUDA = (".cu", ".cuh")
NATIVE = (".c", ".cc", ".cpp", ".cxx", ".pyx", ".rs")


def left_out(_: str, names: list[str]) -> set[str]:
    """Return what earlier builds left among the names: it must not end up in this one."""
    return {name for name in names if LEFT_OUT.fullmatch(name)}


def files(folder: str) -> list[str]:
    """Return the files of a source by path, in one order on every machine."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not LEFT_OUT.fullmatch(name)]
        kept = [name for name in names if not LEFT_OUT.fullmatch(name)]
        found += [os.path.relpath(os.path.join(parent, name), folder) for name in kept]
    return sorted(found)


def key(folder: str, words: list[str]) -> str:
    """Return a hash of a source and of everything else that its build depends on."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"{len(word)}:{word}".encode("utf-8", "surrogateescape"))
    for path in files(folder):
        full = os.path.join(folder, path)
        content = Path(full).read_bytes() if os.path.isfile(full) else b""
        mode = "x" if os.access(full, os.X_OK) else "-"
        name = os.fsencode(path)
        digest.update(b"%d:%s%s%d:" % (len(name), name, mode.encode(), len(content)))
        digest.update(content)
    return digest.hexdigest()


def kind(folder: str) -> str:
    """Return what a source is: ``cuda``, ``native`` or ``python``."""
    paths = files(folder)
    try:
        setup = Path(folder, "setup.py").read_text("utf-8", "replace")
    except OSError:
        setup = ""
    if "CUDAExtension" in setup or any(path.endswith(CUDA) for path in paths):
        return "cuda"
    return "native" if any(path.endswith(NATIVE) for path in paths) else "python"


def unpack(archive: str, goal: str) -> None:
    """Unpack an sdist so that its one folder becomes the goal."""
    partial = f"{goal}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    if tarfile.is_tarfile(archive) and hasattr(tarfile, "data_filter"):
        with tarfile.open(archive) as tar:
            tar.extractall(partial, filter="data")
    else:
        shutil.unpack_archive(archive, partial)
    (inner,) = os.listdir(partial)
    os.replace(os.path.join(partial, inner), goal)
    os.rmdir(partial)


def main(arguments: list[str]) -> int:
    """Do what is asked and print the answer."""
    verb, folder, *words = arguments
    if verb == "key":
        sys.stdout.write(key(folder, words) + "\n")
    elif verb == "kind":
        sys.stdout.write(kind(folder) + "\n")
    elif verb == "copy":
        shutil.copytree(folder, words[0], symlinks=False, ignore=left_out, dirs_exist_ok=True)
    else:
        unpack(folder, words[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
