"""What repairs a finding, as data: one plan is made of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias


@dataclass(frozen=True, kw_only=True, slots=True)
class Remove:
    """Uninstall distributions; every other owner of their paths is reinstalled with it."""

    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reinstall:
    """Install distributions again at the version they have, so that their files come back."""

    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Install:
    """Install requirements (PEP 508), from the default index or from ``index``.

    ``index`` is the address of a simple index, ``find_links`` that of a flat page.
    """

    requirements: tuple[str, ...]
    index: str | None = None
    find_links: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Relock:
    """Make the lock anew, since what it holds cannot work."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unset:
    """Take an environment variable away."""

    variable: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """Set an environment variable."""

    variable: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Manual:
    """What no command of envbuild can do; ``text`` is the sentence, or the command to type.

    ``is_command`` is True where a shell takes it as it is.
    """

    text: str
    is_command: bool = False


if TYPE_CHECKING:
    Fix: TypeAlias = Remove | Reinstall | Install | Relock | Unset | Export | Manual


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairStep:
    """One step of a repair plan.

    ``command`` is an argument list bound to the interpreter examined, empty where a person has
    to do it. ``text`` is then a line for a shell, or begins with ``#`` where no shell can do it.
    ``reason`` says in one line why.
    """

    reason: str
    command: tuple[str, ...] = ()
    text: str = ""
