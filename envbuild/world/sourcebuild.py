"""Build a package against the torch of an environment, without isolation, and keep the wheel."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from envbuild.core.buildcheck import BuiltFor, judge_build, source_kinds
from envbuild.core.buildkey import BuildInputs, build_key
from envbuild.core.buildsetting import build_variables, refuse_machine, tools_of
from envbuild.core.redact import redact_text
from envbuild.errors import RefusedError, WorldError
from envbuild.model.cuda import ComputeCapability
from envbuild.world.buildcheck import read_built
from envbuild.world.buildsource import SourceFetcher, source_identity, source_names
from envbuild.world.host import read_host
from envbuild.world.interrupts import scratch_folder
from envbuild.world.rootfs import Root
from envbuild.world.wheelcache import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envbuild.core.buildsetting import BuildTools
    from envbuild.core.buildwords import BuildAim
    from envbuild.model.host import Host
    from envbuild.model.plan import Compile, Variable
    from envbuild.ports import Reporter
    from envbuild.world.install import VenvInstaller
    from envbuild.world.wheelcache import WheelCache

_TAIL = 15
_MOST_ERRORS = 10
_ERROR = re.compile(r"\b(?:fatal )?error\b|Killed|No module named", re.IGNORECASE)
_MISLEADING = ("PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "VIRTUAL_ENV")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared:
    """A build that is about to be made: its key, and what it is told."""

    step: Compile
    key: str
    variables: Mapping[str, str]


class SourceBuilder:
    """Builds the packages of a plan; see `envbuild.ports.Builder`."""

    def __init__(
        self,
        *,
        aim: BuildAim,
        project: Path,
        environment: VenvInstaller,
        cache: WheelCache,
        environ: Mapping[str, str],
        reporter: Reporter,
    ) -> None:
        self._aim, self._project, self._cache = aim, project, cache
        self._environment, self._uv = environment, environment.uv
        self._environ = {k: v for k, v in environ.items() if k not in _MISLEADING}
        self._reporter = reporter

    def ensure(
        self, step: Compile, common: tuple[Variable, ...], *, may_build: bool, again: bool = False
    ) -> str:
        """Have a package installed as it would be built now.

        Returns ``kept``, ``cached``, ``built``, or ``left out`` where it may not be built.
        Raises RefusedError where what was built is not sound, WorldError where it cannot be.
        """
        prepared = self._prepared(step, common)
        one = self._environment.installed().find(step.build.project)
        if one is not None and not again and key_of(one.origin) == prepared.key:
            return "kept"
        wheel = self._cache.load(prepared.key)
        if wheel is not None:
            self._install(wheel)
            return "cached"
        if not may_build:
            return "left out"
        self._reporter.phase(f"build {step.build.project}")
        self._build(prepared)
        return "built"

    @cached_property
    def _host(self) -> Host:
        return read_host(environ=self._environ, installed=self._environment.installed())

    @cached_property
    def _tools(self) -> BuildTools:
        return tools_of(self._host, self._aim)

    def _prepared(self, step: Compile, common: tuple[Variable, ...]) -> _Prepared:
        tools = self._tools
        variables = build_variables(step, common, host=self._host, tools=tools)
        installed = self._environment.installed()
        torch = installed.torch
        inputs = BuildInputs(
            project=step.build.project,
            source=source_identity(step.build, project=self._project),
            torch=torch.version if torch else "",
            cuda=(torch.cuda or "") if torch else "",
            python=f"{'.'.join(installed.python.split('.')[:2])}-linux-{installed.machine}",
            compiler=tools.compiler,
            nvcc=tools.nvcc,
            variables=tuple(sorted(variables.items())),
        )
        return _Prepared(step=step, key=build_key(inputs), variables=variables)

    def _build(self, prepared: _Prepared) -> None:
        build = prepared.step.build
        with scratch_folder() as scratch:
            fetcher = SourceFetcher(project=self._project, environ=self._environ, uv=self._uv)
            source = fetcher.fetch(build, scratch)
            compiled, cuda = source_kinds(source_names(source))
            if cuda:
                refuse_machine(self._host, self._tools, self._aim, project=build.project)
            wheel = self._wheel(prepared, source, scratch)
            kept = self._cache.store(prepared.key, wheel)
        self._install(kept)
        self._judge(prepared, compiled=compiled, cuda=cuda)
        self._cache.confirm(prepared.key)

    def _wheel(self, prepared: _Prepared, source: Path, scratch: Path) -> Path:
        name = prepared.step.build.project
        out = scratch / "wheel"
        words = ["build", "--wheel", "--no-build-isolation", "--no-sources", "--out-dir", str(out)]
        words += ["--python", self._uv.python, str(source)]
        done = self._uv.attempt(*words, extra=self._told(prepared, scratch))
        if done.returncode != 0:
            raise self._failure(name, redact_text(f"{done.stdout}\n{done.stderr}".strip()))
        wheels = sorted(out.glob("*.whl"))
        if len(wheels) != 1:
            raise WorldError(f"the build of `{name}` left {len(wheels)} wheels, wanted one")
        return wheels[0]

    def _failure(self, name: str, said: str) -> WorldError:
        """Show the first errors and the end; a compiler's word stands far above Python's last."""
        lines = said.partition("\n\nhint: ")[0].splitlines()
        errors = [line for line in lines[:-_TAIL] if _ERROR.search(line)][:_MOST_ERRORS]
        shown = "\n".join([*errors, *lines[-_TAIL:]])
        log = self._cache.save_log(name, f"{said}\n")
        where = f"\nall of it is in `{log}`" if log else ""
        return WorldError(
            f"`{name}` could not be built:\n{shown}{where}",
            hint="`envbuild doctor --build` says what this machine lacks for a build",
        )

    def _told(self, prepared: _Prepared, scratch: Path) -> dict[str, str]:
        """Return the variables of a build; what it makes on the way stays out of the source."""
        base, eggs = scratch / "build", scratch / "egg-info"
        eggs.mkdir(exist_ok=True)
        settings = scratch / "setup.cfg"
        settings.write_text(
            f"[build]\nbuild_base = {base}\n[egg_info]\negg_base = {eggs}\n", encoding="utf-8"
        )
        folders = [str(Path(self._uv.python).parent)]
        home = prepared.variables.get("CUDA_HOME")
        folders += [f"{home}/bin"] if home else []
        path = self._environ.get("PATH") or os.defpath
        return {
            **prepared.variables,
            "DIST_EXTRA_CONFIG": str(settings),
            "VIRTUAL_ENV": str(Path(self._uv.python).parent.parent),
            "PATH": ":".join([*folders, path]),
        }

    def _install(self, wheel: Path) -> None:
        self._uv.run(
            "pip",
            "install",
            "--python",
            self._uv.python,
            "--no-deps",
            "--no-index",
            "--reinstall",
            "--no-cache",
            str(wheel),
        )
        self._environment.forget()

    def _judge(self, prepared: _Prepared, *, compiled: bool, cuda: bool) -> None:
        installed = self._environment.installed()
        name = prepared.step.build.project
        built = read_built(installed, name, root=Root("/"), environment=self._environ)
        capabilities = (ComputeCapability.parse(one) for one in prepared.step.capabilities)
        torch = installed.torch.version if installed.torch else "none"
        aim = BuiltFor(capabilities=tuple(capabilities), torch=torch, compiled=compiled, cuda=cuda)
        findings = judge_build(built, aim)
        if not findings:
            return
        self._cache.discard(prepared.key)
        self._uv.attempt("pip", "uninstall", "--python", self._uv.python, name)
        first = findings[0]
        more = "".join(f"\n  {line}" for line in first.evidence)
        raise RefusedError(
            f"{first.message} ({first.code}){more}",
            hint=f"`envbuild explain {first.code}` says more; the wheel was thrown away",
        )
