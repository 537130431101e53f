"""EB205: an environment whose interpreter is gone, so that nothing of it can be started."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from envbuild.checks.rule import rule
from envbuild.core.repair.plan import REVIVE
from envbuild.model.finding import Finding, Severity
from envbuild.model.fix import Manual
from envbuild.model.installed import Installed


@rule("EB205", "The interpreter of a venv is gone", severity=Severity.ERROR)
def interpreter_gone(installed: Installed) -> Iterator[Finding]:
    """Find a venv whose `bin/python` is a link that leads nowhere.

    **What it finds.** A venv holds no Python of its own but a link to one, and nothing lies where
    that link leads. A place that may not be looked into is not taken for empty.

    **Why it matters.** `bad interpreter: No such file or directory` from every command of the
    venv, and uv cannot install into it. All packages may be whole.

    **Example.** The Python of pyenv or uv was upgraded and the old one removed; a venv was copied
    into an image that has its Python elsewhere.

    **Fix.** `uv venv --allow-existing --python 3.11 .venv` makes the link anew and leaves the
    packages. A venv of another machine or image is examined there, or with `--root`.
    """
    if not installed.lost_python:
        return
    version = ".".join(installed.python.split(".")[:2])
    command = f"{REVIVE} --python {version} {shlex.quote(installed.prefix)}"
    yield Finding(
        code="EB205",
        severity=Severity.ERROR,
        subject=installed.prefix,
        message=f"the interpreter of {installed.prefix} is gone, nothing of it can be started",
        evidence=(f"{installed.executable} leads to {installed.lost_python}, where nothing lies",),
        hint="a venv of another machine or image is examined there, or with `--root`",
        fixes=(Manual(text=command, is_command=True),),
    )


RULES = (interpreter_gone,)
