"""The settings of uv that bind a project to a stack, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envbuild.core.redact import without_credentials
from envbuild.model.project import IndexUrls, Layer
from envbuild.model.stack import IndexPin, PypiPin, SourceBuild

if TYPE_CHECKING:
    from envbuild.model.project import Project
    from envbuild.model.stack import Stack
    from envbuild.model.target import Target
    from envbuild.model.wheel import IndexPage

GROUP = "envbuild"
"""The dependency group that holds what envbuild adds to the project's requirements."""

NEVER = "sys_platform == 'never'"
"""A marker that no environment satisfies; as an override it drops a requirement."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UvSettings:
    """What ``[tool.uv]`` and ``[dependency-groups]`` must say.

    ``sources`` maps project names to index names. ``group`` are the requirements of the
    dependency group ``envbuild``. ``without_cutoff`` are the projects to which
    ``exclude-newer`` is not applied: their builds are chosen, and their pages give no times.
    ``urls`` tell which of the project's own indexes are PyTorch's and must be explicit, and
    ``required`` what it asks for by itself: nobody but envbuild drops that.
    """

    managed: bool = True
    environments: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    indexes: tuple[IndexPage, ...] = ()
    default_index: str | None = None
    group: tuple[str, ...] = ()
    exclude_newer: str | None = None
    without_cutoff: tuple[str, ...] = ()
    urls: IndexUrls = field(default_factory=IndexUrls)
    required: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing needs to be said."""
        return self == UvSettings()

    def index_tables(self) -> tuple[tuple[str, dict[str, object]], ...]:
        """Return the ``[[tool.uv.index]]`` tables by name, credentials removed."""
        tables = [(page.name, _index_table(page)) for page in self.indexes]
        if self.default_index is not None:
            url = without_credentials(self.default_index)
            tables.append(("pypi", {"name": "pypi", "url": url, "default": True}))
        return tuple(tables)


def _index_table(page: IndexPage) -> dict[str, object]:
    table: dict[str, object] = {
        "name": page.name,
        "url": without_credentials(page.url),
        "explicit": True,
    }
    if page.flat:
        table["format"] = "flat"
    return table


def settings_for(project: Project, target: Target, stack: Stack) -> UvSettings:
    """Derive uv's settings for a stack in the layer "project"."""
    pinned = sorted(
        (pin for pin in stack.pins if not isinstance(pin, SourceBuild)), key=lambda p: p.project
    )
    from_index = [pin for pin in pinned if isinstance(pin, IndexPin)]
    pages = {pin.wheel.page.name: pin.wheel.page for pin in from_index}
    cutoff = project.exclude_newer
    return UvSettings(
        environments=(environment_marker(target),),
        constraints=tuple(pin.requirement for pin in pinned),
        overrides=_overrides(project, stack),
        sources=tuple((pin.project, pin.wheel.page.name) for pin in from_index),
        indexes=tuple(pages[name] for name in sorted(pages)),
        default_index=project.indexes.pypi,
        group=_group(stack),
        exclude_newer=cutoff,
        without_cutoff=tuple(pin.project for pin in pinned) if cutoff else (),
        urls=project.indexes,
        required=_required(project),
    )


def settings_for_layer(project: Project, target: Target, stack: Stack) -> UvSettings:
    """Derive what the project's own pyproject.toml must say for its layer."""
    if project.layer is Layer.PIP:
        return UvSettings(managed=False, urls=project.indexes)
    return settings_for(project, target, stack)


def environment_marker(target: Target) -> str:
    """Return the PEP 508 marker that holds on the target alone."""
    return (
        f"python_version == '{target.python}' and sys_platform == 'linux'"
        f" and platform_machine == '{target.platform.machine}'"
    )


def _required(project: Project) -> tuple[str, ...]:
    return tuple(sorted({canonicalize_name(r.requirement.name) for r in project.requirements}))


def _overrides(project: Project, stack: Stack) -> tuple[str, ...]:
    named = {*_required(project)}
    replaced = {p.replaces for p in stack.pins if isinstance(p, PypiPin) and p.replaces}
    built = {build.project for build in stack.builds}
    dropped = ((replaced | built) & named) | {*stack.dropped}
    return tuple(f"{name} ; {NEVER}" for name in sorted(dropped))


def _group(stack: Stack) -> tuple[str, ...]:
    added = {p.requirement for p in stack.pins if isinstance(p, PypiPin) and p.replaces}
    for build in stack.builds:
        added.update(build.requires)
        added.update(build.runtime_requires)
    return tuple(sorted(added))
