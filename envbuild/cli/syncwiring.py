"""Where `envbuild sync` meets the real world: a virtual environment, uv, and compilers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.catalog.reader import Catalog
from envbuild.checks.registry import all_rules
from envbuild.cli.doctorcommand import Where
from envbuild.cli.doctorwiring import DiskExaminer
from envbuild.cli.synccommand import SyncWorld
from envbuild.commands.doctor import DoctorOptions, doctor, exit_code
from envbuild.commands.sync import sync
from envbuild.world.install import VenvInstaller
from envbuild.world.pagecache import default_directory
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.sourcebuild import SourceBuilder
from envbuild.world.wheelcache import WheelCache

if TYPE_CHECKING:
    from envbuild.commands.sync import SyncOptions
    from envbuild.core.buildwords import BuildAim
    from envbuild.model.diagnosis import DoctorReport
    from envbuild.model.syncreport import SyncReport
    from envbuild.ports import Builder, Reporter


def real_sync_world() -> SyncWorld:
    """Return the real world of the command."""
    return SyncWorld(sync=sync_really, examine=_examine)


def sync_really(
    options: SyncOptions,
    directory: Path,
    online: bool,  # noqa: FBT001 - a callable has no names
    reporter: Reporter,
) -> SyncReport:
    """Run `envbuild sync` in the real world; raises what `sync` raises."""
    environ = dict(os.environ if options.environ is None else options.environ)
    project = Path(os.path.realpath(directory))
    installer = VenvInstaller(
        project=project, venv=options.venv, environ=environ, offline=not online
    )

    def builder(aim: BuildAim) -> Builder:
        return SourceBuilder(
            aim=aim,
            project=project,
            environment=installer,
            cache=WheelCache(default_directory(environ)),
            environ=environ,
            reporter=reporter,
        )

    return sync(
        options,
        files=ProjectFiles(project),
        installer=installer,
        builder=builder,
        reporter=reporter,
    )


def _examine(report: SyncReport, project: str) -> tuple[DoctorReport, int]:
    where = Where(path=report.venv, project=project, owned=not report.beside)
    examiner = DiskExaminer(where, os.environ)
    found = doctor(DoctorOptions(), examiner=examiner, facts=Catalog.load(), rules=all_rules())
    return found, exit_code(found, fail_on="error")
