"""Where the command meets the real world: index pages, uv, and the project's folder."""

from __future__ import annotations

import gc
import os
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from envbuild.catalog.reader import Catalog
from envbuild.commands.lock import lock
from envbuild.errors import InputError
from envbuild.world.basereader import DiskBases
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.uv import UvResolver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.commands.lock import LockOptions
    from envbuild.model.report import LockReport
    from envbuild.ports import Reporter, WheelSource

TIMEOUT = "ENVBUILD_HTTP_TIMEOUT"
_LONGEST = 86_400.0


def lock_report(options: LockOptions, source_choice: str, reporter: Reporter) -> LockReport:
    """Run `envbuild lock` in the real world.

    ``source_choice`` is ``live``, ``catalog`` or ``auto``. Raises what `lock` raises.
    """
    _prepare_process()
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
            resolver=UvResolver(environ=environ),
            files=files,
            reporter=reporter,
            bases=DiskBases(environ),
        )


def _prepare_process() -> None:
    """Spare a process of a second what it need not do while somebody waits.

    What renders the answer is imported while uv is at work, and cyclic garbage, of which there
    is next to none, is not looked for: together a sixth of `envbuild lock --check`.
    """
    gc.disable()
    Thread(target=import_module, args=("envbuild.render.answer",), daemon=True).start()


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
    from envbuild.world.autosource import AutoSource  # noqa: PLC0415 - requests takes 100 ms
    from envbuild.world.http import HttpClient, HttpOptions  # noqa: PLC0415
    from envbuild.world.liveindex import LiveIndex  # noqa: PLC0415
    from envbuild.world.pagecache import PageCache, default_directory  # noqa: PLC0415

    limits = HttpOptions()
    if seconds is not None:
        connect = min(seconds, limits.connect_timeout)
        limits = replace(limits, connect_timeout=connect, read_timeout=seconds)
    client = HttpClient(options=limits)
    live = LiveIndex(client, PageCache(default_directory(os.environ)), reporter.download)
    if choice == "live":
        return live
    return AutoSource(live, catalog, reaches=client.reaches, catalog_date=catalog.date)
