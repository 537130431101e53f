"""What may be typed after `envbuild`, and the help that says so."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from envbuild import __version__
from envbuild.cli.doctorarguments import (
    ABOUT_DOCTOR,
    ABOUT_EXPLAIN,
    ABOUT_RULES,
    EPILOG_DOCTOR,
    EPILOG_EXPLAIN,
    EPILOG_RULES,
    doctor_arguments,
    redact_argument,
)
from envbuild.cli.projectarguments import project_argument
from envbuild.cli.scriptarguments import SCRIPT_COMMANDS, script_arguments
from envbuild.cli.syncarguments import ABOUT_SYNC, EPILOG_SYNC, sync_arguments
from envbuild.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypedDict

    class _Texts(TypedDict):
        description: str
        epilog: str
        formatter_class: type[argparse.HelpFormatter]
        allow_abbrev: bool


EXIT_CODES = """\
exit codes:
  0    done; with --check: the lock is fresh
  1    the answer is no: nothing fits, or the lock is stale, incomplete or not sound
  2    the input is wrong: an argument, or the pyproject.toml
  3    the world failed: uv, an index, the network, a disk
  70   a bug in envbuild; a file with the details is named
  130  interrupted; nothing was written"""

_ABOUT = "Reproducible training environments for PyTorch and CUDA."

_TOP_EPILOG = f"""\
examples:
  envbuild lock                    lock every target of the project in this folder
  envbuild lock --check            say whether the lock still holds; write nothing
  envbuild sync                    install the lock into .venv, builds included
  envbuild doctor                  what is wrong with an environment, and the repair
  envbuild gpus RTX 5090           the compute capability of a GPU

`envbuild COMMAND --help` says more about a command.

{EXIT_CODES}"""

_LOCK_ABOUT = """\
Choose, for each [tool.envbuild.targets.NAME] of the pyproject.toml, a build of torch with its
CUDA, the companions and extensions that were built for it, and everything else around them;
then write all of it as strict, hashed pins. The answer goes to stdout, progress to stderr."""

_LOCK_EPILOG = f"""\
examples:
  envbuild lock                              lock every target
  envbuild lock --target cu128 --explain     one target, and why no other build was taken
  envbuild lock --upgrade transformers -U peft
  envbuild lock path/to/project -U           upgrade everything
  envbuild lock --check --format github      in CI: annotate what is stale

{EXIT_CODES}"""

_GPUS_ABOUT = """\
List the GPUs that a target can name, with their compute capabilities. With NAME, show that one,
written as people write it, or all that have a compute capability such as 12.0."""

_GPUS_EPILOG = f"""\
examples:
  envbuild gpus
  envbuild gpus RTX PRO 2000 Blackwell
  envbuild gpus 9.0
  envbuild gpus H100 --format json

{EXIT_CODES}"""


class Parser(argparse.ArgumentParser):
    """Raises InputError, with the nearest spelling, where argparse would print its usage."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments; ``message`` is argparse's."""
        raise InputError(message, hint=f"`{self.prog} --help` shows what can be typed")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        choices = [str(choice) for choice in action.choices or ()]
        if not choices or value in choices:
            return
        what = "command" if action.nargs == argparse.PARSER else action.option_strings[-1]
        found = f"unknown command `{value}`" if what == "command" else f"{what} is `{value}`"
        wanted = ", ".join(f"`{choice}`" for choice in choices)
        raise InputError(
            f"{found}, wanted one of {wanted}",
            hint=_nearest(str(value), choices) or f"`{self.prog} --help` shows what can be typed",
        )


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; raise InputError for what cannot be understood."""
    parser, commands = _parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        before = arguments.command is None or unknown[0] in argv[: argv.index(arguments.command)]
        raise _unknown(unknown[0], parser if before else commands[arguments.command])
    if arguments.command is None:
        wanted = ", ".join(f"`{name}`" for name in commands)
        raise InputError(
            f"no command was given, wanted one of {wanted}",
            hint="`envbuild --help` shows what each does",
        )
    return arguments


def _unknown(word: str, parser: argparse.ArgumentParser) -> InputError:
    if not word.startswith("-"):
        return InputError(
            f"`{word}` is one argument too many for `{parser.prog}`",
            hint=f"`{parser.prog} --help` shows what can be typed",
        )
    option = word.partition("=")[0]
    known = parser._option_string_actions  # noqa: SLF001 - argparse has no public list of them
    hint = _nearest(option, known) or f"`{parser.prog} --help` lists all options"
    return InputError(f"unknown option `{option}` of `{parser.prog}`", hint=hint)


def _nearest(word: str, choices: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 - only needed once something is wrong

    found = get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"did you mean `{found[0]}`?" if found else None


def _parser() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(prog="envbuild", **_texts(_ABOUT, _TOP_EPILOG))
    parser.add_argument("--version", action="version", version=f"envbuild {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    lock = commands.add_parser(
        "lock", help="solve the targets and write their pins", **_texts(_LOCK_ABOUT, _LOCK_EPILOG)
    )
    _lock_arguments(lock)
    sync = commands.add_parser(
        "sync",
        help="install the lock into an environment, builds included",
        **_texts(ABOUT_SYNC, EPILOG_SYNC),
    )
    sync_arguments(sync)
    _output_arguments(sync, formats=("text", "json"))
    scripts = _script_parsers(commands)
    doctor = _doctor_parsers(commands)
    gpus = commands.add_parser(
        "gpus", help="list the GPUs that can be named", **_texts(_GPUS_ABOUT, _GPUS_EPILOG)
    )
    gpus.add_argument("name", nargs="*", metavar="NAME", help="a GPU, or a compute capability")
    _output_arguments(gpus, formats=("text", "json"))
    return parser, {"lock": lock, "sync": sync, **scripts, **doctor, "gpus": gpus}


def _script_parsers(commands: argparse._SubParsersAction[Parser]) -> dict[str, Parser]:
    found = {}
    for name, what, texts in SCRIPT_COMMANDS:
        found[name] = commands.add_parser(name, help=f"write {what} of a target", **_texts(*texts))
        script_arguments(found[name], docker=name == "dockerfile")
        _output_arguments(found[name], formats=("text", "json"))
    return found


def _doctor_parsers(commands: argparse._SubParsersAction[Parser]) -> dict[str, Parser]:
    doctor = commands.add_parser(
        "doctor",
        help="examine an environment: root cause, evidence, repair",
        **_texts(ABOUT_DOCTOR, EPILOG_DOCTOR),
    )
    doctor_arguments(doctor)
    redact_argument(_output_arguments(doctor, formats=("text", "json", "sarif", "github")))
    rules = commands.add_parser(
        "rules", help="list what doctor judges", **_texts(ABOUT_RULES, EPILOG_RULES)
    )
    rules.add_argument("prefix", nargs="?", metavar="PREFIX", help="EB3 say")
    explain = commands.add_parser(
        "explain", help="the page of a rule", **_texts(ABOUT_EXPLAIN, EPILOG_EXPLAIN)
    )
    explain.add_argument("what", nargs="+", metavar="CODE", help="EB301 say")
    for parser in (rules, explain):
        _output_arguments(parser, formats=("text", "json"))
    return {"doctor": doctor, "rules": rules, "explain": explain}


def _texts(about: str, epilog: str) -> _Texts:
    return {
        "description": about,
        "epilog": epilog,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }


def _lock_arguments(parser: Parser) -> None:
    what = project_argument(parser)
    what.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    what.add_argument("--dry-run", action="store_true", help="solve, show, and write nothing")
    what.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="NAME",
        help="lock this target alone (may be repeated)",
    )
    what.add_argument(
        "-U",
        "--upgrade",
        action="append",
        nargs="?",
        const="",
        default=[],
        metavar="NAME",
        help="let this package move to a newer version (may be repeated); alone: every package",
    )
    _base_arguments(parser)
    _source_arguments(parser)
    _output_arguments(parser, formats=("text", "json", "github"), explain=True)


def _base_arguments(parser: Parser) -> None:
    base = parser.add_argument_group("the base that a target keeps")
    base.add_argument(
        "--base-python",
        metavar="PYTHON",
        help="read it anew, from this interpreter",
    )
    base.add_argument(
        "--base-root",
        metavar="FOLDER",
        help="read it anew, from this unpacked image; --base-python is then inside it",
    )


def _source_arguments(parser: Parser) -> None:
    source = parser.add_argument_group("where facts come from")
    source.add_argument("--offline", action="store_true", help="reach no network")
    source.add_argument(
        "--source",
        choices=("live", "catalog", "auto"),
        default="auto",
        help="index pages from their hosts, from the embedded catalog, or from the hosts with "
        "the catalog where they cannot be reached (default: auto)",
    )
    source.add_argument(
        "--allow-unhashed",
        action="store_true",
        help="write a lock even if some hash cannot be had (--check then says incomplete)",
    )


def _output_arguments(
    parser: Parser, *, formats: Sequence[str], explain: bool = False
) -> argparse._ArgumentGroup:
    output = parser.add_argument_group("what to print")
    if explain:
        output.add_argument(
            "--explain", action="store_true", help="say why each other build was not taken"
        )
    output.add_argument("--format", choices=formats, default="text", help="default: text")
    output.add_argument(
        "-q", "--quiet", action="store_true", help="no progress and no notes on stderr"
    )
    output.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto follows the terminal, NO_COLOR and FORCE_COLOR",
    )
    return output
