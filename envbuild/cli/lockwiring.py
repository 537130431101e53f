"""Where the command meets the real world: index pages, uv, and the project's folder."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from envbuild.catalog.reader import Catalog
from envbuild.commands.lock import lock
from envbuild.errors import InputError
from envbuild.world.autosource import AutoSource
from envbuild.world.basereader import DiskBases
from envbuild.world.livehosts import LiveHosts
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.uv import UvResolver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.commands.lockrun import LockOptions
    from envbuild.model.report import LockReport
    from envbuild.model.resolution import (
        Resolution,
        ResolveRequest,
        Unavailable,
        Unsatisfiable,
    )
    from envbuild.ports import Reporter, WheelSource

TIMEOUT = "ENVBUILD_HTTP_TIMEOUT"
_LONGEST = 86_400.0


def lock_report(options: LockOptions, source_choice: str, reporter: Reporter) -> LockReport:
    """Run `envbuild lock` in the real world.

    ``source_choice`` is ``live``, ``catalog`` or ``auto``. Raises what `lock` raises.
    """
    files = ProjectFiles(options.directory)
    catalog = Catalog.load()
    environ = dict(os.environ)
    seconds = _timeout(environ)
    if seconds is not None:
        environ.setdefault("UV_HTTP_TIMEOUT", str(max(1, round(seconds))))
    source = _source(source_choice, catalog, options, reporter, seconds=seconds)
    with files.locked() if options.writes else nullcontext():
        if options.writes:
            files.recover()
        return lock(
            replace(options, environ=environ),
            source=source,
            facts=catalog,
            resolver=_WhileUvWorks(environ=environ),
            files=files,
            reporter=reporter,
            bases=DiskBases(environ),
        )


class _WhileUvWorks(UvResolver):
    """uv, and what renders the answer imported while one waits for it."""

    def resolve(self, request: ResolveRequest) -> Resolution | Unsatisfiable | Unavailable:
        Thread(target=import_module, args=("envbuild.render.answer",), daemon=True).start()
        return super().resolve(request)


def _timeout(environ: Mapping[str, str]) -> float | None:
    """Return the seconds for which a host may stay silent, None for what is usual."""
    text = environ.get(TIMEOUT, "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0 < seconds < _LONGEST:
        return seconds
    raise InputError(
        f"{TIMEOUT} is `{text}`, wanted a number of seconds above 0", hint=f"{TIMEOUT}=30"
    )


def _source(
    choice: str,
    catalog: Catalog,
    options: LockOptions,
    reporter: Reporter,
    *,
    seconds: float | None,
) -> WheelSource:
    if choice == "catalog" or (options.offline and choice == "auto"):
        return catalog
    if options.offline:
        raise InputError(
            "`--source live` and `--offline` exclude each other",
            hint="leave one of them out",
        )
    live = LiveHosts(os.environ, seconds=seconds, progress=reporter.download)
    if choice == "live":
        return live
    return AutoSource(live, catalog, reaches=live.reaches, catalog_date=catalog.date)
