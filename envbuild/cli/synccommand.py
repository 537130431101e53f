"""The command `sync`: from its arguments to what is printed."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.cli.invocation import project_directory
from envbuild.commands.sync import SyncOptions
from envbuild.render.doctoranswer import DoctorManner, render_diagnosis
from envbuild.render.doctorjson import doctor_document
from envbuild.render.jsonreport import render_json
from envbuild.render.progress import TerminalReporter, wants_line
from envbuild.render.syncanswer import render_sync, sync_document
from envbuild.world.streams import say, terminal_width, wants_color

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from envbuild.model.diagnosis import DoctorReport
    from envbuild.model.syncreport import SyncReport
    from envbuild.ports import Reporter

_DEFAULT = ".venv"


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncWorld:
    """What the command touches: the real world, or that of a test.

    ``sync`` is given the options, the project's folder, whether the network may be reached, and
    a reporter; ``examine`` what was done and the project, and returns the exit code as well.
    """

    sync: Callable[[SyncOptions, Path, bool, Reporter], SyncReport]
    examine: Callable[[SyncReport, str], tuple[DoctorReport, int]]


def run_sync(arguments: argparse.Namespace, world: SyncWorld) -> int:
    """Run `envbuild sync` and return its exit code."""
    directory = project_directory(arguments.path)
    options = _options(arguments, directory)
    try:
        with closing(_reporter(arguments)) as reporter:
            report = world.sync(options, directory, not arguments.offline, reporter)
            if report.dry_run:
                found, code = None, 0
            else:
                reporter.phase("examine the environment")
                found, code = world.examine(report, str(directory))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run `envbuild sync` again, and it goes on") from None
    if any(one.outcome == "left out" for one in report.builds):
        code = code or 1
    say(sys.stdout, _answer(report, found, arguments, code=code))
    return code


def _answer(
    report: SyncReport, found: DoctorReport | None, arguments: argparse.Namespace, *, code: int
) -> str:
    if arguments.format == "json":
        document: dict[str, object] = {"version": 1, "command": "sync", "exit-code": code}
        document["sync"] = sync_document(report)
        document["doctor"] = doctor_document(found, exit_code=code) if found else None
        return render_json(document)
    width, color = terminal_width(sys.stdout), wants_color(sys.stdout, arguments.color, os.environ)
    text = render_sync(report, width=width, color=color)
    if found is None:
        return text
    again = f"envbuild doctor {report.venv}"
    manner = DoctorManner(format="text", again=again, width=width, color=color)
    return f"{text}\n{render_diagnosis(found, manner, exit_code=code)}"


def _options(arguments: argparse.Namespace, directory: Path) -> SyncOptions:
    named = Path(arguments.venv) if arguments.venv else directory / _DEFAULT
    return SyncOptions(
        venv=Path(os.path.abspath(named.expanduser())),  # noqa: PTH100 - no link is followed
        target=arguments.target,
        build=not arguments.no_build,
        dry_run=arguments.dry_run,
        allow_unhashed=arguments.allow_unhashed,
        ptx=arguments.ptx,
        environ=dict(os.environ),
    )


def _reporter(arguments: argparse.Namespace) -> TerminalReporter:
    return TerminalReporter(
        sys.stderr,
        live=wants_line(sys.stderr, os.environ),
        quiet=arguments.quiet,
        width=terminal_width(sys.stderr) or 80,
    )
