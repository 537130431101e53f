"""What the fixes of all findings ask for together, without contradictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envbuild.model.fix import Install, Manual, Reinstall, Relock, Remove

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.finding import Finding
    from envbuild.model.fix import Export, Fix, Unset
    from envbuild.model.installed import Installed, Ownership


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """One requirement to install, with the page it is looked up on."""

    name: str
    requirement: str
    index: str | None = None
    find_links: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What is to be done; every tuple is in a stable order and names nothing twice.

    No name of ``reinstalls`` is in ``removals`` or among the ``installs``.
    """

    removals: tuple[str, ...] = ()
    installs: tuple[Wanted, ...] = ()
    reinstalls: tuple[str, ...] = ()
    relocks: tuple[str, ...] = ()
    variables: tuple[Unset | Export, ...] = ()
    manual: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    codes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def codes_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the codes of the findings that asked for something to be done to packages."""
        known = dict(self.codes)
        return tuple(sorted({code for name in names for code in known.get(name, ())}))


def wish_of(
    findings: Iterable[Finding], *, installed: Installed, ownership: Ownership | None
) -> Wish:
    """Join the fixes; of two that contradict each other the one that comes first counts.

    So the findings come with the root cause first: its fix decides about a package. Every owner
    that is left of a path of what is removed is reinstalled.
    """
    gathered = _Gathered({one.name for one in installed.distributions})
    for finding in findings:
        gathered.add(finding)
    removals = tuple(sorted(gathered.removals))
    owners = remaining_owners(removals, installed=installed, ownership=ownership)
    reinstalls = (gathered.reinstalls | owners) - gathered.removals - set(gathered.installs)
    return Wish(
        removals=removals,
        installs=tuple(gathered.installs[name] for name in sorted(gathered.installs)),
        reinstalls=tuple(sorted(reinstalls)),
        relocks=tuple(gathered.relocks),
        variables=tuple(gathered.variables.values()),
        manual=tuple(gathered.manual),
        commands=tuple(gathered.commands),
        codes=tuple((name, tuple(codes)) for name, codes in sorted(gathered.codes.items())),
    )


def remaining_owners(
    removals: Iterable[str], *, installed: Installed, ownership: Ownership | None
) -> frozenset[str]:
    """Return the other owners of every path that the removed distributions own."""
    names = {one.label: one.name for one in installed.distributions}
    gone = set(removals)
    found: set[str] = set()
    for shared in ownership.shared if ownership else ():
        owners = {names.get(label, label.partition(" ")[0]) for label, _ in shared.owners}
        if owners & gone:
            found |= owners
    return frozenset(found - gone)


class _Gathered:
    """Fixes as they come in; the first that speaks of a package decides about it."""

    def __init__(self, installed: set[str]) -> None:
        self._installed = installed
        self.removals: set[str] = set()
        self.reinstalls: set[str] = set()
        self.installs: dict[str, Wanted] = {}
        self.relocks: dict[str, None] = {}
        self.variables: dict[str, Unset | Export] = {}
        self.manual: dict[str, None] = {}
        self.commands: dict[str, None] = {}
        self.codes: dict[str, dict[str, None]] = {}

    def add(self, finding: Finding) -> None:
        """Add the fixes of one finding, which may remove a package and install it anew."""
        decided = self.removals | self.reinstalls | set(self.installs)
        for fix in finding.fixes:
            for name in self._apply(fix, decided):
                self.codes.setdefault(name, {})[finding.code] = None

    def _apply(self, fix: Fix, decided: set[str]) -> tuple[str, ...]:
        """Apply one fix; return the packages that something is done to."""
        if isinstance(fix, Remove):
            names = [name for name in _normalised(fix.names) if name in self._installed]
            taken = [name for name in names if name not in decided or name in self.removals]
            self.removals.update(taken)
            return tuple(taken)
        if isinstance(fix, Reinstall):
            names = [name for name in _normalised(fix.names) if name not in self.removals]
            self.reinstalls.update(name for name in names if name not in self.installs)
            return tuple(names)
        if isinstance(fix, Install):
            return tuple(self._install(fix, decided))
        self._note(fix)
        return ()

    def _install(self, fix: Install, decided: set[str]) -> Iterator[str]:
        for text in fix.requirements:
            name = requirement_name(text)
            known = self.installs.get(name)
            if known is None and name not in decided:
                self.reinstalls.discard(name)
                self.installs[name] = Wanted(
                    name=name, requirement=text, index=fix.index, find_links=fix.find_links
                )
                yield name
            elif known is not None and known.requirement == text:
                yield name

    def _note(self, fix: Relock | Unset | Export | Manual) -> None:
        if isinstance(fix, Relock):
            self.relocks[fix.reason] = None
        elif isinstance(fix, Manual):
            (self.commands if fix.is_command else self.manual)[fix.text] = None
        else:
            self.variables.setdefault(fix.variable, fix)


def requirement_name(text: str) -> str:
    """Return the normalised name of a requirement, as far as one can be read."""
    try:
        return canonicalize_name(Requirement(text).name)
    except InvalidRequirement:
        return canonicalize_name(text.strip())


def _normalised(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(canonicalize_name(name) for name in names)
