"""`envbuild dockerfile`: the Dockerfile of a target with its script, written or compared."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from posixpath import normpath
from typing import TYPE_CHECKING

from envbuild import __version__
from envbuild.commands.locked import read_locked
from envbuild.commands.script import PTX, concluded, remembered, script_path, script_text
from envbuild.core.script.dockerfile import DockerSource, render_dockerfile, render_ignore
from envbuild.core.script.generated import parse_header
from envbuild.core.script.install import project_is_installed
from envbuild.core.script.plan import is_by_project
from envbuild.errors import InputError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.commands.locked import Locked
    from envbuild.commands.script import ScriptOptions
    from envbuild.model.rendered import RenderReport
    from envbuild.ports import Files

_BASE = "--base="
_IMAGE = re.compile(r"[\w.:/@+${}-]+", re.ASCII)
"""An image, or the name of a build argument that holds one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DockerOptions:
    """What the user asked of `envbuild dockerfile`; ``script`` are the options of the script."""

    script: ScriptOptions
    base: str | None = None


def dockerfile_path(target: str) -> str:
    """Return where the Dockerfile of a target lies."""
    return f"scripts/Dockerfile.{target}"


def dockerfile(options: DockerOptions, *, files: Files) -> RenderReport:
    """Write the Dockerfile, what it leaves out, and the script that it runs; or compare them.

    Raises what `envbuild.commands.script.script` raises.
    """
    _refuse_no_image(options.base)
    locked = read_locked(files, options.script.target)
    path = dockerfile_path(locked.target.name)
    if options.script.check:
        options = _remembered(options, files.read(path))
    source = _source(locked, options, files)
    texts = {path: render_dockerfile(source), f"{path}.dockerignore": render_ignore(source)}
    texts[source.script] = script_text(locked, options.script)
    return concluded("dockerfile", options.script, locked, texts, files)


def _refuse_no_image(base: str | None) -> None:
    if base is not None and not _IMAGE.fullmatch(base):
        raise InputError(
            f"`--base` is {base!r}, wanted the reference of an image",
            hint="--base registry.example.org/ubuntu:24.04",
        )


def _remembered(options: DockerOptions, before: str | None) -> DockerOptions:
    header = parse_header(before or "")
    if header is None:
        return options
    base = next((one for one in header.options if one.startswith(_BASE)), None)
    return replace(
        options,
        script=remembered(options.script, before),
        base=options.base or (base.removeprefix(_BASE) if base else None),
    )


def _source(locked: Locked, options: DockerOptions, files: Files) -> DockerSource:
    plan = locked.plan(ptx=options.script.ptx)
    if locked.lock.frozen is not None and plan.base is None:
        raise RefusedError(
            f"target `{locked.target.name}` is locked around `{locked.lock.frozen.python}` of a "
            "machine, which is in no image",
            hint="name the image that holds it as `base` of the target, and lock around that",
        )
    written = (PTX,) if options.script.ptx else ()
    by_project = is_by_project(locked.project, locked.target)
    return DockerSource(
        plan=plan,
        lock=locked.lock,
        script=script_path(locked.target.name),
        envbuild=f"envbuild=={__version__}",
        files=tuple(_files(locked, files, by_project=by_project)),
        folders=tuple(_folders(locked)),
        base=options.base,
        needs_project=by_project and project_is_installed(locked.project),
        options=(*written, *([f"{_BASE}{options.base}"] if options.base else [])),
    )


def _files(locked: Locked, files: Files, *, by_project: bool) -> Iterator[str]:
    """Yield the files that the script reads."""
    yield locked.path
    yield "pyproject.toml"
    if by_project:
        yield "uv.lock"
    for name in ("README.md",):
        if by_project and f'"{name}"' in locked.project.text and files.exists(name):
            yield name


def _folders(locked: Locked) -> Iterator[str]:
    """Yield the sources of what is compiled; raise RefusedError for one that Docker cannot see."""
    for build in locked.lock.builds:
        if build.path is None:
            continue
        if normpath(build.path).split("/")[0] == "..":
            raise RefusedError(
                f"the source of {build.project}, `{build.path}`, lies outside of the project, "
                "which is all that `docker build` sees",
                hint="move it into the project, or name its repository by `git`",
            )
        yield build.path
