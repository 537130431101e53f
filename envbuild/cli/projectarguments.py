"""What the commands that work on a project ask alike: which one, and which of its targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def project_argument(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add PATH; return the group of the options that say what to do with the project."""
    parser.add_argument(
        "path",
        nargs="?",
        default=".",
        metavar="PATH",
        help="the project folder or its pyproject.toml (default: the current folder)",
    )
    return parser.add_argument_group("what to do")


def target_argument(group: argparse._ArgumentGroup) -> None:
    """Add ``--target``, for a command that takes one alone."""
    group.add_argument("--target", metavar="NAME", help="the target (default: the default target)")
