"""Where the command meets the real world: index pages, uv, and the project's folder."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from envbuild.catalog.reader import Catalog
from envbuild.commands.lock import lock
from envbuild.errors import InputError
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.uv import UvResolver

if TYPE_CHECKING:
    from envbuild.commands.lock import LockOptions
    from envbuild.model.report import LockReport
    from envbuild.ports import Reporter, WheelSource


def lock_report(options: LockOptions, source_choice: str, reporter: Reporter) -> LockReport:
    """Run `envbuild lock` in the real world.

    ``source_choice`` is ``live``, ``catalog`` or ``auto``. Raises what `lock` raises.
    """
    files = ProjectFiles(options.directory)
    catalog = Catalog.load()
    source = _source(source_choice, catalog, options, reporter)
    with files.locked() if options.writes else nullcontext():
        if options.writes:
            files.recover()
        return lock(
            replace(options, environ=dict(os.environ)),
            source=source,
            facts=catalog,
            resolver=UvResolver(),
            files=files,
            reporter=reporter,
        )


def _source(choice: str, catalog: Catalog, options: LockOptions, reporter: Reporter) -> WheelSource:
    if choice == "catalog" or (options.offline and choice == "auto"):
        return catalog
    if options.offline:
        raise InputError(
            "`--source live` and `--offline` exclude each other",
            hint="leave one of them out",
        )
    from envbuild.world.autosource import AutoSource  # noqa: PLC0415 - requests takes 100 ms
    from envbuild.world.http import HttpClient  # noqa: PLC0415
    from envbuild.world.liveindex import LiveIndex  # noqa: PLC0415
    from envbuild.world.pagecache import PageCache, default_directory  # noqa: PLC0415

    client = HttpClient()
    live = LiveIndex(client, PageCache(default_directory(os.environ)), reporter.download)
    if choice == "live":
        return live
    return AutoSource(live, catalog, reaches=client.reaches, catalog_date=catalog.date)
