"""The steps of a plan as shell functions: prepare, install, compile, check."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envbuild.core.buildtools import gigabytes
from envbuild.core.buildwords import BY_MACHINE
from envbuild.core.redact import without_credentials
from envbuild.core.script.shell import comment, quote
from envbuild.model.plan import Compile, InstallLock, MakeEnvironment, SelfCheck

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from envbuild.model.lock import TargetLock
    from envbuild.model.plan import InstallPlan, Step, Variable
    from envbuild.model.stack import SourceBuild

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _function(name: str, lines: Iterable[str]) -> str:
    body = [f"    {line}" for line in lines] or ["    :"]
    return "\n".join([f"{name}() {{", *body, "}", ""])


def _call(*words: str) -> str:
    return " ".join(quote(word) for word in words)


def build_functions(plan: InstallPlan) -> Iterator[str]:
    """Yield what `main` calls around the steps: sources and compilers before, checks after."""
    compiles = [step for step in plan.steps if isinstance(step, Compile)]
    yield _function("prepare_builds", (*_require(plan), *_prepare(compiles)))
    paths = [step.build for step in compiles if step.build.path is not None]
    yield _function("local_sources", (_local(build) for build in paths))
    yield _function("check_builds", (_check(step) for step in compiles))
    if compiles:
        names = {one.name for step in compiles for one in step.variables}
        names |= {one.name for one in plan.variables}
        settings = sorted(names - set(BY_MACHINE))
        lines = (f"printf '%s\\n' \"{name}=${{{name}-}}\"" for name in settings)
        yield _function("build_environment", lines)


def _require(plan: InstallPlan) -> Iterator[str]:
    if plan.glibc is not None:
        yield _call("require_glibc", plan.glibc)


def _prepare(compiles: Iterable[Compile]) -> Iterator[str]:
    compiles = tuple(compiles)
    if compiles:
        yield "nvcc='' found_nvcc=''"
    for step in compiles:
        yield _call("take_source", step.build.project, *_source(step.build))
        yield _call("prepare_build", step.build.project)
    if compiles:
        yield "need_compiler"


def _source(build: SourceBuild) -> tuple[str, ...]:
    """Return kind, place, version and hash of a source."""
    if build.path is not None:
        return ("path", build.path)
    if build.git is not None:
        is_http = build.git.startswith("http")
        return ("git", without_credentials(build.git) if is_http else build.git)
    if build.url is not None:
        return ("url", build.url, build.version or "", build.sha256 or "-")
    return ("index", "-", build.version or "", "-")


def _local(build: SourceBuild) -> str:
    key = f'"$(program sources key {quote(build.path or "")} 2>&1 || :)"'
    return f"printf '%s %s\\n' {quote(build.project)} {key}"


def _check(step: Compile) -> str:
    return _call("check_build", step.build.project, ";".join(step.capabilities))


def steps_function(plan: InstallPlan, lock: TargetLock) -> str:
    """Return the function that carries the plan out, step by step with its reasons."""
    lines: list[str] = []
    for step in plan.steps:
        lines += [comment(step.reason), *_step(step, plan, lock)]
    return _function("steps", lines)


def _step(step: Step, plan: InstallPlan, lock: TargetLock) -> Iterator[str]:
    match step:
        case MakeEnvironment(python=python):
            yield _call("step", f"environment of CPython {python}")
            yield "make_environment"
        case InstallLock():
            yield _call("step", f"install {len(lock.packages)} packages of {step.pylock}")
            yield "mend_environment"
            by_project = _call("install_by_project", *step.options)
            yield by_project if step.by_project else "install_by_pip"
        case Compile():
            yield from _compile(step, plan, lock)
        case SelfCheck():
            yield "step 'compare with the lock'"
            yield "self_check"


def _compile(step: Compile, plan: InstallPlan, lock: TargetLock) -> Iterator[str]:
    build = step.build
    yield _call("step", f"compile {build.project}")
    yield "("
    for variable in (*plan.variables, *step.variables):
        if variable.value:
            yield "    " + comment(variable.reason)
            yield "    " + _default(variable)
    words = (build.project, str(gigabytes(build.project)), " ".join(_requires(build, lock)))
    yield "    " + _call("compile", *words)
    yield ")"
    yield _check(step)


def _default(variable: Variable) -> str:
    if not _NAME.fullmatch(variable.name):
        raise ValueError(f"`{variable.name}` is no name of a variable")
    return _call("default", variable.name, variable.value)


def _requires(build: SourceBuild, lock: TargetLock) -> Iterator[str]:
    """Yield what the build needs as the lock has it: other versions may build otherwise."""
    locked = {package.name: package.version for package in lock.packages}
    for text in build.requires:
        name = canonicalize_name(Requirement(text).name)
        yield f"{name}=={locked.get(name, '')}"
