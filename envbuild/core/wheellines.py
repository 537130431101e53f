"""The lines of wheels in what uv writes, one a wheel: most are for other machines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from envbuild.core.wheeltags import fits

if TYPE_CHECKING:
    from envbuild.model.target import Target

_WHEELS = re.compile(r"^wheels = \[\n((?:    \{[^\n]*\n)+)\]\n", re.MULTILINE)
_LINE = re.compile(r'    \{ (?:url|path) = "[^"]*?([^"/]+\.whl)"[^\n]*\n|[^\n]*\n')


def without_foreign(text: str, target: Target) -> str:
    """Return a uv.lock or an export of uv's without the wheels that do not fit the target.

    A package of which none fits keeps them all. To drop lines takes a fraction of the time that
    it takes to parse them.
    """

    def kept(match: re.Match[str]) -> str:
        lines = [m[0] for m in _LINE.finditer(match[1]) if not m[1] or fits(unquote(m[1]), target)]
        return f"wheels = [\n{''.join(lines)}]\n" if lines else match[0]

    return _WHEELS.sub(kept, text)
