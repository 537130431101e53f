"""Run by the interpreter of an environment: import whatever is installed, each in its own process.

torch comes first, and where it can be imported every other process has it, as most would import
it anyway. A JSON object of the imports that failed goes to stdout.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
from importlib.metadata import distributions

_MODULE = re.compile(r"([A-Za-z]\w*)(?:\.py|\.[\w.-]*so|/__init__\.py)")
_MOST_SECONDS = 120


def tops() -> set[str]:
    """Return the names of the modules and packages that the environment itself brings."""
    return {
        found[1]
        for one in distributions()
        if str(one.locate_file("")).startswith(sys.prefix)
        for path in one.files or ()
        if (found := _MODULE.fullmatch(str(path))) is not None
    }


def failure(name: str) -> str:
    """Import a module in a process of its own; return what it failed with, else nothing."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_MOST_SECONDS)
        os.write(theirs, _failure(name).encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answer:  # noqa: PTH123 - a descriptor
        text = answer.read().decode()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"ended with status {status}"


def _failure(name: str) -> str:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the answer
        return f"{type(error).__name__}: {error}"[:4000]
    return ""


def main() -> None:
    """Import them all."""
    names = sorted(tops(), key=lambda name: (name != "torch", name))
    failures: dict[str, str] = {}
    for name in names:
        text = failure(name)
        if text:
            failures[name] = text
        elif name == "torch":
            importlib.import_module(name)
    print(json.dumps(failures))  # noqa: T201


if __name__ == "__main__":
    main()
