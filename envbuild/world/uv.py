"""Run uv on a scratch project: the only place where uv is started to resolve."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.core.scratch import ROOT
from envbuild.core.uvreason import absent_extras, yanked_releases
from envbuild.errors import WorldError
from envbuild.model.resolution import Resolution
from envbuild.world.childprocess import run_to_end
from envbuild.world.interrupts import scratch_folder
from envbuild.world.uvfailure import failure, refuse_unread

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping

    from envbuild.model.resolution import ResolveRequest, Unavailable, Unsatisfiable

OLDEST = (0, 13, 0)
"""The oldest uv that was tried: from it to 0.13.9 the same project gets the same bytes."""

_PASSED_ON = re.compile(
    r"UV_(CACHE_DIR|HTTP_TIMEOUT|HTTP_CONNECT_TIMEOUT|HTTP_RETRIES|CONCURRENT_DOWNLOADS"
    r"|NATIVE_TLS|SYSTEM_CERTS|INSECURE_HOST|KEYRING_PROVIDER|CREDENTIALS_DIR)"
)
_NOT_LINKED = {"pyproject.toml", "uv.lock", "uv.toml", ".venv", ".git", "lockfiles"}


def find_uv() -> Path:
    """Return the uv that envbuild was installed with, else the one on PATH.

    Raises WorldError when there is none.
    """
    try:
        import uv  # noqa: PLC0415 - may be absent

        return Path(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise WorldError("`uv` was not found", hint="pip install uv")
    return Path(found)


class UvResolver:
    """`uv export`, which locks, in a scratch folder that is gone afterwards."""

    def __init__(
        self, binary: Path | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._binary = binary
        self._checked = False
        self._environ = dict(os.environ if environ is None else environ)

    def resolve(self, request: ResolveRequest) -> Resolution | Unsatisfiable | Unavailable:
        """Resolve a scratch project; see `envbuild.ports.Resolver`."""
        try:
            with scratch_folder() as folder:
                return self._resolve(request, folder)
        except OSError as error:
            raise WorldError(
                f"the temporary folder cannot be used: {error.strerror or error}",
                hint="set TMPDIR to a folder with free space that can be written to",
            ) from None

    def _resolve(
        self, request: ResolveRequest, scratch: Path
    ) -> Resolution | Unsatisfiable | Unavailable:
        project = scratch / "project"
        _lay_out(project, scratch, request)
        environ = self._environment(scratch, request)
        # `uv export` locks first: one start of uv, and what is not read again from a file.
        words = ["export", "--format", "pylock.toml", *_selection(request)]
        done = self._run([*words, *self._options(request)], cwd=project, environ=environ)
        refuse_unread(done.stderr, scratch=str(scratch))
        if done.returncode != 0:
            return failure(done, offline=request.offline, scratch=str(scratch))
        lock = (project / "uv.lock").read_text(encoding="utf-8")
        return Resolution(
            uv_lock=lock.replace(str(scratch), ROOT),
            pylock=done.stdout.replace(str(scratch), ROOT),
            yanked=yanked_releases(redact_text(done.stderr)),
            absent_extras=absent_extras(done.stderr),
        )

    def _options(self, request: ResolveRequest) -> list[str]:
        options = ["--python", sys.executable, "--no-python-downloads", "--no-progress"]
        if request.offline:
            options.append("--offline")
        if request.upgrade:
            options.append("--upgrade")
        for name in request.upgrade_packages:
            options += ["--upgrade-package", name]
        return options

    def _environment(self, scratch: Path, request: ResolveRequest) -> dict[str, str]:
        """Return the user's environment without any setting of uv that could change the answer."""
        environ = {
            name: value
            for name, value in self._environ.items()
            if not name.startswith("UV_") or _PASSED_ON.fullmatch(name)
        }
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"):
            environ.pop(name, None)
        config = str(scratch / "config")
        return {
            **environ,
            "XDG_CONFIG_HOME": config,
            "XDG_CONFIG_DIRS": config,
            "NO_COLOR": "1",
            **dict(request.credentials),
        }

    def _run(
        self, arguments: list[str], *, cwd: Path, environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        binary = self._binary = self._binary or find_uv()
        if not self._checked:
            _check_version(binary)
            self._checked = True
        try:
            return run_to_end([str(binary), *arguments], cwd=cwd, environ=environ)
        except OSError as error:
            raise _not_started(binary, error) from error


def _not_started(binary: Path, error: OSError) -> WorldError:
    return WorldError(
        f"`{binary}` could not be started: {error.strerror}", hint="pip install -U uv"
    )


def _check_version(binary: Path) -> None:
    try:
        answer = run_to_end([str(binary), "--version"]).stdout
    except OSError as error:
        raise _not_started(binary, error) from error
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", answer)
    if match is None or tuple(int(part) for part in match.groups()) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        said = answer.strip().partition("\n")[0] or "no uv"
        raise WorldError(
            f"`{binary}` is `{said}`, wanted uv {wanted} or newer",
            hint="pip install -U uv",
        )


def _lay_out(project: Path, scratch: Path, request: ResolveRequest) -> None:
    project.mkdir()
    config = scratch / "config" / "uv" / "uv.toml"
    config.parent.mkdir(parents=True)
    config.touch()
    if request.beside is not None:
        for entry in request.beside.iterdir():
            if entry.name not in _NOT_LINKED:
                (project / entry.name).symlink_to(entry.resolve())
    for path, text in request.files:
        goal = (project if "/" not in path else scratch) / path
        goal.parent.mkdir(parents=True, exist_ok=True)
        goal.write_text(text.replace(ROOT, str(scratch)), encoding="utf-8")


def _selection(request: ResolveRequest) -> Iterator[str]:
    for extra in request.export_extras:
        yield from ("--extra", extra)
    for group in request.export_groups:
        yield from ("--group", group)
