"""Where `envbuild doctor` meets the real world: an environment on disk, its host, its project."""

from __future__ import annotations

import gc
import os
import posixpath
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from envbuild.catalog.reader import Catalog
from envbuild.checks.registry import all_rules
from envbuild.cli.doctorcommand import DoctorWorld
from envbuild.commands.doctor import doctor, rule_text
from envbuild.world.binaries import read_device_codes, read_links
from envbuild.world.environment import read_environment
from envbuild.world.host import read_host
from envbuild.world.layers import read_layers
from envbuild.world.ownership import read_ownership
from envbuild.world.rootfs import Root
from envbuild.world.sharedobjects import shared_objects
from envbuild.world.streams import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from envbuild.cli.doctorcommand import Where
    from envbuild.commands.doctor import DoctorOptions
    from envbuild.model.diagnosis import DoctorReport, RuleText
    from envbuild.model.host import Host
    from envbuild.model.installed import Installed, Ownership
    from envbuild.model.layers import Layers
    from envbuild.model.links import DeviceCodes, Links
    from envbuild.ports import RepairRunner


def real_world() -> DoctorWorld:
    """Return the real world of the commands."""
    return DoctorWorld(
        examine=_examine,
        rules=_rule_texts,
        runner=_runner,
        ask=_ask if sys.stdin is not None and sys.stdin.isatty() else None,
    )


class DiskExaminer:
    """Reads an environment from disk; see `envbuild.ports.Examiner`."""

    def __init__(self, where: Where, environ: Mapping[str, str]) -> None:
        self._where = where
        self._root = Root(where.root)
        self._environ = {} if self._root.is_image else environ

    def installed(self) -> Installed:
        """Read which distributions there are."""
        self._installed = read_environment(
            self._where.path, root=self._where.root, environ=self._environ
        )
        return self._installed

    @cached_property
    def _objects(self) -> tuple[str, ...]:
        return tuple(sorted(shared_objects(self._installed, root=self._root)))

    def ownership(self, installed: Installed) -> Ownership:
        """Read which files the distributions share, and which are gone."""
        return read_ownership(installed, objects=self._objects)

    def links(self, installed: Installed) -> Links:
        """Read what the dynamic loader would find."""
        return read_links(
            installed, root=self._root, environment=self._environ, paths=self._objects
        )

    def device_codes(self, installed: Installed) -> DeviceCodes:
        """Read the GPU code of the shared objects."""
        return read_device_codes(installed, root=self._root, paths=self._objects)

    def layers(self, installed: Installed) -> Layers:
        """Read the locks of the project around the environment."""
        layers = read_layers(installed, directory=self._named_project)
        return layers if self._where.owned else replace(layers, owned=False)

    def host(self, installed: Installed) -> Host:
        """Read the machine, or the image."""
        return read_host(root=self._where.root, environ=self._environ, installed=installed)

    def manifest(self, installed: Installed) -> tuple[str, str] | None:
        """Return the folder of the project, named or around the venv, and its pyproject.toml."""
        above = posixpath.dirname(installed.prefix)
        named = self._named_project
        for folder in (above, posixpath.dirname(above)) if named is None else (named,):
            text = self._root.text(posixpath.join(folder, "pyproject.toml"))
            if text is not None:
                return folder, text
        return None

    @property
    def _named_project(self) -> str | None:
        project = self._where.project
        return os.path.realpath(project) if project and not self._root.is_image else project


def _rule_texts() -> tuple[RuleText, ...]:
    return tuple(rule_text(rule) for rule in all_rules())


def _examine(options: DoctorOptions, where: Where) -> DoctorReport:
    examiner = DiskExaminer(where, os.environ)
    with _without_collection():
        return doctor(options, examiner=examiner, facts=Catalog.load(), rules=all_rules())


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep the collector away from some 100,000 small objects, none of them in a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _runner() -> RepairRunner:
    from envbuild.world.repairrun import CommandRunner  # noqa: PLC0415 - only `--fix` runs uv

    return CommandRunner(os.environ)


def _ask(question: str) -> bool:
    say(sys.stderr, question)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
