"""Read TOML that others wrote: one error for all that can be wrong with it.

``tomllib`` raises RecursionError for brackets in one another, takes a hundred bytes for each digit
of an endless number, and hours for an endless dotted key. No lock and no project has a line of
a million characters.
"""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LONG_LINE, _LONGEST_LINE = 4300, 1_000_000
_ENDLESS = re.compile(
    rf"""(?<![0-9_])[0-9_]{{{_LONG_LINE}}}|(?<![\w."'-])(?:[\w"'-]+[ \t]*\.[ \t]*){{500}}"""
)


class TomlError(ValueError):
    """The text is no TOML that can be read, and why."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document; raise TomlError with the message of ``tomllib``."""
    for line in text.split("\n"):
        if len(line) > _LONGEST_LINE:
            raise TomlError(f"found a line of more than {_LONGEST_LINE:,} characters")
        if len(line) > _LONG_LINE and _ENDLESS.search(line):
            raise TomlError("found a number or a dotted key without end")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError("found too many brackets in one another") from None
    except ValueError as error:
        raise TomlError(str(error)) from None
