"""The install script: a plan as POSIX shell that needs nothing but uv, and asks nothing."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from envbuild.core.buildjobs import JOBS_FUNCTION, MEMORY_FUNCTIONS
from envbuild.core.buildtools import newest_host_compiler
from envbuild.core.script.generated import IDENTITY, header_lines, identified
from envbuild.core.script.plan import bytes_of
from envbuild.core.script.shell import assignment, comment, here_document
from envbuild.core.script.steps import build_functions, steps_function
from envbuild.model.cuda import CudaVersion
from envbuild.model.plan import Compile, InstallLock

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envbuild.model.lock import Pinned, TargetLock
    from envbuild.model.plan import InstallPlan
    from envbuild.model.project import Project

PROGRAMS = ("distributions", "extensions", "machine", "sources")
OLDEST_GCC = 9
"""The oldest g++ that compiles torch's headers (C++17)."""

EXIT_CODES = """\
exit codes:
  0   done, or nothing was to do
  2   the arguments are wrong, or the environment's folder holds something else
  10  uv was not found
  11  uv is too old
  12  no CPython of the lock's version
  13  the disk is too small, or a folder cannot be written to
  14  no network to a host that files come from
  15  no nvcc, and something is compiled for GPUs
  16  nvcc is of another CUDA major than torch, or too old for the GPUs
  17  no C++ compiler, or none that fits nvcc, or no headers of Python
  18  uv could not install, or something could not be compiled
  19  the environment is not what the lock says
  20  the lock is not there, was changed, or lacks hashes
  21  the machine is of another platform
  22  git was not found, and a source is a commit
  23  a source is not what the lock says: no such commit, or other bytes
  24  the base has another torch than the one that was locked
  25  another run is at work in the environment, and does not end
  129, 130, 143  interrupted; run it again"""

CLEARED = (
    "UV_BREAK_SYSTEM_PACKAGES UV_BUILD_CONSTRAINT UV_CONFIG_FILE UV_CONSTRAINT "
    "UV_DEFAULT_INDEX UV_DEV UV_ENV_FILE UV_EXCLUDE UV_EXCLUDE_NEWER UV_EXTRA_INDEX_URL "
    "UV_FIND_LINKS UV_FROZEN UV_GROUP UV_INDEX UV_INDEX_STRATEGY UV_INDEX_URL UV_ISOLATED "
    "UV_LOCKED UV_NO_BINARY UV_NO_BINARY_PACKAGE UV_NO_BUILD UV_NO_BUILD_ISOLATION "
    "UV_NO_BUILD_PACKAGE UV_NO_CONFIG UV_NO_DEFAULT_GROUPS UV_NO_DEV UV_NO_EDITABLE "
    "UV_NO_GROUP UV_NO_INDEX UV_NO_SOURCES UV_NO_SYNC UV_NO_VERIFY_HASHES UV_OFFLINE "
    "UV_ONLY_BINARY UV_OVERRIDE UV_PREFIX UV_PRERELEASE UV_PROJECT UV_PROJECT_ENVIRONMENT "
    "UV_PYTHON UV_REQUIRE_HASHES UV_RESOLUTION UV_SYSTEM_PYTHON UV_TARGET UV_TORCH_BACKEND "
    "UV_VENV_CLEAR UV_VENV_RELOCATABLE UV_VENV_SEED UV_VERIFY_HASHES UV_WORKING_DIR "
    "UV_WORKING_DIRECTORY"
)
"""Settings of uv that could change what is installed, or where."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptSource:
    """What a script is made from.

    ``project`` is the path from the script's folder to the project. ``project_name`` is set where
    uv installs the project itself. ``options`` are those of the command, for the header.
    ``managed_by`` is the target of uv.lock where that is another one.
    """

    plan: InstallPlan
    lock: TargetLock
    project: str = ".."
    project_name: str | None = None
    options: tuple[str, ...] = field(default=())
    managed_by: str | None = None


def render_script(source: ScriptSource) -> str:
    """Render the script; the same source gives the same bytes."""
    header = header_lines(source.plan, command="script", options=source.options)
    codes = (comment(line) for line in EXIT_CODES.splitlines())
    return identified("\n".join(["#!/bin/sh", *header, "#", *codes, *_body(source)]))


def project_is_installed(project: Project) -> bool:
    """Whether `uv sync` installs the project itself, and not its dependencies alone."""
    document: dict[str, Any] = tomllib.loads(project.text)
    package: object = document.get("tool", {}).get("uv", {}).get("package")
    return package is True or (package is None and "build-system" in document)


def _body(source: ScriptSource) -> Iterator[str]:
    compiles = _compiles(source.plan)
    yield from ("", "set -eu", "umask 022", "")
    yield from _settings(source)
    yield ""
    yield _part("install.sh")
    if compiles:
        yield from (_part("build.sh"), JOBS_FUNCTION, MEMORY_FUNCTIONS, _newest_gcc(source.lock))
    if source.plan.glibc is not None:
        yield _part("glibc.sh")
    yield from build_functions(source.plan)
    yield steps_function(source.plan, source.lock)
    yield _programs(source)
    yield 'main "$@"\n'


def _compiles(plan: InstallPlan) -> tuple[Compile, ...]:
    return tuple(step for step in plan.steps if isinstance(step, Compile))


def _settings(source: ScriptSource) -> Iterator[str]:
    plan, lock = source.plan, source.lock
    compiles = _compiles(plan)
    own = [step.build.project for step in compiles]
    own += [f"={source.project_name}"] if source.project_name else []
    pairs = {
        "TARGET": plan.target,
        "PROJECT": source.project,
        "LOCK": plan.lock,
        "LOCK_SHA256": plan.lock_sha256,
        "SCRIPT_ID": IDENTITY,
        "PYTHON": plan.python,
        "MACHINE": plan.platform.partition("-")[2],
        "UV_OLDEST": plan.needs.uv,
        "STEPS": str(len(plan.steps)),
        "OWN": " ".join(own),
        "UNHASHED": ", ".join(name for name, _ in lock.incomplete),
        "BASE": plan.base or (lock.frozen.python if lock.frozen is not None else ""),
        "BASE_PYTHON": lock.frozen.python if lock.frozen is not None else "",
        "BASE_TORCH": (lock.frozen.torch or "") if lock.frozen is not None else "",
        "MANAGED_BY": source.managed_by or "",
        "CLEARED": CLEARED,
        "EXIT_CODES": EXIT_CODES,
    }
    if compiles:
        pairs["CUDA"] = lock.cuda or ""
        pairs["OLDEST_NVCC"] = plan.needs.oldest_nvcc or f"{plan.needs.cuda_major or 0}.0"
        pairs["OLDEST_GCC"] = str(OLDEST_GCC)
        torch = (one.version for one in lock.packages if one.name == "torch")
        kept = lock.frozen.torch if lock.frozen is not None else None
        pairs["LOCKED_TORCH"] = next(torch, kept or "")
        yield "newline='\n'"
    yield from (assignment(name, value) for name, value in pairs.items())


def _part(name: str) -> str:
    return files("envbuild.core").joinpath(f"data/script/{name}").read_text(encoding="utf-8")


def _newest_gcc(lock: TargetLock) -> str:
    lines = ["# newest_gcc CUDA: print the newest g++ that an nvcc accepts", "newest_gcc() {"]
    lines += ["    case $1 in"]
    major = int((lock.cuda or "0").partition(".")[0])
    for minor in range(10):
        newest = newest_host_compiler("gcc", CudaVersion(major=major, minor=minor))
        if newest is not None:
            lines.append(f"        {major}.{minor}) echo {newest} ;;")
    return "\n".join([*lines, "        *) echo 99 ;;", "    esac", "}", ""])


def _programs(source: ScriptSource) -> str:
    documents = [
        here_document(f'    cat >"$work/{name}.py"', _part(f"{name}.py")) for name in PROGRAMS
    ]
    documents.append(here_document('    cat >"$work/packages"', _packages(source.lock)))
    by_pip = any(isinstance(s, InstallLock) and not s.by_project for s in source.plan.steps)
    unhashed = _unhashed(source.lock)
    if by_pip or unhashed:
        documents.append(here_document('    cat >"$work/unhashed.txt"', unhashed))
    return "write_programs() {\n" + "".join(documents) + "}\n"


def _packages(lock: TargetLock) -> str:
    return "".join(
        f"{one.name} {one.version} {bytes_of(one)} {_flag(one)}\n" for one in lock.packages
    )


def _flag(package: Pinned) -> str:
    if package.marker is not None:
        return "optional"
    is_direct = package.direct or (not package.hashed and "+" in package.version)
    return "direct" if is_direct else "-"


def _unhashed(lock: TargetLock) -> str:
    return "".join(_requirement(package) for package in lock.unhashed)


def _requirement(package: Pinned) -> str:
    if not package.artifacts:
        return f"{package.name}=={package.version}\n"
    return f"{package.name} @ {package.artifacts[0].url}\n"
