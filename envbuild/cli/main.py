"""The command line: where commands, the world and the renderings are joined.

Nothing heavy is imported until a command needs it: `envbuild --version` stays quick.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import gc
import os
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Protocol

from envbuild.cli.arguments import parse_arguments
from envbuild.errors import EnvbuildError, RefusedError, WorldError
from envbuild.world.streams import (
    discard,
    escape_what_cannot_be_encoded,
    say,
    sigterm_interrupts,
    terminal_width,
    wants_color,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from envbuild.cli.doctorcommand import DoctorWorld
    from envbuild.commands.lockrun import LockOptions
    from envbuild.model.report import LockReport
    from envbuild.ports import Reporter
    from envbuild.render.answer import Manner
    from envbuild.render.failure import Failure
    from envbuild.render.progress import TerminalReporter


class LockCommand(Protocol):
    """Runs `envbuild lock` in the real world, or in that of a test."""

    def __call__(
        self, options: LockOptions, source_choice: str, reporter: Reporter, /
    ) -> LockReport:
        """Lock, with index pages from ``live``, ``catalog`` or ``auto``."""
        ...


def main(
    argv: Sequence[str] | None = None,
    *,
    lock_report: LockCommand | None = None,
    doctor_world: DoctorWorld | None = None,
) -> int:
    """Run one command and return its exit code; a world that is None is the real one."""
    words = list(sys.argv[1:] if argv is None else argv)
    escape_what_cannot_be_encoded(sys.stdout)
    escape_what_cannot_be_encoded(sys.stderr)
    try:
        return _run(words, lock_report, doctor_world)
    except EnvbuildError as error:
        from envbuild.render.failure import failure_of

        return _fail(failure_of(error), words)
    except KeyboardInterrupt as stop:
        from envbuild.render.failure import interrupted

        return _fail(interrupted(*stop.args), words)
    except Exception as error:  # noqa: BLE001 - the one place where a bug ends
        return _fail(_bug(error, words), words)


def _run(
    words: list[str], lock_report: LockCommand | None, doctor_world: DoctorWorld | None
) -> int:
    try:
        arguments = parse_arguments(words)
    except SystemExit as done:  # after --help and --version
        say(sys.stdout, "")
        return int(done.code or 0)
    if arguments.command == "gpus":
        return _run_gpus(arguments)
    with sigterm_interrupts():
        if arguments.command == "lock":
            return _run_lock(arguments, lock_report)
        if arguments.command == "sync":
            return _run_sync(arguments)
        if arguments.command in {"script", "dockerfile"}:
            from envbuild.cli.scriptcommand import run_script

            return run_script(arguments)
        return _run_doctor(arguments, doctor_world)


def _run_doctor(arguments: argparse.Namespace, world: DoctorWorld | None) -> int:
    if world is None:
        gc.disable()  # a process of half a second that leaves next to no cyclic garbage
    from envbuild.cli.doctorcommand import run_doctor, run_explain, run_rules

    if world is None:
        from envbuild.cli.doctorwiring import real_world

        world = real_world()
    run = {"doctor": run_doctor, "rules": run_rules, "explain": run_explain}
    return run[arguments.command](arguments, world)


def _run_sync(arguments: argparse.Namespace) -> int:
    from envbuild.cli.synccommand import run_sync
    from envbuild.cli.syncwiring import real_sync_world

    return run_sync(arguments, real_sync_world())


def _run_lock(arguments: argparse.Namespace, lock_report: LockCommand | None) -> int:
    if lock_report is None:
        gc.disable()  # a process of a second that leaves next to no cyclic garbage
    from envbuild.cli.invocation import lock_options
    from envbuild.model.report import Outcome

    options = lock_options(arguments)
    run = lock_report or _real_lock()
    try:
        with closing(_reporter(arguments)) as reporter:
            report = run(options, arguments.source, reporter)
    except RefusedError as error:
        _explain_refused(error, arguments)
        raise
    from envbuild.render.answer import render_answer

    try:
        code = _exit_code(report, check=options.check)
        say(sys.stdout, render_answer(report, _manner(arguments, options), exit_code=code))
    except KeyboardInterrupt:
        discard(sys.stdout)
        if report.outcome is Outcome.WRITTEN:
            raise KeyboardInterrupt("every file was written") from None
        raise
    return code


def _explain_refused(error: RefusedError, arguments: argparse.Namespace) -> None:
    from envbuild.providers.impossible import ImpossibleError
    from envbuild.render.explain import explain_refused

    if arguments.explain and arguments.format == "text" and isinstance(error, ImpossibleError):
        color = wants_color(sys.stdout, arguments.color, os.environ)
        width = terminal_width(sys.stdout)
        say(sys.stdout, explain_refused(error.rejections, width=width, color=color))


def _manner(arguments: argparse.Namespace, options: LockOptions) -> Manner:
    from envbuild.cli.invocation import invocation
    from envbuild.render.answer import Manner

    github = arguments.format == "github"
    manifest = options.directory / "pyproject.toml"
    return Manner(
        format=arguments.format,
        invocation=invocation(arguments),
        explain=arguments.explain,
        width=terminal_width(sys.stdout),
        color=wants_color(sys.stdout, arguments.color, os.environ),
        manifest=manifest.read_text("utf-8", "replace") if github else "",
    )


def _run_gpus(arguments: argparse.Namespace) -> int:
    from envbuild.cli.gpuquery import gpus_named
    from envbuild.render.gpus import gpus_document, render_gpus
    from envbuild.render.jsonreport import render_json

    gpus = gpus_named(" ".join(arguments.name))
    if arguments.format == "json":
        say(sys.stdout, render_json(gpus_document(gpus)))
        return 0
    color = wants_color(sys.stdout, arguments.color, os.environ)
    say(sys.stdout, render_gpus(gpus, width=terminal_width(sys.stdout), color=color))
    return 0


def _real_lock() -> LockCommand:
    # The wiring: there the index pages, uv and the files of the real world are joined.
    from envbuild.cli.lockwiring import lock_report

    return lock_report


def _exit_code(report: LockReport, *, check: bool) -> int:
    from envbuild.model.report import Outcome
    from envbuild.render.nextstep import has_errors

    stale = report.outcome is Outcome.STALE
    return int(stale or has_errors(report) or (check and report.incomplete))


def _reporter(arguments: argparse.Namespace) -> TerminalReporter:
    from envbuild.render.progress import TerminalReporter, wants_line

    return TerminalReporter(
        sys.stderr,
        live=wants_line(sys.stderr, os.environ),
        quiet=arguments.quiet,
        width=terminal_width(sys.stderr) or 80,
    )


def _fail(failure: Failure, words: list[str]) -> int:
    from envbuild.render.failure import failure_document, failure_text

    asked = _asked(words, "--format")
    answer = ""
    if asked == "json":
        from envbuild.render.jsonreport import render_json

        answer = render_json(failure_document(failure))
    elif asked == "github":
        from envbuild.render.github import failure_commands

        answer = failure_commands(failure, root=_root(words))
    elif asked == "sarif":
        from envbuild.render.jsonreport import render_json
        from envbuild.render.sarif import failed_run

        answer = render_json(failed_run(failure.message, exit_code=failure.exit_code))
    color = wants_color(sys.stderr, _asked(words, "--color"), os.environ)
    # What went wrong first is what counts: that it cannot be told has no one left to hear it.
    with suppress(WorldError):
        say(sys.stdout, answer)
    with suppress(WorldError):
        say(sys.stderr, failure_text(failure, color=color))
    return failure.exit_code


def _bug(error: Exception, words: list[str]) -> Failure:
    import platform
    import traceback

    from envbuild import __version__
    from envbuild.render.failure import bug, bug_report

    text = bug_report(
        "".join(traceback.format_exception(error)),
        command=words,
        version=__version__,
        python=f"{platform.python_version()} on {platform.platform()}",
    )
    return bug(error, report=_saved(text))


def _saved(text: str) -> str:
    import tempfile

    try:
        handle, path = tempfile.mkstemp(prefix="envbuild-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        with suppress(WorldError):
            say(sys.stderr, text)
        return "the text above"
    return path


def _asked(words: list[str], option: str) -> str:
    """Return the value of an option even where the arguments as a whole cannot be read."""
    value = ""
    for number, word in enumerate(words):
        if word == option and number + 1 < len(words):
            value = words[number + 1]
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value


def _root(words: list[str]) -> str:
    """Return what stands before the names of the project's files: nothing, or ``folder/``."""
    try:
        arguments = parse_arguments(words)
        path = str(getattr(arguments, "path", ".")) if arguments.command == "lock" else "."
    except EnvbuildError:
        path = "."
    folder = os.path.normpath(path.removesuffix("pyproject.toml") or ".")
    return "" if folder == "." else f"{folder}/"
