"""The commands `script` and `dockerfile`: from their arguments to what is printed."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.cli.invocation import project_directory
from envbuild.commands.dockerfile import DockerOptions, dockerfile
from envbuild.commands.script import ScriptOptions, script
from envbuild.errors import InputError
from envbuild.model.report import Outcome
from envbuild.render.jsonreport import render_json
from envbuild.render.written import render_written, written_document
from envbuild.world.projectfiles import ProjectFiles
from envbuild.world.streams import say, terminal_width, wants_color

if TYPE_CHECKING:
    import argparse

    from envbuild.model.rendered import RenderReport


def run_script(arguments: argparse.Namespace) -> int:
    """Run `envbuild script` or `envbuild dockerfile` and return its exit code."""
    if arguments.check and arguments.dry_run:
        raise InputError(
            "`--check` and `--dry-run` exclude each other", hint="leave one of them out"
        )
    files = ProjectFiles(project_directory(arguments.path))
    named = getattr(arguments, "output", None)
    output = Path(named).absolute() if named else None
    goal_files = files if output is None else ProjectFiles(output.parent)
    if output is not None and not output.parent.is_dir():
        raise InputError(f"`{output.parent}` is no folder, wanted that of `--output`")
    writes = not (arguments.check or arguments.dry_run)
    with goal_files.locked() if writes else nullcontext():
        if writes:
            goal_files.recover()
        report = _run(arguments, files, goal_files, output)
    if report.outcome is Outcome.WRITTEN:
        _make_executable(goal_files.root, report)
    code = int(report.outcome is Outcome.STALE)
    _print(report, arguments, code=code)
    return code


def _run(
    arguments: argparse.Namespace,
    files: ProjectFiles,
    goal_files: ProjectFiles,
    output: Path | None,
) -> RenderReport:
    options = ScriptOptions(
        target=arguments.target,
        check=arguments.check,
        dry_run=arguments.dry_run,
        ptx=arguments.ptx,
        project=".." if output is None else os.path.relpath(files.root, output.parent),
        goal=None if output is None else output.name,
    )
    if arguments.command == "script":
        return script(options, files=files, goal_files=goal_files)
    wanted = DockerOptions(script=options, base=arguments.base)
    return dockerfile(wanted, files=files)


def _make_executable(root: Path, report: RenderReport) -> None:
    for path in report.files:
        if path.endswith(".sh"):
            (root / path).chmod(0o755)


def _print(report: RenderReport, arguments: argparse.Namespace, *, code: int) -> None:
    if arguments.format == "json":
        say(sys.stdout, render_json(written_document(report, exit_code=code)))
        return
    color = wants_color(sys.stdout, arguments.color, os.environ)
    say(sys.stdout, render_written(report, width=terminal_width(sys.stdout), color=color))
