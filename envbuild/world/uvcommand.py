"""Run uv on an environment: every option is spelt out, and no variable of uv's changes that."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.core.redact import redact_text
from envbuild.errors import WorldError
from envbuild.world.childprocess import run_to_end
from envbuild.world.uv import find_uv

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

_PASSED_ON = re.compile(
    r"UV_(CACHE_DIR|HTTP_TIMEOUT|HTTP_CONNECT_TIMEOUT|HTTP_RETRIES|CONCURRENT_\w+|LINK_MODE"
    r"|NATIVE_TLS|SYSTEM_CERTS|INSECURE_HOST|KEYRING_PROVIDER|CREDENTIALS_DIR|OFFLINE"
    r"|PYTHON_INSTALL_DIR|PYTHON_INSTALL_MIRROR|PYTHON_DOWNLOADS|PYTHON_CPYTHON_BUILD"
    r"|INDEX_\w+_(?:USERNAME|PASSWORD))"
)
_INDEXES = frozenset(
    {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"}
)
_MISLEADING = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME")
_CHANGE = re.compile(r"^ ([-+~]) (\S.*)$", re.MULTILINE)
_NOISE = re.compile(r"^(?:warning: The `--pylock`.*|Using CPython.*|Would use .*)\n?", re.MULTILINE)


class UvCommand:
    """uv for one project and one environment."""

    def __init__(
        self,
        *,
        project: Path,
        venv: Path,
        environ: Mapping[str, str],
        offline: bool = False,
        binary: Path | None = None,
    ) -> None:
        self._project, self._venv = project, venv
        self._given = dict(environ)
        self.offline = offline
        self._binary = binary
        self.passed_on: tuple[int, ...] = ()
        """Open files that uv inherits, unless it builds: a compiler may leave a server behind."""

    @property
    def python(self) -> str:
        """The interpreter of the environment."""
        return str(self._venv / "bin" / "python")

    def run(
        self, *arguments: str, config: Path | None = None, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run uv in the project's folder; raise WorldError with what it said where it fails.

        ``config`` is an empty folder to look for the user's settings in; without it uv reads
        none, nor those of the project.
        """
        done = self.attempt(*arguments, config=config, extra=extra)
        if done.returncode != 0:
            raise self.failure(arguments, done)
        return done

    def attempt(
        self, *arguments: str, config: Path | None = None, extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run uv in the project's folder, whatever its answer."""
        self._binary = self._binary or find_uv()
        words = [str(self._binary), *arguments, "--no-progress"]
        words += [] if config is not None else ["--no-config"]
        words += ["--offline"] if self.offline else []
        environ = {**self._environ(by_project=config is not None), **(extra or {})}
        if config is not None:
            environ |= {"XDG_CONFIG_HOME": str(config), "XDG_CONFIG_DIRS": str(config)}
        try:
            kept = () if arguments[0] == "build" else self.passed_on
            return run_to_end(words, cwd=self._project, environ=environ, passed_on=kept)
        except OSError as error:
            raise WorldError(
                f"`{words[0]}` could not be started: {error.strerror}", hint="pip install -U uv"
            ) from None

    def failure(
        self, arguments: tuple[str, ...], done: subprocess.CompletedProcess[str]
    ) -> WorldError:
        """Say what uv said."""
        said = redact_text(_NOISE.sub("", done.stderr)).strip() or f"exit status {done.returncode}"
        command = " ".join(word for word in arguments[:2] if not word.startswith("-"))
        offline = "leave out `--offline`" if self.offline else None
        return WorldError(f"`uv {command}` failed: {said}", hint=offline)

    def _environ(self, *, by_project: bool) -> dict[str, str]:
        """Return the user's environment without what would lead uv astray.

        The indexes of uv's variables count where no lock names them.
        """
        environ = {
            name: value
            for name, value in self._given.items()
            if not name.startswith("UV_")
            or _PASSED_ON.fullmatch(name)
            or (name in _INDEXES and not by_project)
        }
        for name in _MISLEADING:
            environ.pop(name, None)
        return {**environ, "UV_PROJECT_ENVIRONMENT": str(self._venv), "NO_COLOR": "1"}


def changes_in(text: str) -> tuple[str, ...]:
    """Return the changes that uv lists: ``+ torch==2.7.0+cu128``, ``- einops==0.8.1``."""
    found = _CHANGE.findall(text)
    return tuple(f"{sign} {what.partition(' (from ')[0].strip()}" for sign, what in found)


def changed_name(change: str) -> str:
    """Return the name of the package in a change."""
    return re.split(r"[=\s]", change[2:], maxsplit=1)[0]


def absolute(path: Path) -> Path:
    """Return a path from the root, with no link followed."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` follows the links of a venv
