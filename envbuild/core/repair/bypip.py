"""Repairs of an environment that no lock governs: `uv pip`, and conda's own commands as text."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envbuild.core.indexpages import pyg_page, pytorch_page
from envbuild.core.lockview import parse_local
from envbuild.core.repair.wish import requirement_name
from envbuild.core.wheeltags import local_of
from envbuild.model.fix import RepairStep
from envbuild.model.project import IndexUrls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.core.repair.wish import Wanted, Wish
    from envbuild.model.installed import Distribution, Installed

# What stands in INSTALLER where no tool of Python installed a distribution.
_SYSTEM = frozenset({"debian", "rpm"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where the files of an installed version are found again: words for `uv pip install`."""

    requirement: tuple[str, ...]
    options: tuple[str, ...] = ()


def pip_steps(wish: Wish, installed: Installed) -> Iterator[RepairStep]:
    """Yield the steps in which `uv pip` removes, then installs, then reinstalls."""
    mine = _names_of_pip(installed)
    yield from uninstall_steps([one for one in wish.removals if one in mine], wish, installed)
    yield from install_steps(wish.installs, wish, installed)
    known = {one.name for one in installed.distributions}
    names = [one for one in wish.reinstalls if one in mine or one not in known]
    yield from reinstall_steps(names, wish, installed)


def uninstall_steps(names: Iterable[str], wish: Wish, installed: Installed) -> Iterator[RepairStep]:
    """Yield the step that removes packages, if there are any."""
    listed = tuple(names)
    if listed:
        reason = f"remove {_labels(listed, installed)}{_codes(listed, wish)}"
        asks = requirers(listed, installed, without=wish.removals)
        reason += f"; {', '.join(asks)} will ask for it again" if asks else ""
        yield RepairStep(
            reason=reason, command=("uv", "pip", "uninstall", *_place(installed), *listed)
        )


def install_steps(
    installs: Iterable[Wanted], wish: Wish, installed: Installed
) -> Iterator[RepairStep]:
    """Yield a step for each index that requirements are looked up on."""
    groups: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for one in installs:
        index = ("--index", one.index) if one.index else ()
        page = ("--find-links", one.find_links) if one.find_links else ()
        options: tuple[str, ...] = (*index, *page) or _page_options(one.requirement)
        groups.setdefault(options, []).append((one.name, one.requirement))
    for options, wanted in sorted(groups.items()):
        names = tuple(name for name, _ in wanted)
        there = [name for name in names if installed.find(name) is not None]
        again = [word for name in there for word in ("--reinstall-package", name)]
        texts = [text for _, text in wanted]
        yield RepairStep(
            reason=f"install {', '.join(f'`{text}`' for text in texts)}{_codes(names, wish)}",
            command=("uv", "pip", "install", *_place(installed), *again, *texts, *options),
        )


def reinstall_steps(names: Iterable[str], wish: Wish, installed: Installed) -> Iterator[RepairStep]:
    """Yield a step for each place that installed versions come from."""
    groups: dict[tuple[str, ...], list[str]] = {}
    origins = {name: _origin(name, installed) for name in names}
    for name, origin in origins.items():
        groups.setdefault(origin.options, []).append(name)
    for options, members in sorted(groups.items()):
        again = [word for name in members for word in ("--reinstall-package", name)]
        wanted = [word for name in members for word in origins[name].requirement]
        place = _place(installed)
        yield RepairStep(
            reason=f"bring back every file of {_labels(members, installed)}"
            + (_codes(members, wish) or ", which shares files with what is removed"),
            command=("uv", "pip", "install", *place, *again, "--no-deps", *wanted, *options),
        )


def conda_removals(wish: Wish, installed: Installed) -> Iterator[RepairStep]:
    """Yield conda's command for what it installed and has to go, to be typed by a person.

    It comes first: conda takes its files away, whoever has written them anew since.
    """
    theirs = _of_conda(installed)
    removed = [name for name in wish.removals if name in theirs]
    if removed:
        words = ["conda", "remove", "--prefix", installed.prefix, "--force", *removed]
        labels = ", ".join(f"`{theirs[name].label}`" for name in removed)
        yield RepairStep(reason=f"remove {labels}{_codes(removed, wish)}", text=shlex.join(words))


def conda_reinstalls(wish: Wish, installed: Installed) -> Iterator[RepairStep]:
    """Yield conda's command for what it shall install again, to be typed by a person."""
    theirs = _of_conda(installed)
    again = [f"{n}={theirs[n].version}" for n in wish.reinstalls if n in theirs]
    if again:
        words = ["conda", "install", "--prefix", installed.prefix, "--force-reinstall", *again]
        yield RepairStep(
            reason="bring back every file of " + ", ".join(f"`{one}`" for one in again),
            text=shlex.join(words),
        )


def _of_conda(installed: Installed) -> dict[str, Distribution]:
    return {one.name: one for one in installed.distributions if _is_of_conda(one)}


def in_words(text: str) -> str:
    """Return what a person has to do as comments, which a shell passes over."""
    return "\n".join(f"# {line}" for line in text.splitlines())


def foreign_names(installed: Installed) -> frozenset[str]:
    """Return the distributions that uv must not touch, or does not reach with `--python`.

    Those that the system's package manager installed, and those imported from outside of the
    environment's own folders: the user site, PYTHONPATH, the Python below.
    """
    own = installed.own_sites
    here = {one.name for one in installed.distributions if not own or one.site in own}
    return frozenset(
        one.name
        for one in installed.distributions
        if _is_of_system(one) or (one.name not in here and not _is_of_conda(one))
    )


def foreign_steps(wish: Wish, installed: Installed) -> Iterator[RepairStep]:
    """Yield what to do about those; they may serve others, so that a person decides."""
    foreign = foreign_names(installed)
    for name in (*wish.removals, *wish.reinstalls):
        found = installed.find(name)
        if name not in foreign or found is None:
            continue
        again = ("--reinstall-package", name, "--no-deps", f"{name}=={found.version}")
        what, words = ("remove", (name,)) if name in wish.removals else ("bring back", again)
        verb = "uninstall" if name in wish.removals else "install"
        text = shlex.join(("uv", "pip", verb, "--target", found.site, *words))
        if _is_of_system(found):
            text = in_words("do this with the system's package manager")
        reason = f"{what} `{found.label}`, outside of the environment{_codes([name], wish)}"
        yield RepairStep(reason=reason, text=text)


def requirers(
    names: Iterable[str], installed: Installed, *, without: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the labels of the distributions that require one of some packages."""
    wanted, left_out = set(names), set(without)
    return tuple(
        one.label
        for one in installed.distributions
        if one.name not in left_out
        and any(
            requirement_name(text) in wanted and "extra ==" not in text for text in one.requires
        )
    )


def _origin(name: str, installed: Installed) -> Origin:
    """Return where a distribution came from, as far as its metadata and version tell."""
    found = installed.find(name)
    if found is None:
        return Origin(requirement=(name,))
    if found.origin is not None and found.editable:
        return Origin(requirement=("-e", found.origin.removeprefix("file://")))
    if found.origin is not None:
        return Origin(requirement=(f"{name} @ {found.origin}",))
    requirement = (f"{name}=={found.version}",)
    return Origin(requirement=requirement, options=_page_options(found.version))


def _page_options(version: str) -> tuple[str, ...]:
    built = parse_local(local_of(version))
    if built is None or built.cxx11_abi is not None:
        return ()
    if built.torch_minor is not None:
        return ("--find-links", pyg_page(IndexUrls(), built.torch_minor, built.accelerator).url)
    page = pytorch_page(IndexUrls(), built.accelerator)
    return ("--index", page.url) if page else ()


def _place(installed: Installed) -> tuple[str, ...]:
    if installed.executable:
        return ("--python", installed.executable)
    return ("--target", installed.sites[0]) if installed.sites else ()


def _names_of_pip(installed: Installed) -> frozenset[str]:
    return frozenset(one.name for one in installed.distributions if not _is_of_conda(one))


def _is_of_system(one: Distribution) -> bool:
    return one.installer in _SYSTEM or one.site.endswith("/lib/python3/dist-packages")


def _is_of_conda(one: Distribution) -> bool:
    return one.installer == "conda" or one.site.endswith("/conda-meta")


def _labels(names: Iterable[str], installed: Installed) -> str:
    found = ((name, installed.find(name)) for name in names)
    return ", ".join(f"`{one.label if one else name}`" for name, one in found)


def _codes(names: Iterable[str], wish: Wish) -> str:
    codes = ", ".join(wish.codes_of(names))
    return f" ({codes})" if codes else ""
