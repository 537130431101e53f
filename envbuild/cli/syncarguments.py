"""What may be typed after `envbuild sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.cli.projectarguments import project_argument, target_argument

if TYPE_CHECKING:
    import argparse

ABOUT_SYNC = """\
Bring a virtual environment to exactly the lock of a target: make it if need be, install what is
missing or another version, remove the rest, compile the extensions that no index serves against
the torch that is locked, then examine the result as `envbuild doctor` does. In the layer
"project" it goes through `uv sync --locked`, so that the next `uv run` changes nothing."""

EPILOG_SYNC = """\
examples:
  envbuild sync                          the default target into .venv
  envbuild sync --target cu128 --venv /opt/env
  envbuild sync --dry-run                show what would change
  envbuild sync --offline                from uv's cache and the built wheels alone

exit codes:
  0    the environment holds the lock, and doctor finds no error
  1    the lock is stale or incomplete, a build is not sound, or doctor finds an error
  2    the input is wrong: an argument, the pyproject.toml, or no lock
  3    the world failed: uv, the network, a disk, a compiler
  70   a bug in envbuild
  130  interrupted; run it again and it goes on"""


def sync_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `envbuild sync`, without those about output that all commands share."""
    what = project_argument(parser)
    target_argument(what)
    what.add_argument(
        "--venv", metavar="DIR", help="the environment (default: .venv in the project folder)"
    )
    what.add_argument("--dry-run", action="store_true", help="show what would change, no more")
    what.add_argument("--no-build", action="store_true", help="compile nothing")
    what.add_argument(
        "--ptx", action="store_true", help="add PTX to what is compiled, for newer GPUs"
    )
    what.add_argument("--offline", action="store_true", help="reach no network")
    what.add_argument(
        "--allow-unhashed",
        action="store_true",
        help="install a lock in which some hash is missing, without these packages",
    )
