"""What may be typed after `envbuild doctor`, `envbuild rules` and `envbuild explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ABOUT_DOCTOR = """\
Examine an environment as it lies on disk and name the root cause of what is wrong, the evidence
and the repair. Nothing of it is imported, run or changed, and no GPU is needed. Without PATH it
is the active venv, else the nearest `.venv`. The answer goes to stdout, the rest to stderr."""

EPILOG_DOCTOR = """\
examples:
  envbuild doctor                              the active or nearest environment
  envbuild doctor .venv --gpu "RTX 5090"       a venv, judged for a GPU that is not here
  envbuild doctor --root rootfs                the environment of an unpacked image
  envbuild doctor --select EB1,EB2             packages and files alone
  envbuild doctor --fix                        show the repair, ask, apply it, check again
  envbuild doctor --format sarif > doctor.sarif

exit codes:
  0    nothing at or above --fail-on
  1    findings at or above --fail-on
  2    the input is wrong: an argument, or there is no environment
  3    nothing could be judged, or a step of the repair failed
  70   a bug in envbuild
  130  interrupted"""

ABOUT_RULES = """\
List the rules that `envbuild doctor` judges, or those whose codes begin with PREFIX."""

EPILOG_RULES = """\
examples:
  envbuild rules
  envbuild rules EB3
  envbuild rules --format json

exit codes:
  0    done
  2    the input is wrong: no such code
  130  interrupted"""

ABOUT_EXPLAIN = """\
Print the page of a rule: what it finds, why it matters, an example, and the repair."""

EPILOG_EXPLAIN = """\
examples:
  envbuild explain EB301
  envbuild explain EB301 --format json

exit codes:
  0    done
  2    the input is wrong: no such code
  130  interrupted"""


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `envbuild doctor`, without those about output that all commands share."""
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="a venv, an interpreter, a site folder, or a project with a `.venv`",
    )
    _what(parser)
    _rules(parser)
    _repair(parser)


def _what(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to examine")
    what.add_argument("--python", metavar="PATH", help="the same as PATH")
    what.add_argument("--root", metavar="DIR", help="the root folder of an unpacked image")
    what.add_argument(
        "--project",
        metavar="DIR",
        help="the project whose locks count (default: the folder around the venv)",
    )
    what.add_argument(
        "--gpu",
        action="append",
        default=[],
        metavar="NAME",
        help="a GPU that it is meant for (may be repeated; default: the project's, this machine's)",
    )


def _rules(parser: argparse.ArgumentParser) -> None:
    rules = parser.add_argument_group("what to judge")
    rules.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="CODES",
        help="only rules whose codes begin so: EB2,EB301 (may be repeated)",
    )
    rules.add_argument(
        "--ignore", action="append", default=[], metavar="CODES", help="leave these rules out"
    )
    rules.add_argument(
        "--build", action="store_true", help="also judge whether extensions can be compiled here"
    )
    rules.add_argument(
        "--fail-on",
        choices=("error", "warning", "note", "never"),
        default="error",
        help="the least severity that makes the exit code 1 (default: error)",
    )


def _repair(parser: argparse.ArgumentParser) -> None:
    repair = parser.add_argument_group("repair")
    repair.add_argument(
        "--fix", action="store_true", help="show the repair, ask, apply it with uv, check again"
    )
    repair.add_argument("--yes", action="store_true", help="with --fix: do not ask")
    repair.add_argument("--dry-run", action="store_true", help="with --fix: only show")


def redact_argument(parser: argparse._ArgumentGroup) -> None:
    """Add ``--redact``."""
    parser.add_argument(
        "--redact",
        action="store_true",
        help="hide home folders, names of users and hosts, and tokens, for sharing",
    )
