"""Bring the source of a build onto the disk: a folder, a git commit, or an sdist."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

from packaging.pylock import Pylock

from envbuild.core.redact import redact_text, redact_url
from envbuild.errors import WorldError
from envbuild.world.childprocess import run_to_end
from envbuild.world.sourcetree import source_tree_sha256

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from envbuild.model.stack import SourceBuild
    from envbuild.world.uvcommand import UvCommand

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_GIT = re.compile(r"(?P<url>.+)@(?P<commit>[0-9a-f]{40})(?:#subdirectory=(?P<folder>.+))?")
_GIT_USER = re.compile(r"//[^/@]+@")


def source_identity(build: SourceBuild, *, project: Path) -> str:
    """Return what tells one source from another: the hash of its files, or what cannot change."""
    if build.path is not None:
        return f"tree:{source_tree_sha256(_folder(build, project))}"
    if build.git is not None:
        return f"git:{_GIT_USER.sub('//', build.git)}"
    return f"sdist:{build.project}=={build.version}:{build.sha256 or ''}"


def _folder(build: SourceBuild, project: Path) -> Path:
    folder = project / (build.path or ".")
    if not folder.is_dir():
        raise WorldError(
            f"`{build.project}` is to be built from `{build.path}`, where no folder is",
            hint="a submodule that is not checked out? `git submodule update --init --recursive`",
        )
    return folder


class SourceFetcher:
    """Fetches sources into a scratch folder."""

    def __init__(self, *, project: Path, environ: Mapping[str, str], uv: UvCommand) -> None:
        self._project = project
        self._environ = environ
        self._uv = uv

    def fetch(self, build: SourceBuild, scratch: Path) -> Path:
        """Return a folder, one of the project's own where it lies, or the file of an sdist."""
        if build.path is not None:
            return _folder(build, self._project)
        if self._uv.offline and not (build.git or "").startswith("file:"):
            raise WorldError(
                f"offline, and the source of `{build.project}` lies on a host",
                hint="leave out `--offline`",
            )
        if build.git is not None:
            return self._checkout(build.project, build.git, scratch / "git")
        return self._sdist(build, scratch)

    def _checkout(self, name: str, address: str, goal: Path) -> Path:
        match = _GIT.fullmatch(address)
        if match is None:
            raise WorldError(f"`{name}`: found no full commit in `{redact_url(address)}`")
        self._git("init", "--quiet", str(goal))
        at = ("-C", str(goal))
        self._git(*at, "remote", "add", "origin", match["url"])
        self._git(*at, "ls-remote", "--quiet", "origin", "HEAD")
        self._fetch(name, match["commit"], at)
        self._git(*at, "checkout", "--quiet", "--detach", match["commit"])
        self._submodules(goal)
        folder = goal / (match["folder"] or "")
        if not folder.is_dir():
            raise WorldError(f"`{name}`: the commit has no folder `{match['folder']}`")
        return folder

    def _fetch(self, name: str, commit: str, at: tuple[str, str]) -> None:
        """Fetch one commit; a host that gives no single ones gives all."""
        try:
            self._git(*at, "fetch", "--quiet", "--depth", "1", "origin", commit)
        except WorldError:
            self._git(*at, "fetch", "--quiet", "origin", "+refs/*:refs/envbuild/*")
            try:
                self._git(*at, "cat-file", "-e", f"{commit}^{{commit}}")
            except WorldError:
                raise WorldError(
                    f"`{name}`: its repository has no commit {commit}",
                    hint="a commit of a branch that was rewritten is gone: name another",
                ) from None

    def _submodules(self, goal: Path) -> None:
        submodule = ("-C", str(goal), "submodule", "--quiet")
        try:
            self._git(*submodule, "update", "--init", "--recursive", "--depth", "1")
        except WorldError:
            self._git(*submodule, "deinit", "--force", "--all")
            shutil.rmtree(goal / ".git" / "modules", ignore_errors=True)
            self._git(*submodule, "update", "--init", "--recursive")

    def _git(self, *words: str) -> None:
        environ = {**self._environ, "GIT_TERMINAL_PROMPT": "0"}
        environ.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
        try:
            done = run_to_end(["git", *words], environ=environ)
        except OSError:
            raise WorldError("`git` was not found", hint="apt-get install -y git") from None
        if done.returncode != 0:
            said = redact_text(done.stderr).strip() or f"exit status {done.returncode}"
            raise WorldError(f"`git {next(w for w in words if w[0] not in '-/')}` failed: {said}")

    def _sdist(self, build: SourceBuild, scratch: Path) -> Path:
        """Download the sdist from where uv's indexes have it, checked against its hash."""
        url, sha256 = build.url, build.sha256
        if url is None:
            url, sha256 = self._located(build, scratch)
        from envbuild.world.http import HttpClient  # noqa: PLC0415 - requests takes 100 ms

        answer = HttpClient().get(url)
        if answer is None:
            raise WorldError(f"`{redact_url(url)}` does not exist")
        found = hashlib.sha256(answer.body).hexdigest()
        if sha256 is not None and found != sha256:
            raise WorldError(
                f"the sdist of `{build.project} {build.version}` has the sha256 {found},"
                f" wanted {sha256}",
                hint="lock anew if the file was replaced, and ask why",
            )
        path = scratch / url.partition("#")[0].rpartition("/")[2]
        path.write_bytes(answer.body)
        return path

    def _located(self, build: SourceBuild, scratch: Path) -> tuple[str, str | None]:
        asked = scratch / "asked.in"
        asked.write_text(f"{build.project}=={build.version}\n", encoding="utf-8")
        words = ["pip", "compile", "--no-deps", "--no-build-isolation", "--quiet", "--no-header"]
        words += ["--no-binary", build.project, "--format", "pylock.toml"]
        done = self._uv.run(*words, "--python", self._uv.python, str(asked))
        lock = Pylock.from_dict(tomllib.loads(done.stdout))
        sdist = next((one.sdist for one in lock.packages if one.sdist is not None), None)
        if sdist is None or sdist.url is None:
            raise WorldError(f"`{build.project} {build.version}` has no sdist")
        return sdist.url, sdist.hashes.get("sha256")


def source_names(source: Path) -> list[str]:
    """Return the names of the files of a folder or an sdist."""
    if source.is_dir():
        return [name for _, _, names in os.walk(source) for name in names]
    try:
        if source.suffix == ".zip":
            with zipfile.ZipFile(source) as packed:
                return packed.namelist()
        with tarfile.open(source) as tar:
            return tar.getnames()
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise WorldError(f"the sdist `{source.name}` cannot be read: {error}") from None
