"""Read ``torch/version.py`` as text: what a build of torch calls itself."""

from __future__ import annotations

import re

from envbuild.errors import WorldError
from envbuild.model.installed import TorchText

_ASSIGNMENT = re.compile(
    r"""^(?P<name>__version__|cuda|git_version|hip)[ \t]*(?::[^=\n]{0,100})?=[ \t]*
    (?:(?P<quote>['"])(?P<value>[^'"\\\n]{0,200})(?P=quote)|(?P<none>None))[ \t]*(?:\#.*)?\r?$""",
    re.VERBOSE | re.MULTILINE,
)


def parse_torch_version(text: str) -> TorchText:
    """Read the module's assignments of literals; raise WorldError where it names no version."""
    found = {match["name"]: match["value"] for match in _ASSIGNMENT.finditer(text)}
    version = found.get("__version__")
    if not version:
        raise WorldError("`torch/version.py` assigns no text to `__version__`, wanted a version")
    return TorchText(
        version=version,
        cuda=found.get("cuda") or None,
        git=found.get("git_version") or None,
        hip=found.get("hip") or None,
    )
