"""The options of `envbuild script` and `envbuild dockerfile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envbuild.cli.projectarguments import project_argument, target_argument

if TYPE_CHECKING:
    import argparse

_CODES = """\
exit codes:
  0    done; with --check: the file is that of the lock
  1    the answer is no: the file is stale, or something cannot be compiled for the GPUs
  2    the input is wrong: an argument, the pyproject.toml, or there is no lock
  3    the world failed: a disk
  70   a bug in envbuild; a file with the details is named
  130  interrupted; nothing was written"""

ABOUT_SCRIPT = """\
Write scripts/install-TARGET.sh: a script for POSIX sh and uv alone that installs the lock of a
target exactly, compiles what is to be compiled, and checks what came of it. It asks nothing."""

EPILOG_SCRIPT = f"""\
examples:
  envbuild script                        the script of the default target
  envbuild script --target cu128 --ptx   with code that newer GPUs can compile for themselves
  envbuild script --check                in CI: is it still that of the lock?

{_CODES}"""

ABOUT_DOCKERFILE = """\
Write scripts/Dockerfile.TARGET, what it leaves out of the build (.dockerignore), and the install
script that it runs: nvcc in a stage of its own, a slim result, a user that is not root."""

EPILOG_DOCKERFILE = f"""\
examples:
  envbuild dockerfile --target cu128
  envbuild dockerfile --base registry.example.org/ubuntu:24.04@sha256:...
  envbuild dockerfile --check
  docker build -f scripts/Dockerfile.cu128 -t train .

{_CODES}"""

SCRIPT_COMMANDS = (
    ("script", "the install script", (ABOUT_SCRIPT, EPILOG_SCRIPT)),
    ("dockerfile", "the Dockerfile", (ABOUT_DOCKERFILE, EPILOG_DOCKERFILE)),
)


def script_arguments(parser: argparse.ArgumentParser, *, docker: bool = False) -> None:
    """Add the options, without those about output that all commands share."""
    what = project_argument(parser)
    target_argument(what)
    what.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    what.add_argument("--dry-run", action="store_true", help="write nothing, say what would be")
    what.add_argument(
        "--ptx", action="store_true", help="compile also PTX, which newer GPUs can make code of"
    )
    if docker:
        what.add_argument(
            "--base", metavar="IMAGE", help="the image to stand on (default: a plain Ubuntu)"
        )
    else:
        what.add_argument(
            "--output", metavar="FILE", help="write it there, for the project where it lies"
        )
