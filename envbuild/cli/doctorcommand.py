"""The commands `doctor`, `rules` and `explain`: from their arguments to what is printed."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.commands.doctor import DoctorOptions, exit_code
from envbuild.core.project.doctor import code_prefix
from envbuild.errors import InputError
from envbuild.render.doctoranswer import DoctorManner, render_diagnosis, render_page, render_rules
from envbuild.render.doctortext import render_failed_repair, render_plan
from envbuild.world.streams import say, terminal_width, wants_color

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from envbuild.model.diagnosis import DoctorReport, Repair, RuleText
    from envbuild.model.target import Gpu
    from envbuild.ports import RepairRunner

_CODE = re.compile(r"EB\d{3}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """Which environment is meant; see `envbuild.world.environment.read_environment`.

    ``owned`` is False where `uv run` in the project does not touch it.
    """

    path: str | None = None
    root: str = "/"
    project: str | None = None
    owned: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorWorld:
    """What the commands touch: the real world, or that of a test.

    ``ask`` puts a question to a person; it is None where nobody can answer.
    """

    examine: Callable[[DoctorOptions, Where], DoctorReport]
    rules: Callable[[], tuple[RuleText, ...]]
    runner: Callable[[], RepairRunner]
    ask: Callable[[str], bool] | None = None


def run_doctor(arguments: argparse.Namespace, world: DoctorWorld) -> int:
    """Run `envbuild doctor` and return its exit code."""
    options, where = _options(arguments), _where(arguments)
    if arguments.fix and where.root != "/":
        raise InputError(
            "`--fix` and `--root` exclude each other",
            hint="without `--fix` the repair is shown, to be run in a container of the image",
        )
    report = world.examine(options, where)
    repair = None
    if arguments.fix and not arguments.dry_run and any(step.command for step in report.plan):
        repair = _fix(report, arguments, world)
        if repair is not None:
            report = world.examine(options, where)
    code = exit_code(report, fail_on=arguments.fail_on)
    if repair is not None and repair.failed is not None:
        code = 3
    _print(report, repair, arguments, code=code)
    return code


def run_rules(arguments: argparse.Namespace, world: DoctorWorld) -> int:
    """Run `envbuild rules`."""
    prefix = code_prefix(arguments.prefix) if arguments.prefix else ""
    rules = tuple(rule for rule in world.rules() if rule.code.startswith(prefix))
    if not rules:
        raise InputError(
            f"found `{arguments.prefix}`, with which the code of no rule begins",
            hint="`envbuild rules` lists all",
        )
    width, color = terminal_width(sys.stdout), _color(arguments)
    as_json = arguments.format == "json"
    say(sys.stdout, render_rules(rules, as_json=as_json, width=width, color=color))
    return 0


def run_explain(arguments: argparse.Namespace, world: DoctorWorld) -> int:
    """Run `envbuild explain`."""
    word = " ".join(arguments.what)
    if not _CODE.fullmatch(word.strip()):
        raise InputError(
            f"found `{word}`, wanted the code of a rule, `EB301` say; other input is not "
            "explained yet",
            hint="`envbuild rules` lists the codes",
        )
    code = word.strip().upper()
    rule = next((one for one in world.rules() if one.code == code), None)
    if rule is None:
        raise InputError(
            f"found `{code}`, which is the code of no rule", hint="`envbuild rules` lists them"
        )
    text = render_page(rule, as_json=arguments.format == "json", color=_color(arguments))
    say(sys.stdout, text)
    return 0


def _fix(report: DoctorReport, arguments: argparse.Namespace, world: DoctorWorld) -> Repair | None:
    """Carry the plan out if that is wanted; None where it is not."""
    say(sys.stderr, render_plan(report.plan, color=_color(arguments)) + "\n")
    if not arguments.yes:
        if world.ask is None:
            raise InputError(
                "`--fix` has no terminal to ask on, wanted `--yes`",
                hint="`--fix --yes` applies the plan above without asking",
            )
        if not world.ask("apply this repair? [y/N] "):
            return None
    from envbuild.commands.doctorfix import carry_out  # noqa: PLC0415 - only `--fix` needs it
    from envbuild.render.progress import TerminalReporter  # noqa: PLC0415

    reporter = TerminalReporter(sys.stderr, live=False, quiet=arguments.quiet)
    try:
        repair = carry_out(report.plan, runner=world.runner(), reporter=reporter)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the repair is not complete; run `envbuild doctor` again") from None
    say(sys.stderr, render_failed_repair(repair, color=_color(arguments)))
    return repair


def _print(
    report: DoctorReport, repair: Repair | None, arguments: argparse.Namespace, *, code: int
) -> None:
    if arguments.redact:
        import socket  # noqa: PLC0415 - both are slow, and nobody else needs them

        from envbuild.core.anonymous import anonymized  # noqa: PLC0415

        who = {"home": str(Path.home()), "user": _user(), "host": socket.gethostname()}
        report = anonymized(report, **who)
        repair = anonymized(repair, **who)
    manner = DoctorManner(
        format=arguments.format,
        again=_again(arguments),
        width=terminal_width(sys.stdout),
        color=_color(arguments),
        root=_root(report.subject.project),
    )
    say(sys.stdout, render_diagnosis(report, manner, exit_code=code, repair=repair))


def _user() -> str:
    import getpass  # noqa: PLC0415

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an image whose user has no name
        return ""


def _root(project: str) -> str:
    """Return what stands before the names of the project's files, seen from here."""
    folder = os.path.relpath(project) if project else "."
    return "" if folder == "." or folder.startswith("..") else f"{folder}/"


def _options(arguments: argparse.Namespace) -> DoctorOptions:
    return DoctorOptions(
        gpus=tuple(_gpu(name) for name in dict.fromkeys(arguments.gpu)),
        select=_prefixes(arguments.select),
        ignore=_prefixes(arguments.ignore),
        build=arguments.build,
    )


def _where(arguments: argparse.Namespace) -> Where:
    if arguments.path is not None and arguments.python is not None:
        raise InputError(
            "`PATH` and `--python` mean the same, wanted one of them", hint="leave one of them out"
        )
    if arguments.project is not None and not Path(arguments.project).is_dir():
        raise InputError(
            f"`--project {arguments.project}` is no folder, wanted the folder of a project"
        )
    return Where(
        path=arguments.path if arguments.path is not None else arguments.python,
        root=arguments.root or "/",
        project=arguments.project,
    )


def _prefixes(words: list[str]) -> tuple[str, ...]:
    parts = [part for word in words for part in word.replace(",", " ").split()]
    return tuple(dict.fromkeys(code_prefix(part) for part in parts))


def _gpu(name: str) -> Gpu:
    from envbuild.core.gpus import UnknownGpuError, parse_gpu  # noqa: PLC0415 - most name none

    try:
        return parse_gpu(name)
    except UnknownGpuError as error:
        choices = ", ".join(f"`{choice}`" for choice in error.choices)
        hint = f"did you mean {choices}?" if choices else "`envbuild gpus` lists what is known"
        raise InputError(f"--gpu: {error}", hint=hint) from error


def _again(arguments: argparse.Namespace) -> str:
    words = ["envbuild", "doctor", *([arguments.path] if arguments.path else [])]
    for option in ("python", "project"):
        value = getattr(arguments, option)
        words += [f"--{option}", value] if value else []
    words += [word for name in arguments.gpu for word in ("--gpu", name)]
    words += [word for codes in arguments.select for word in ("--select", codes)]
    words += [word for codes in arguments.ignore for word in ("--ignore", codes)]
    words += ["--build"] if arguments.build else []
    return shlex.join(words)


def _color(arguments: argparse.Namespace) -> bool:
    return wants_color(sys.stdout, arguments.color, os.environ)
