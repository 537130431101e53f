"""What a generated file says of itself: the lock it was made from, and whether it was edited."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.script.shell import comment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.plan import InstallPlan

IDENTITY = "@IDENTITY@"
"""Stands in a text where its own hash will be."""

_LOCKED = re.compile(r"^# lock: (.+?) \(sha256 ([0-9a-f]{64})\)$", re.MULTILINE)
_IDENTITY = re.compile(r"^# identity: ([0-9a-f]{64})$", re.MULTILINE)
_OPTIONS = re.compile(r"^# options:(.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The lock of a generated file, its hash, the file's own, and the options it was made with."""

    lock: str
    lock_sha256: str
    identity: str
    options: tuple[str, ...]


def header_lines(plan: InstallPlan, *, command: str, options: tuple[str, ...]) -> Iterator[str]:
    """Yield the header, as comments."""
    yield comment(f"Installs target {plan.target}: CPython {plan.python}, {plan.platform}.")
    yield comment(f"Made by `envbuild {command}`; change the lock instead, and make it again.")
    yield comment(f"lock: {plan.lock} (sha256 {plan.lock_sha256})")
    yield f"# identity: {IDENTITY}"
    yield comment(f"options: {' '.join(options)}")


def identified(text: str) -> str:
    """Return the text with its own hash wherever that belongs."""
    return text.replace(IDENTITY, _hash(text))


def parse_header(text: str) -> Header | None:
    """Read the header of a file; None for what envbuild did not write."""
    lock, identity, options = _LOCKED.search(text), _IDENTITY.search(text), _OPTIONS.search(text)
    if lock is None or identity is None or options is None:
        return None
    return Header(
        lock=lock[1],
        lock_sha256=lock[2],
        identity=identity[1],
        options=tuple(options[1].split()),
    )


def is_untouched(text: str) -> bool:
    """Whether a generated file is as it was written."""
    header = parse_header(text)
    return header is not None and _hash(text.replace(header.identity, IDENTITY)) == header.identity


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
