"""A repository of a source that is compiled, as a folder and as plain files on a web server."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from shutil import which
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from index import LocalIndex

GIT = which("git")


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A bare repository, and the commit of its only branch's head."""

    folder: Path
    commit: str

    @property
    def url(self) -> str:
        return f"file://{self.folder}"


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, with nobody's configuration."""
    if GIT is None:
        pytest.skip("needs git")
    names = ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL")
    environ = {
        **dict.fromkeys(names, "t@example.org"),
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    words = ("-c", "protocol.file.allow=always", *words)
    done = subprocess.run(
        [GIT, "-C", str(folder), *words], env=environ, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, bare: Path) -> Repository:
    """Commit what lies in a folder, and put it into a bare repository beside."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "clone", "-q", "--bare", str(folder), str(bare))
    return Repository(folder=bare, commit=git(folder, "rev-parse", "HEAD"))


def serve(repository: Repository, index: LocalIndex, path: str) -> str:
    """Serve a repository as plain files, as any web server does; return its address."""
    git(repository.folder, "gc", "-q")
    git(repository.folder, "update-server-info")
    for file in repository.folder.rglob("*"):
        if file.is_file():
            name = f"{path}/{file.relative_to(repository.folder)}"
            index.put(name, file.read_bytes(), content_type="application/octet-stream")
    return f"{index.base}{path}"
